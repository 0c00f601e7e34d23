"""One crash run: load, kills, recovery, a clean stop, a last start, and the oracle's judgement."""

import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from integration import processes
from integration.crash import archived
from integration.crash.kills import ENDS_SINK, Kill, Kind, Victims, plan
from integration.crash.report import Report, Sizes
from integration.crash.streams import LARGE_FILE_BYTES, large, small
from integration.oracle.stream import Stream
from integration.oracle.trial import Trial
from integration.s3.site import S3Site
from integration.sink_process import SinkProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess

TOPIC: Final = "crash"
VICTIM_S: Final = 180.0


class Campaign:
    """The kills of one run, with many small files, and large ones. Broker and target are given."""

    def __init__(self, sizes: Sizes, broker: Broker, target: TargetProcess | S3Site, folder: Path) -> None:
        self._sizes, self._target = sizes, target
        self._chance = random.Random(sizes.seed)
        self._killed = 0.0
        self._victims = Victims()
        tmp = folder / "tmp"
        kinds = (small(TOPIC, sizes.per_second, sizes.records), large(f"{TOPIC}-large"))
        self._streams = [Stream(replace(kind, raw=sizes.raw), broker) for kind in kinds]
        self.report = Report([stream.oracle.findings for stream in self._streams])
        self._archive = folder / "archive"
        more = archived.keys(self._archive, sizes.archive) if sizes.archive != "none" else {}
        sink = SinkProcess(
            [stream.connector(target.endpoint(), tmp) | target.keys | more for stream in self._streams],
            folder,
            {"PARQUET_SINK_BOOTSTRAP_SERVERS": broker.bootstrap_servers},
        )
        about = (self._streams, sink, target, tmp, self.report)
        self.trial = Trial(*about, timeout_s=sizes.timeout_s, most_ends=2 * sizes.kills + 2)

    def run(self) -> Report:
        """The whole run. Raises Failed; `trial.close` must follow in any case."""
        self._slow_down_target()
        self.trial.start()
        for kill in plan(self._sizes.kills, self._chance):
            self._do(kill)
        self.trial.until(
            lambda: not self.trial.open_hits and self._enough(), "not everything was recovered or produced"
        )
        stops = self.trial.stop_cleanly()
        self.trial.finish()
        sizes = self.trial.judge(stops)
        if self._sizes.archive != "none":
            self.report.troubles += archived.troubles(self._archive, self._streams, self._target.client)
        self._check(sum(size >= LARGE_FILE_BYTES for size in sizes))
        if isinstance(self._target, S3Site) and (left := self._target.unfinished()):
            self.report.troubles.append(f"{len(left)} uploads in parts were left, such as of {left[0]}")
        return self.report

    def _enough(self) -> bool:
        return all(stream.load.enough for stream in self._streams)

    def _slow_down_target(self) -> None:
        """The target takes time to answer, so that kills find uploads under way. The longer name is told first."""
        for stream in sorted(self._streams, key=lambda stream: -len(stream.kind.table)):
            self._target.client.order_faults({"latency_s": stream.kind.latency_s, "match": stream.kind.table})

    def _do(self, kill: Kill) -> None:
        """Waits for the moment, kills, and brings back what does not come back by itself."""
        trial = self.trial
        if kill.patient:
            trial.until(lambda: not trial.open_hits, "the kill before was not recovered from")
        due = max(time.monotonic() if kill.patient else self._killed, 0.0) + kill.delay_s
        trial.until(lambda: time.monotonic() >= due, "")
        trial.ask()
        if kill.kind is Kind.TARGET:
            self._hit(kill.kind, self._target.pid or 0)
            self._target.kill()
            trial.wait(self._chance.uniform(0.0, 2.0))
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
            found[:] = self._victims.find(kind, self.trial.sink.processes(), self.trial.sink.pid)
            return bool(found)

        self.trial.until(look, f"too few faults: no process to kill as {kind}", VICTIM_S)
        return self._chance.choice(found)

    def _hit(self, kind: Kind, pid: int) -> None:
        self._killed = time.monotonic()
        number = len(self.report.hits) + 1
        self.trial.hit(kind, f"kill {number}/{self._sizes.kills}: {kind} (process {pid})", ends_sink=kind in ENDS_SINK)

    def _check(self, large_files: int) -> None:
        """Whether the run was large enough to say anything."""
        report, sizes = self.report, self._sizes
        report.large_files = large_files
        if large_files < 2:
            report.troubles.append(f"too few files of 20 MB and more: {large_files}")
        if len(report.hits) < sizes.kills:
            report.troubles.append(f"too few faults: {len(report.hits)} of {sizes.kills}")
        if report.records < sizes.records:
            report.troubles.append(f"too few records: {report.records} of {sizes.records}")
