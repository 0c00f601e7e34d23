"""Predicted and measured figures of one load, side by side. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from integration.bench.figures import Accepted
from integration.tune.feed import Stamps
from integration.tune.loads import MeasuredLoad
from parquet_sink.addons.tune.model import Arrivals, Load, PartitionLoad, Simulated, Sizes
from parquet_sink.addons.tune.outcome import Window, percentiles

TOLERANCE = 0.15
AFTER_MS = 600_000.0
"""Nothing comes for so long after the last record: the load does not begin anew."""


@dataclass(frozen=True)
class Figures:
    """Seconds of freshness, and files per hour."""

    p50: float
    p95: float
    p99: float
    max: float
    files_per_hour: float

    @classmethod
    def of(cls, found: Simulated) -> "Figures":
        """What the simulation says. Raises AssertionError when it delivered nothing."""
        fresh = found.freshness
        assert fresh is not None, "the simulation delivered nothing"
        return cls(fresh.p50_s, fresh.p95_s, fresh.p99_s, fresh.max_s, found.files_per_hour)


@dataclass(frozen=True)
class Compared:
    """One load, both ways. records: that were in the window."""

    name: str
    predicted: Figures
    measured: Figures
    records: int

    @property
    def deviations(self) -> dict[str, float]:
        """Of each figure that counts: predicted by measured, less 1."""
        names = ("p50", "p95", "p99", "files_per_hour")
        return {name: getattr(self.predicted, name) / getattr(self.measured, name) - 1 for name in names}

    @property
    def worst(self) -> float:
        return max(map(abs, self.deviations.values()))


def load_of(one: MeasuredLoad, stamps: Stamps, base_s: float, seconds: float, sizes: Sizes) -> Load:
    """The load as it arrived; the simulation begins at `base_s`.

    A backlog's transaction ends with a marker, which has an offset, and an age, as a record has.
    """
    span_ms = seconds * 1000 + AFTER_MS
    times: list[list[float]] = [[] for _ in range(one.partitions)]
    for (partition, _), at in stamps.items():
        times[partition].append(min(max((at - base_s) * 1000, 0.0), span_ms))
    if one.backlog:
        times = [[*found, min(found)] for found in times]
    return Load(
        tuple(
            PartitionLoad(one.name, number, Arrivals.of_times(found, span_ms), sizes)
            for number, found in enumerate(times)
        ),
        one.name,
    )


def measured(stamps: Stamps, files: Sequence[Accepted], base_s: float, window: Window) -> Figures:
    """Of the records that arrived in the window; a file counts by its share of them.

    Raises ValueError when a record is in no file.
    """
    at_of, ages, share = dict(stamps), [], 0.0
    low, high = base_s + window.from_ms / 1000, base_s + window.to_ms / 1000
    for file in files:
        held = [
            at_of.pop((file.partition, offset))
            for offset in range(file.first_offset, file.last_offset + 1)
            if (file.partition, offset) in at_of
        ]
        within = [file.at - at for at in held if low <= at < high]
        ages += within
        share += len(within) / len(held) if held else 0.0
    if at_of:
        raise ValueError(f"{len(at_of)} records are in no accepted file: {sorted(at_of)[:3]}")
    found = percentiles(np.array(ages), np.ones(len(ages)), (0.5, 0.95, 0.99, 1.0))
    return Figures(*found, share / window.hours)


def table(compared: Sequence[Compared]) -> str:
    """For people: Markdown, as docs/explanation/tuning.md has it."""
    lines = [
        "| Load | Records | p50 s | p95 s | p99 s | max s | Files an hour | Furthest off |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in compared:
        cells = [
            f"{getattr(one.predicted, name):{form}} / {getattr(one.measured, name):{form}}"
            for name, form in (
                ("p50", ".2f"),
                ("p95", ".2f"),
                ("p99", ".2f"),
                ("max", ".2f"),
                ("files_per_hour", ",.0f"),
            )
        ]
        lines.append(f"| {one.name} | {one.records:,} | {' | '.join(cells)} | {one.worst:.0%} |")
    return "\n".join(lines)
