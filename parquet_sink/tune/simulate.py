"""Simulates thresholds under a load, for as long as it takes to know what they give."""

from collections.abc import Sequence
from typing import Final

from parquet_sink.kafka.planning.admission import records_per_file
from parquet_sink.tune.files import learned
from parquet_sink.tune.model import Durations, Load, Machine, PartitionLoad, Simulated, Thresholds
from parquet_sink.tune.outcome import Curves, Window, outcome
from parquet_sink.tune.simulation import TYPICAL_RECORDS, SimulatedConnector, run_together

CUT: Final = "cut"
CYCLES: Final = 24
"""Commit intervals that are looked at, where files come so often."""
SLOW_CYCLES: Final = 8
"""Files of the topic-partition with the fewest."""
LEAST_CYCLES: Final = 2
MOST_FILES: Final = 30_000
"""Files that are looked at, about: where there are more, less of the time is."""
SETTLE: Final = 1.0
"""Commit intervals until the start does not show any more."""
BEHIND_MS: Final = 600_000.0
"""How long is waited for the last records of a window, beside what the thresholds ask for."""


class Simulator:
    """Simulates many thresholds under one load, on one machine."""

    def __init__(self, load: Load, durations: Durations | None = None, machine: Machine | None = None) -> None:
        self.load, self.durations, self.machine = load, durations or Durations(), machine or Machine()
        self._curves = Curves(load)

    def run(self, thresholds: Thresholds, window: Window | None = None) -> Simulated:
        """What they give. window: the records that count; None: as many as tell."""
        return self.watched(thresholds, window)[0]

    def watched(self, thresholds: Thresholds, window: Window | None = None) -> tuple[Simulated, frozenset[str]]:
        """The same, and what ended files, in the window or not: reasons, and "cut" where a range was cut short.

        Where neither records nor bytes did, higher `commit.records` and `commit.size.bytes` give the same.
        """
        looked = window or self._window(thresholds)
        connector = SimulatedConnector(self.load, thresholds, self.durations, self.machine)
        run_together([connector], self.machine, [_until_ms(thresholds, looked)])
        found = outcome(connector, thresholds, self._curves, self.durations, looked)
        ended_by = {str(one.reason) for one in connector.sent} | ({CUT} if connector.cut else set())
        return found, frozenset(ended_by)

    def _window(self, thresholds: Thresholds) -> Window:
        return window_for(self.load, thresholds)


def window_for(load: Load, thresholds: Thresholds) -> Window:
    """From where the start is forgotten, for the load's span and some files of each topic-partition, if it can be."""
    interval = float(thresholds.commit_interval_ms)
    settle = 0.0 if any(one.backlog for one in load.partitions) else SETTLE * interval
    cycles = [cycle for one in load.partitions if (cycle := _cycle_ms(one, thresholds)) > 0]
    wanted = max(load.span_ms, CYCLES * interval, SLOW_CYCLES * max(cycles, default=0.0))
    per_ms = sum(1 / cycle for cycle in cycles)
    most = max(MOST_FILES / per_ms, LEAST_CYCLES * interval) if per_ms else wanted
    return Window(settle, settle + min(wanted, most))


def _cycle_ms(one: PartitionLoad, thresholds: Thresholds) -> float:
    """Milliseconds from file to file of a topic-partition, about; 0 where there are none."""
    rate = one.arrivals.per_second / 1000
    if not rate:
        return 0.0
    full = records_per_file(learned(TYPICAL_RECORDS, one.sizes), thresholds) / rate
    return max(min(thresholds.commit_interval_ms + 1 / rate, full), 1.0)


def _until_ms(thresholds: Thresholds, window: Window) -> float:
    """Until the window's last records are due, and some time for what is behind."""
    return window.to_ms + 2 * thresholds.commit_interval_ms + min(BEHIND_MS, window.to_ms)


def simulate(
    load: Load,
    thresholds: Thresholds,
    durations: Durations | None = None,
    machine: Machine | None = None,
    window: Window | None = None,
) -> Simulated:
    """What thresholds give under a load. window: the records that count; None: as many as tell."""
    return Simulator(load, durations, machine).run(thresholds, window)


def simulate_together(
    connectors: Sequence[tuple[Load, Thresholds]], durations: Durations | None = None, machine: Machine | None = None
) -> list[Simulated]:
    """What each of several connectors gets that share the slots of one program; in their order."""
    durations = durations or Durations()
    machine = machine or Machine(slots=len(connectors) + 3, connectors=len(connectors))
    windows = [window_for(load, thresholds) for load, thresholds in connectors]
    simulated = [SimulatedConnector(load, thresholds, durations, machine) for load, thresholds in connectors]
    until = [_until_ms(thresholds, window) for (_, thresholds), window in zip(connectors, windows, strict=True)]
    run_together(simulated, machine, until)
    return [
        outcome(one, thresholds, Curves(load), durations, window)
        for one, (load, thresholds), window in zip(simulated, connectors, windows, strict=True)
    ]
