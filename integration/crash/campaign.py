"""One crash run: load, kills, recovery, a clean stop, a last start, and the oracle's judgement."""

import random
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from integration.crash import processes
from integration.crash.group import Group
from integration.crash.judge import Stop, judge
from integration.crash.kills import ENDS_SINK, Kill, Kind, Victims, plan
from integration.crash.load import Load
from integration.crash.oracle import Oracle
from integration.crash.report import Failed, Hit, Report, Sizes
from integration.crash.sink import TABLE, SinkProcess, connector
from parquet_sink.kafka.broker import Broker
from parquet_sink.target.process import TargetProcess

PARTITIONS: Final = 4
TOPIC: Final = "crash"
LOOK_S: Final = 0.05
SAMPLE_S: Final = 0.4
VICTIM_S: Final = 60.0
STOP_S: Final = 120.0
DRAIN_S: Final = 240.0
ORPHANS_S: Final = 30.0
LATENCY_S: Final = 0.1
"""Time to answer, added by the target, so that kills find uploads under way."""


class Campaign:
    """Owns the load, the sink and the oracle of one run; broker and target are given."""

    def __init__(self, sizes: Sizes, broker: Broker, target: TargetProcess, folder: Path) -> None:
        self._sizes, self._broker, self._target = sizes, broker, target
        self._tmp = folder / "tmp"
        self._chance = random.Random(sizes.seed)
        self.oracle = Oracle()
        self.report = Report(self.oracle.findings)
        self._load = Load(
            broker.bootstrap_servers,
            TOPIC,
            PARTITIONS,
            self.oracle,
            per_second=sizes.per_second,
            at_least=sizes.records,
        )
        self._group = Group(broker.bootstrap_servers, f"connect-{TOPIC}", TOPIC, PARTITIONS)
        self.sink = SinkProcess(
            connector(TOPIC, target.endpoint(), self._tmp),
            folder,
            {"PARQUET_SINK_BOOTSTRAP_SERVERS": broker.bootstrap_servers},
        )
        self._began = time.monotonic()
        self._sampled = self._killed = 0.0
        self._committed: dict[int, int] = {}
        self._dying: dict[int, float] = {}
        self._victims = Victims()

    def run(self) -> Report:
        """The whole run. Raises Failed; `close` must follow in any case."""
        self._broker.create_topic(TOPIC, PARTITIONS)
        self._target.client.order_faults({"latency_s": LATENCY_S})
        self._load.start()
        self._start_sink()
        self._until(lambda: sum(self._committed.values()) > 0, "no offset was committed after the first start")
        self._say("the sink delivers")
        for kill in plan(self._sizes.kills, self._chance):
            self._do(kill)
        self._until(lambda: not self._open_hits() and self._load.enough, "not everything was recovered or produced")
        stop = self._stop_cleanly()
        self._finish()
        self._judge(stop)
        return self.report

    def close(self) -> None:
        """Ends every process of the sink, and the load."""
        self._load.stop()
        self.sink.end_all()
        self._group.close()

    def _do(self, kill: Kill) -> None:
        """Waits for the moment, kills, and brings back what does not come back by itself."""
        if kill.patient:
            self._until(lambda: not self._open_hits(), "the kill before was not recovered from")
        due = max(time.monotonic() if kill.patient else self._killed, 0.0) + kill.delay_s
        self._until(lambda: time.monotonic() >= due, "")
        self._group.committed()
        if kill.kind is Kind.TARGET:
            self._hit(kill.kind, self._target.pid or 0)
            self._target.kill()
            resume = time.monotonic() + self._chance.uniform(0.0, 2.0)
            self._until(lambda: time.monotonic() >= resume, "")
            self._target.restart()
            self._target.client.order_faults({"latency_s": LATENCY_S})
            return
        victim = self._victim(kill.kind)
        processes.kill(victim)
        self._hit(kill.kind, victim.pid)

    def _victim(self, kind: Kind) -> processes.Process:
        """A process of this kind, waiting until there is one."""
        found: list[processes.Process] = []

        def look() -> bool:
            found[:] = self._victims.find(kind, self.sink.processes(), self.sink.pid)
            return bool(found)

        self._until(look, f"too few faults: no process to kill as {kind}", VICTIM_S)
        return self._chance.choice(found)

    def _hit(self, kind: Kind, pid: int) -> None:
        self._killed = time.monotonic()
        hit = Hit(len(self.report.hits) + 1, kind, self._killed, self.oracle.ends())
        self.report.hits.append(hit)
        self._say(
            f"kill {hit.number}/{self._sizes.kills}: {kind} (process {pid}); produced {self.oracle.records}, "
            f"committed {sum(self._committed.values())}"
        )

    def _open_hits(self) -> list[Hit]:
        return [hit for hit in self.report.hits if hit.recovered_s is None]

    def _until(self, done: Callable[[], bool], trouble: str, within_s: float | None = None) -> None:
        """Looks after everything until `done()`. Raises Failed when the time is over."""
        began = time.monotonic()
        while not done():
            self._look()
            now = time.monotonic()
            if now - self._began > self._sizes.timeout_s or (within_s is not None and now - began > within_s):
                raise Failed(f"{trouble or 'the run takes too long'} (after {now - self._began:.0f} s)")
            time.sleep(LOOK_S)

    def _look(self) -> None:
        """One look: the load, the sink's end, orphans, committed offsets, recoveries."""
        if self._load.failure:
            raise Failed(f"the load failed: {self._load.failure}")
        if (status := self.sink.ended()) is not None:
            self._ended(status)
        self._watch_orphans()
        if time.monotonic() - self._sampled >= SAMPLE_S:
            self._sampled = time.monotonic()
            self._committed = self._group.committed()
            self._recoveries()

    def _recoveries(self) -> None:
        """A kill is recovered from when everything produced before it is committed."""
        for hit in self._open_hits():
            if all(self._committed.get(partition, 0) >= end for partition, end in hit.ends.items()):
                hit.recovered_s = time.monotonic() - hit.at
                self._say(f"kill {hit.number} ({hit.kind}) recovered from in {hit.recovered_s:.1f} s")

    def _ended(self, status: int) -> None:
        """The sink ended without being asked to: started again at once, as a service manager does."""
        self.report.ends.append(status)
        meant = bool(self.report.hits) and any(hit.kind in ENDS_SINK for hit in self._open_hits())
        self._say(f"the sink ended with status {status}; starting it again")
        if not meant:
            self._say(f"it was not killed; its last words:\n{self.sink.last_words()}")
        if len(self.report.ends) > 2 * self._sizes.kills + 2:
            raise Failed("the sink ends again and again")
        self._start_sink()

    def _start_sink(self) -> None:
        for process in self.sink.left_over():
            self._dying.setdefault(process.pid, self._killed)
        self.sink.start()

    def _watch_orphans(self) -> None:
        """Children of a killed driver must end by themselves."""
        if not self._dying:
            return
        alive = {process.pid for process in self.sink.left_over()}
        for pid, since in list(self._dying.items()):
            lived = time.monotonic() - since
            self.report.orphans_s = max(self.report.orphans_s, lived)
            if pid not in alive:
                del self._dying[pid]
            elif lived > ORPHANS_S:
                raise Failed(f"process {pid} outlived its driver by {lived:.0f} s")

    def _stop_cleanly(self) -> Stop:
        """SIGTERM under load; how things stand then."""
        began = time.monotonic()
        status = self.sink.terminate(STOP_S)
        self._say(f"SIGTERM: exit status {status} after {time.monotonic() - began:.1f} s")
        if status != 0:
            self.report.troubles.append(f"SIGTERM ended the sink with status {status}:\n{self.sink.last_words()}")
        self._load.stop()
        with closing(self._target.client) as client:
            return Stop.of(self._group.committed(), client.files(TABLE))

    def _finish(self) -> None:
        """One more start delivers the rest and ends by itself."""
        began = time.monotonic()
        status = self.sink.run_to_end(DRAIN_S, "--until-caught-up")
        self._say(f"--until-caught-up: exit status {status} after {time.monotonic() - began:.1f} s")
        if status != 0:
            self.report.troubles.append(f"--until-caught-up ended with status {status}:\n{self.sink.last_words()}")
        committed, ends = self._group.committed(), self.oracle.ends()
        if committed != ends:
            self.report.troubles.append(f"committed at the end: {committed}, produced: {ends}")
        left = [path for path in self._tmp.rglob("*.part") if path.is_file()]
        if left:
            self.report.troubles.append(f"{len(left)} local files were left, such as {left[0]}")
        self._last_processes()

    def _last_processes(self) -> None:
        """No process of any start may be left."""
        deadline = time.monotonic() + ORPHANS_S
        while (alive := self.sink.left_over()) and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        if alive:
            self.report.troubles.append(f"processes were left: {alive}")

    def _judge(self, stop: Stop) -> None:
        """The oracle's word on everything."""
        with closing(self._target.client) as client:
            self.report.files = judge(self.oracle, client, TABLE, self._group.samples, stop)
        self.report.records = self.oracle.records
        if len(self.report.hits) < self._sizes.kills:
            self.report.troubles.append(f"too few faults: {len(self.report.hits)} of {self._sizes.kills}")
        if self.report.records < self._sizes.records:
            self.report.troubles.append(f"too few records: {self.report.records} of {self._sizes.records}")

    def _say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._began:6.1f} s] {text}", flush=True)
