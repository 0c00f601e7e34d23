"""Simulates thresholds under a load, for as long as it takes to know what they give."""

from collections.abc import Sequence
from typing import Final

from parquet_sink.addons.tune.model import Durations, Load, Machine, PartitionLoad, Simulated, Thresholds
from parquet_sink.addons.tune.outcome import Curves, Window, outcome
from parquet_sink.addons.tune.simulation import TYPICAL_RECORDS, SimulatedConnector, run_together
from parquet_sink.addons.tune.work import learned
from parquet_sink.planner.admission import records_per_file

CUT: Final = "cut"
CYCLES: Final = 24
"""Files of the slowest topic-partition that are looked at, where it has as many."""
MOST_FILES: Final = 5_000
MOST_FILES_OF_SPAN: Final = 20_000
"""Files that are looked at, about, and as many as that where the load repeats itself only so late."""
LEAST_MS: Final = 60_000.0
BEHIND_MS: Final = 600_000.0
"""How long is waited for the last records of a window, at most, beside what the thresholds ask for."""


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
        connector = SimulatedConnector(self.load, thresholds, self.durations, self.machine, looked.to_ms)
        run_together([connector], self.machine, [_until_ms(thresholds, looked)])
        found = outcome(connector, thresholds, self._curves, self.durations, looked)
        ended_by = {str(one.reason) for one in connector.sent} | ({CUT} if connector.cut else set())
        return found, frozenset(ended_by)

    def _window(self, thresholds: Thresholds) -> Window:
        return window_for(self.load, thresholds)


def window_for(load: Load, thresholds: Thresholds) -> Window:
    """The load's span and some files of each topic-partition, if that is not too much to look at.

    It begins with the simulation: nothing waits then, as after a file.
    """
    cycles = [cycle for one in load.partitions if (cycle := _cycle_ms(one, thresholds)) > 0]
    per_ms = sum(1 / cycle for cycle in cycles) or 1.0
    some = min(CYCLES * max(cycles, default=0.0), MOST_FILES / per_ms)
    span = min(load.span_ms, MOST_FILES_OF_SPAN / per_ms)
    return Window(0.0, max(some, span, LEAST_MS))


def _cycle_ms(one: PartitionLoad, thresholds: Thresholds) -> float:
    """Milliseconds from file to file of a topic-partition, about; 0 where there are none."""
    rate = one.arrivals.per_second / 1000
    if not rate:
        return 0.0
    full = records_per_file(learned(TYPICAL_RECORDS, one.sizes), thresholds) / rate
    by_clock = thresholds.schedule_interval_ms if thresholds.schedule_interval_ms > 0 else full
    return max(min(thresholds.commit_interval_ms + 1 / rate, full, by_clock), 1.0)


def _until_ms(thresholds: Thresholds, window: Window) -> float:
    """When the window's last records are due, and some time for what is behind."""
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
    connectors: Sequence[tuple[Load, Thresholds]],
    durations: Durations | None = None,
    machine: Machine | None = None,
    windows: Sequence[Window] | None = None,
) -> list[Simulated]:
    """What each of several connectors gets that share the slots of one program; in their order.

    windows: the records that count, of each; None: as many as tell.
    """
    durations = durations or Durations()
    machine = machine or Machine(slots=len(connectors) + 3, connectors=len(connectors))
    windows = windows or [window_for(load, thresholds) for load, thresholds in connectors]
    simulated = [
        SimulatedConnector(load, thresholds, durations, machine, window.to_ms)
        for (load, thresholds), window in zip(connectors, windows, strict=True)
    ]
    until = [_until_ms(thresholds, window) for (_, thresholds), window in zip(connectors, windows, strict=True)]
    run_together(simulated, machine, until)
    return [
        outcome(one, thresholds, Curves(load), durations, window)
        for one, (load, thresholds), window in zip(simulated, connectors, windows, strict=True)
    ]
