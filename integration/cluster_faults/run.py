"""One run: load and workers, one fault after the other, each recovered from, then all that was produced is judged."""

import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException

from integration.cluster_faults import clients, history
from integration.cluster_faults.clients import Clients
from integration.cluster_faults.history import NEVER, Loss, Sent
from integration.cluster_faults.leavings import Leavings
from integration.cluster_faults.link import Link
from integration.cluster_faults.nemesis import Nemesis, now_ms, rounds
from integration.cluster_faults.report import Plan, Report
from integration.cluster_faults.workers import Workers, endpoint, sent
from integration.oracle.oracle import EXAMPLES
from integration.oracle.records import value_of
from integration.oracle.stream import Kind, Stream
from integration.oracle.trial import Failed
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess

START_S: Final = 300.0
SETTLE_S: Final = 30.0
"""After all began, before the first fault: three workers that start leave a backlog of work on two cores."""
RECOVERY_S: Final = 180.0
AT_REST: Final = 0.5
"""The share of faults before which the workers rest. Others come while what the last one moved still begins."""
REST_S: Final = 8.0
"""Longer than a worker that is back waits for its share."""
LOOK_S: Final = 0.5
SAMPLE_S: Final = 0.5
CHANGED: Final = 4
"""One connector of so many is changed by REST meanwhile; how long it rests is not measured."""
OTHERS: Final = 2
"""So many more are made, changed and deleted; nothing is sent to them."""
KEYS: Final = {
    "connect.ems.commit.size.bytes": "1000000",
    "connect.ems.commit.records": "500",
    "tasks.max": "4",
}
"""They weigh more than those that are made and deleted meanwhile, so that these move none of them."""


