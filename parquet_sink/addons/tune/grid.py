"""Which settings are simulated, and their simulation: each that can differ from the others once."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from parquet_sink.addons.tune.model import Simulated, Thresholds
from parquet_sink.addons.tune.objectives import Aim, Objective
from parquet_sink.addons.tune.simulate import CUT, Simulator
from parquet_sink.files.rotation import Reason

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
INTERVALS_MS: Final = (
    *(SECOND, 2 * SECOND, 3 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 20 * SECOND, 30 * SECOND, 45 * SECOND),
    *(MINUTE, 2 * MINUTE, 3 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 20 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 4 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR),
)
RECORDS: Final = (1_000, 10_000, 50_000, 100_000, 500_000, 1_000_000)
SIZES: Final = (1_000_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000)
LEAST_INTERVAL_MS, LEAST_SIZE = 1_000, 100_000

Progress = Callable[[int, int], None]
"""Is told how many of how many settings are done."""


def grid(objectives: Sequence[Objective] = (), present: Thresholds | None = None) -> list[Thresholds]:
    """Round settings over all that is useful, and some beside what is asked for and what is set."""
    intervals, records, sizes = set(INTERVALS_MS), set(RECORDS), set(SIZES)
    for objective in objectives:
        if objective.aim is Aim.FRESHNESS:
            near = (
                int(objective.value * share) * 1_000 for share in (0.5, 0.65, 0.75, 0.8, 0.85, 0.9, 0.95, 1, 1.5, 2)
            )
            intervals |= {max(ms, LEAST_INTERVAL_MS) for ms in near}
        elif objective.aim is Aim.FILE_SIZE:
            sizes |= {max(round(objective.value * share), LEAST_SIZE) for share in (0.8, 1, 1.25)}
    if present is not None:
        intervals.add(present.commit_interval_ms)
        records.add(present.commit_records)
        sizes.add(present.commit_size_bytes)
    by_clock = (-1, "UTC") if present is None else (present.schedule_interval_ms, present.timezone)
    return [Thresholds(s, r, i, *by_clock) for i in sorted(intervals) for r in sorted(records) for s in sorted(sizes)]


def sweep(
    simulator: Simulator, settings: Sequence[Thresholds], progress: Progress = lambda done, of: None
) -> list[Simulated]:
    """What each of the settings gives, in their order.

    Where neither records nor bytes end a file, higher thresholds change nothing: then what is known is what they give.
    """
    known = _Known()
    found: dict[Thresholds, Simulated] = {}
    for done, one in enumerate(sorted(set(settings), key=_order)):
        progress(done, len(settings))
        result = known.same_as(one)
        if result is None:
            result, ended_by = simulator.watched(one)
            known.add(result, ended_by)
        found[one] = replace(result, thresholds=one)
    progress(len(settings), len(settings))
    return [found[one] for one in settings]


def _order(one: Thresholds) -> tuple[int, int, int]:
    return one.commit_interval_ms, one.commit_records, one.commit_size_bytes


class _Known:
    """Results of one commit interval, and what ended files there."""

    def __init__(self) -> None:
        self._interval_ms = 0
        self._results: list[tuple[Simulated, frozenset[str]]] = []

    def add(self, result: Simulated, ended_by: frozenset[str]) -> None:
        if result.thresholds.commit_interval_ms != self._interval_ms:
            self._interval_ms, self._results = result.thresholds.commit_interval_ms, []
        self._results.append((result, ended_by))

    def same_as(self, wanted: Thresholds) -> Simulated | None:
        """A result that is that of `wanted`, too; None when there is none yet."""
        if wanted.commit_interval_ms != self._interval_ms:
            return None
        return next((result for result, by in self._results if _same(result.thresholds, by, wanted)), None)


def _same(known: Thresholds, ended_by: frozenset[str], wanted: Thresholds) -> bool:
    """Whether the thresholds that `wanted` has higher ended nothing."""
    more_records = wanted.commit_records - known.commit_records
    more_bytes = wanted.commit_size_bytes - known.commit_size_bytes
    if more_records < 0 or more_bytes < 0 or CUT in ended_by:
        return False
    return not (more_records and Reason.RECORDS in ended_by) and not (more_bytes and Reason.SIZE in ended_by)
