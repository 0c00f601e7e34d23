"""One soak: the peak, half of it with faults for so many minutes, a clean stop, a last start, the judgement."""

import random
import time
from pathlib import Path
from typing import Final

from integration.oracle import records
from integration.oracle.stream import Kind, Stream
from integration.oracle.trial import Failed, Trial
from integration.sink_process import SinkProcess
from integration.soak.faults import Fault, Faults
from integration.soak.measures import LIVE_HEAPS, Measures
from integration.soak.report import Plan, Report
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess

RECOVERY_S: Final = 240.0
MOST_AHEAD: Final = 100_000
"""Records that the load may be ahead of the commits while the peak is measured: some seconds of work."""
PEAK_WARM_UP_S: Final = 10.0
AS_FAST_AS_CAN_BE: Final = 1_000_000.0
FIRST_RATE: Final = 500.0
STEADY: Final = {
    "connect.ems.commit.size.bytes": "1000000",
    "connect.ems.commit.records": "10000",
    "connect.ems.commit.interval.ms": "5000",
    "connect.ems.history.max.files": "500",  # its bound is reached within minutes
}
RARE: Final = {
    "connect.ems.commit.size.bytes": "1000000",
    "connect.ems.commit.records": "10000",
    "connect.ems.commit.interval.ms": "3000",
    "connect.ems.history.max.files": "100",
}
RARE_PER_SECOND: Final = 2.0


class Soak:
    """A connector of four topic-partitions at half of the peak, and one that gets few records."""

    def __init__(self, plan: Plan, broker: Broker, target: TargetProcess, folder: Path) -> None:
        self._plan = plan
        chance = random.Random(plan.seed)
        kinds = (
            Kind("soak", "SOAK", 4, 0.0, STEADY, records.value_of, FIRST_RATE, 0),
            Kind("rare", "RARE", 2, 0.0, RARE, records.value_of, RARE_PER_SECOND, 0),
        )
        self._streams = [Stream(kind, broker) for kind in kinds]
        self.report = Report([stream.oracle.findings for stream in self._streams])
        tmp, system_tmp = folder / "tmp", folder / "system-tmp"
        system_tmp.mkdir()
        sink = SinkProcess(
            [stream.connector(target.endpoint(), tmp) for stream in self._streams],
            folder,
            {"PARQUET_SINK_BOOTSTRAP_SERVERS": broker.bootstrap_servers, "TMPDIR": str(system_tmp)},
        )
        about = (self._streams, sink, target, tmp, self.report)
        self.trial = Trial(*about, timeout_s=3 * plan.seconds + 1_200, most_ends=8)
        self.measures = Measures(tmp, system_tmp, plan.sample_s, plan.seconds / LIVE_HEAPS)
        self._faults = Faults(self.trial, broker, target, chance, plan.pause_s)
        self._chance = chance

    def run(self) -> Report:
        """The whole run. Raises Failed; `trial.close` must follow in any case."""
        trial, plan, report = self.trial, self._plan, self.report
        trial.start()
        report.per_second = plan.per_second or self._half_of_peak()
        self._streams[0].load.pace(report.per_second)
        trial.say(f"{report.per_second:.0f} records a second from now on")
        self._until_recovered("the backlog of the peak was not worked off")
        for fault in self._faults.ends_of_sink:
            self._do(fault)
        trial.watchers.append(lambda: self.measures.look(trial.sink.pid))
        trial.say(f"from now on one life of the sink is measured, for {plan.minutes} minutes")
        began = time.monotonic()
        for fault in self._faults.rounds():
            self._do(fault)
            if time.monotonic() - began >= plan.seconds:
                break
        report.load_s = time.monotonic() - began
        trial.watchers.clear()
        self._judge_slopes()
        stops = trial.stop_cleanly()
        trial.finish()
        trial.judge(stops)
        return report

    def _do(self, fault: Fault) -> None:
        """After a pause, and when the one before was recovered from."""
        self.trial.wait(self._chance.uniform(0.2, 1.0) * self._plan.pause_s)
        what = fault.do()
        self.trial.hit(fault.kind, f"{fault.kind}: {what}", ends_sink=fault.ends_sink)
        self._until_recovered(f"{fault.kind}: not recovered from")

    def _until_recovered(self, trouble: str) -> None:
        self.trial.until(lambda: not self.trial.open_hits and self._near(), trouble, RECOVERY_S)

    def _near(self) -> bool:
        """Whether the sink keeps up with the load again: ten seconds of it, and a file of each, may be under way."""
        ahead = sum(sum(one.oracle.ends().values()) for one in self._streams) - self.trial.committed
        return ahead < 10 * self.report.per_second + 1_000

    def _half_of_peak(self) -> float:
        """The load keeps so far ahead that the sink always has work, and no farther."""
        load, trial = self._streams[0].load, self.trial

        def keep_ahead() -> None:
            ahead = load.sent - sum(self._streams[0].committed.values())
            wanted = AS_FAST_AS_CAN_BE if ahead < MOST_AHEAD else 0.0
            if load.per_second != wanted:
                load.pace(wanted)

        trial.watchers.append(keep_ahead)
        trial.wait(PEAK_WARM_UP_S)
        first, at = trial.committed, time.monotonic()
        trial.wait(self._plan.peak_s)
        seconds = time.monotonic() - at
        self.report.peak = (trial.committed - first) / seconds
        trial.watchers.clear()
        trial.say(f"peak: {self.report.peak:.0f} records a second, over {seconds:.0f} s")
        if self.report.peak <= 0:
            raise Failed("nothing was delivered while the peak was measured")
        return self.report.peak / 2

    def _judge_slopes(self) -> None:
        measured = self.measures.measured()
        self.report.measured_s = measured[-1].at - measured[0].at if measured else 0.0
        self.report.slopes = self.measures.slopes()
        for name, found in self.report.slopes.items():
            if found is not None and not found.flat:
                self.report.troubles.append(f"{name} grows")
        if self.report.flat is None:
            self.report.troubles.append("the run was too short to tell whether anything grows: give more MINUTES")
