"""One crash run: load, kills, recovery, a clean stop, a last start, and the oracle's judgement."""

import random
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from integration import processes
from integration.crash.kills import ENDS_SINK, Kill, Kind, Victims, plan
from integration.crash.report import Failed, Hit, Report, Sizes
from integration.crash.streams import LARGE_FILE_BYTES, large, small
from integration.oracle.judge import Stop
from integration.oracle.stream import Stream
from integration.sink_process import SinkProcess
from parquet_sink.devkit.broker import Broker
from parquet_sink.devkit.target.process import TargetProcess

TOPIC: Final = "crash"
LOOK_S: Final = 0.05
SAMPLE_S: Final = 0.4
VICTIM_S: Final = 180.0
STOP_S: Final = 120.0
DRAIN_S: Final = 240.0
ORPHANS_S: Final = 30.0


class Campaign:
    """Owns the sink and the streams of one run: many small files, and large ones. Broker and target are given."""

    def __init__(self, sizes: Sizes, broker: Broker, target: TargetProcess, folder: Path) -> None:
        self._sizes, self._target = sizes, target
        self._tmp = folder / "tmp"
        self._chance = random.Random(sizes.seed)
        kinds = (small(TOPIC, sizes.per_second, sizes.records), large(f"{TOPIC}-large"))
        self.streams = [Stream(kind, broker) for kind in kinds]
        self.report = Report([stream.oracle.findings for stream in self.streams])
        self.sink = SinkProcess(
            [stream.connector(target.endpoint(), self._tmp) for stream in self.streams],
            folder,
            {"PARQUET_SINK_BOOTSTRAP_SERVERS": broker.bootstrap_servers},
        )
        self._began = time.monotonic()
        self._sampled = self._killed = 0.0
        self._dying: dict[int, float] = {}
        self._victims = Victims()

    def run(self) -> Report:
        """The whole run. Raises Failed; `close` must follow in any case."""
        for stream in self.streams:
            stream.start()
        self._slow_down_target()
        self._start_sink()
        self._until(lambda: all(map(_delivers, self.streams)), "no offset was committed after the first start")
        self._say("the sink delivers")
        for kill in plan(self._sizes.kills, self._chance):
            self._do(kill)
        self._until(lambda: not self._open_hits() and self._enough(), "not everything was recovered or produced")
        stops = self._stop_cleanly()
        self._finish()
        self._judge(stops)
        return self.report

    def close(self) -> None:
        """Ends every process of the sink, and the load."""
        self.sink.end_all()
        for stream in self.streams:
            stream.close()

    @property
    def records(self) -> int:
        """Acknowledged records of all streams."""
        return sum(stream.oracle.records for stream in self.streams)

    def _enough(self) -> bool:
        return all(stream.load.enough for stream in self.streams)

    def _slow_down_target(self) -> None:
        """The target takes time to answer, so that kills find uploads under way. The longer name is told first."""
        for stream in sorted(self.streams, key=lambda stream: -len(stream.kind.table)):
            self._target.client.order_faults({"latency_s": stream.kind.latency_s, "match": stream.kind.table})

    def _do(self, kill: Kill) -> None:
        """Waits for the moment, kills, and brings back what does not come back by itself."""
        if kill.patient:
            self._until(lambda: not self._open_hits(), "the kill before was not recovered from")
        due = max(time.monotonic() if kill.patient else self._killed, 0.0) + kill.delay_s
        self._until(lambda: time.monotonic() >= due, "")
        self._ask()
        if kill.kind is Kind.TARGET:
            self._hit(kill.kind, self._target.pid or 0)
            self._target.kill()
            resume = time.monotonic() + self._chance.uniform(0.0, 2.0)
            self._until(lambda: time.monotonic() >= resume, "")
            self._target.restart()
            self._slow_down_target()
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
        ends = [stream.oracle.ends() for stream in self.streams]
        hit = Hit(len(self.report.hits) + 1, kind, self._killed, ends)
        self.report.hits.append(hit)
        self._say(
            f"kill {hit.number}/{self._sizes.kills}: {kind} (process {pid}); produced {self.records}, "
            f"committed {sum(sum(stream.committed.values()) for stream in self.streams)}"
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
        for stream in self.streams:
            if stream.load.failure:
                raise Failed(f"the load failed: {stream.load.failure}")
        if (status := self.sink.ended()) is not None:
            self._ended(status)
        self._watch_orphans()
        if time.monotonic() - self._sampled >= SAMPLE_S:
            self._sampled = time.monotonic()
            self._ask()
            self._recoveries()
            self._check_failures()

    def _check_failures(self) -> None:
        """No connector may fail for good while Java lives."""
        if not any(hit.kind in ENDS_SINK for hit in self._open_hits()) and (failed := self.sink.failed()):
            raise Failed(failed[0])

    def _ask(self) -> None:
        for stream in self.streams:
            stream.look()

    def _recoveries(self) -> None:
        """A kill is recovered from when everything produced before it is committed."""
        for hit in self._open_hits():
            if all(stream.reached(ends) for stream, ends in zip(self.streams, hit.ends, strict=True)):
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

    def _stop_cleanly(self) -> list[Stop]:
        """SIGTERM under load; how things stand then."""
        began = time.monotonic()
        status = self.sink.terminate(STOP_S)
        self._say(f"SIGTERM: exit status {status} after {time.monotonic() - began:.1f} s")
        if status != 0:
            self.report.troubles.append(f"SIGTERM ended the sink with status {status}:\n{self.sink.last_words()}")
        for stream in self.streams:
            stream.load.stop()
        with closing(self._target.client) as client:
            return [stream.stopped(client) for stream in self.streams]

    def _finish(self) -> None:
        """One more start delivers the rest and ends by itself."""
        began = time.monotonic()
        status = self.sink.run_to_end(DRAIN_S, "--until-caught-up")
        self._say(f"--until-caught-up: exit status {status} after {time.monotonic() - began:.1f} s")
        if status != 0:
            self.report.troubles.append(f"--until-caught-up ended with status {status}:\n{self.sink.last_words()}")
        self._ask()
        for stream in self.streams:
            if stream.committed != (ends := stream.oracle.ends()):
                self.report.troubles.append(f"committed at the end: {stream.committed}, produced: {ends}")
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

    def _judge(self, stops: list[Stop]) -> None:
        """The oracles' word on everything."""
        with closing(self._target.client) as client:
            found = [stream.judge(client, stop) for stream, stop in zip(self.streams, stops, strict=True)]
        sizes = [size for one in found for size in one]
        self.report.files = len(sizes)
        self.report.large_files = sum(size >= LARGE_FILE_BYTES for size in sizes)
        self.report.records = self.records
        if self.report.large_files < 2:
            self.report.troubles.append(f"too few files of 20 MB and more: {self.report.large_files}")
        if len(self.report.hits) < self._sizes.kills:
            self.report.troubles.append(f"too few faults: {len(self.report.hits)} of {self._sizes.kills}")
        if self.report.records < self._sizes.records:
            self.report.troubles.append(f"too few records: {self.report.records} of {self._sizes.records}")

    def _say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._began:6.1f} s] {text}", flush=True)


def _delivers(stream: Stream) -> bool:
    return sum(stream.committed.values()) > 0