class ClusterFaults:
    """`run` once, then `close` in any case. links: of the workers to that broker."""

    def __init__(self, plan: Plan, broker: Broker, links: Sequence[Link], target: TargetProcess, folder: Path) -> None:
        self._plan, self._target, self._chance = plan, target, random.Random(plan.seed)
        self._broker = broker
        self._streams = [Stream(_kind(number, plan), broker) for number in range(plan.connectors)]
        self.workers = Workers(folder, broker, links, plan.session_ms)
        findings = [stream.oracle.findings for stream in self._streams]
        self.report = Report(findings, interval_s=plan.interval_ms / 1_000)
        self.leavings = Leavings(broker, endpoint(target.endpoint), folder)
        self._tmp, self._began = folder / "tmp", time.monotonic()
        self._losses: list[Loss] = []
        self._others: list[tuple[Loss, list[str], int]] = []
        self._sampling, self._sampled = threading.Event(), threading.Thread(target=self._sample, daemon=True)
        self._failure: str | None = None

    def run(self) -> None:
        """Raises Failed, AssertionError, TimeoutError."""
        self.leavings.open()
        configs = self._start()
        changed = list(configs)[CHANGED - 1 :: CHANGED] if self._plan.clients else []
        others = {name: self._of_nothing(name) for name in (f"other-{number}" for number in range(OTHERS))}
        plan = self._plan
        loaded = {name: configs[name] for name in changed}
        asking = Clients(self.workers, loaded, others, plan.seed, plan.clients, plan.pause_s)
        asking.start()
        nemesis, began = Nemesis(self.workers, self._plan.session_ms / 1_000, self._wait), time.monotonic()
        for kind, number in rounds(self._chance):
            if at_rest := self._chance.random() < AT_REST:
                self._rest()
            self._wait(self._chance.uniform(0.5, 3.0))
            has = self.workers.placed().get(number, ())
            connectors = [name for name in has if name in configs and name not in changed]
            self.say(f"w{number}, {kind}{' at rest' if at_rest else ''}; it has {', '.join(has) or 'nothing'}")
            lost = nemesis.do(kind, number, connectors, self._delivers(connectors))
            self._losses.append(replace(lost, at_rest=at_rest))
            over = time.monotonic()
            steady = self._delivers([name for name in configs if name not in changed])
            self._until(lambda up=steady: up() and self._settled(), "not recovered from", RECOVERY_S)
            self._others.append(
                (self._losses[-1], [name for name in configs if name not in {*has, *changed}], now_ms())
            )
            self.say(f"recovered from {time.monotonic() - over:.1f} s after it was over")
            if (passed := time.monotonic() - began) >= self._plan.minutes * 60:
                break
        self.report.seconds, self.report.load = passed, os.getloadavg()[0]
        asking.stop()
        self.report.answers, self.report.asked = asking.answers, len(asking.history)
        self.report.troubles += asking.troubles()
        self._stop()
        self._judge()

    def _of_nothing(self, name: str) -> dict[str, str]:
        """Settings of a connector to whose topic nothing is sent."""
        found = self._streams[0].connector(endpoint(self._target.endpoint), self._tmp)
        return {**found, "name": name, "topics": clients.EMPTY, "tasks.max": "1"}

    def _start(self) -> dict[str, dict[str, str]]:
        """Configurations by name, once all of them deliver."""
        for stream in self._streams:
            stream.create()
        self._broker.create_topic(clients.EMPTY, 1)
        self.workers.start()
        address = endpoint(self._target.endpoint)
        configs = {stream.kind.topic: stream.connector(address, self._tmp) for stream in self._streams}
        for name, config in configs.items():
            self.workers.insist("PUT", f"/connectors/{name}/config", config, START_S)
        for name, config in self.leavings.configs().items():
            self.workers.insist("PUT", f"/connectors/{name}/config", config, START_S)
        for stream in self._streams:
            stream.load.start()
        self.leavings.start()
        self._sampled.start()
        self._until(lambda: all(sum(one.committed.values()) for one in self._streams), "not all began", START_S)
        self._until(self._settled, "the workers do not share the connectors", START_S)
        self.say("all connectors deliver")
        self._wait(SETTLE_S)
        return configs

    def _delivers(self, names: Sequence[str]) -> Callable[[], bool]:
        """Whether all that these connectors' topics hold by now is committed."""
        ends = [(one, one.oracle.ends()) for one in self._streams if one.kind.topic in names]
        return lambda: all(stream.reached(end) for stream, end in ends)

    def _settled(self) -> bool:
        """Whether all workers are members, with a fair share each."""
        mine = {stream.kind.topic for stream in self._streams}
        counts = [len(mine & set(names)) for names in self.workers.placed().values()]
        return len(counts) == len(self.workers.links) and max(counts) - min(counts) <= 1

    def _rest(self) -> None:
        """Returns when nothing has moved for a while."""
        moved_s = time.monotonic()

        def rests() -> bool:
            nonlocal moved_s
            if self.workers.moving() or not self._settled():
                moved_s = time.monotonic()
            return time.monotonic() - moved_s >= REST_S

        self._until(rests, "connectors move on and on", RECOVERY_S)

    def _runs(self) -> bool:
        """Whether all connectors do, as the workers tell."""
        states = self.workers.states()
        return all(states.get(stream.kind.topic) == "RUNNING" for stream in self._streams)

    def _stop(self) -> None:
        """The load ends, all of it is delivered, what waits at workers is sent, and then the workers end in order."""
        for stream in self._streams:
            stream.load.stop()
        done = self._delivers([stream.kind.topic for stream in self._streams])
        self._until(done, "not all that was produced was committed", START_S)
        self._until(self._runs, "not all connectors run in the end", START_S)  # what moves by now has arrived
        self.leavings.stop()
        self._until(self.leavings.is_read, "not all lines were read", START_S)
        self._until(lambda: self.leavings.is_parked(self.workers), "not all bad records were parked", START_S)
        self._until(lambda: not self.leavings.waiting(), "files or notices wait on", START_S)
        with closing(self._target.client) as client:
            self.report.troubles += self.leavings.troubles(client, self.workers)
        self._end_sampling()
        for worker in self.workers.group.workers:
            worker.stop()

    def _judge(self) -> None:
        self.say("judging every file that was accepted")
        files, owners = list[Sent](), self.workers.owners()
        with closing(self._target.client) as client:
            for stream in self._streams:
                self.report.files += len(stream.judge(client, stream.stopped(client)))
                files += sent(client, stream.kind.topic, stream.kind.table)
        report = self.report
        report.records = sum(stream.oracle.records for stream in self._streams)
        report.losses = [(loss, history.gaps(loss, files, owners)) for loss in self._losses]
        for loss, names, to_ms in self._others:
            rests = history.longest_rests(names, files, owners, loss.at_ms, to_ms)
            report.others.setdefault(loss.kind, []).extend(rests)
        report.troubles += [
            f"{loss.kind} of {loss.worker}: a connector that it had sent nothing any more"
            for loss, found in report.losses
            if any(gap.seconds == NEVER for gap in found)
        ]
        twice = history.two_owners(files, owners)
        report.troubles += [*twice[:EXAMPLES], *([f"{len(twice)} files by two owners"] if twice else [])]

    def _sample(self) -> None:
        """Asks for committed offsets, in a thread of its own: faults take their time."""
        while not self._sampling.wait(SAMPLE_S):
            for stream in self._streams:
                try:
                    stream.look()
                except KafkaException as error:
                    self.say(f"the broker does not answer: {error}")

    def _end_sampling(self) -> None:
        self._sampling.set()
        if self._sampled.ident is not None:
            self._sampled.join()

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self._until(lambda: time.monotonic() >= until, "", NEVER)

    def _until(self, done: Callable[[], bool], trouble: str, within_s: float) -> None:
        """Raises Failed when it takes longer, a load fails, or a worker ends by itself."""
        began = time.monotonic()
        while not done():
            for stream in self._streams:
                if failure := stream.load.failure or self.leavings.failure:
                    raise Failed(f"the load failed: {failure}")
            if time.monotonic() - began > within_s:
                states = ", ".join(f"{name} {state}" for name, state in self.workers.states().items())
                raise Failed(f"{trouble} within {within_s:.0f} s; {self.workers.placed()}; {states}")
            time.sleep(LOOK_S)

    def say(self, text: str) -> None:
        """A line with the time since the beginning."""
        print(f"[{time.monotonic() - self._began:6.1f} s] {text}", flush=True)

    def close(self) -> None:
        """Ends everything that it started."""
        self._end_sampling()
        for stream in self._streams:
            stream.close()
        self.workers.close()
        self.leavings.close()


def _kind(number: int, plan: Plan) -> Kind:
    name = f"orders-{number:02}"
    return Kind(
        name,
        name.upper(),
        plan.partitions,
        0.0,
        {**KEYS, "connect.ems.commit.interval.ms": str(plan.interval_ms)},
        value_of,
        plan.per_second,
        0,
    )
