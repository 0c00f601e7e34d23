"""What a simulated connector gave its user: freshness, files and costs of a stretch of its time."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from parquet_sink.addons.tune.model import (
    Arrivals,
    Durations,
    Files,
    Freshness,
    Load,
    PartitionLoad,
    PartitionSimulated,
    Simulated,
    Thresholds,
)
from parquet_sink.addons.tune.simulation import SimulatedConnector
from parquet_sink.addons.tune.work import Sent

Floats = npt.NDArray[np.float64]

MOST_POINTS, LEAST_POINTS = 64, 8
"""Records of a file that stand for all of it, evenly spread."""
POINTS = 200_000
"""How many of all files together, about."""
REQUEST_BYTES = 700
"""What HTTP and the form around a file add to it."""
HOUR_MS = 3_600_000.0
PAUSE_MS = 1_500.0
"""From the end of a micro-batch's tasks to those of the next, where nothing is waited for."""
OLDER = 1.3
"""By how much records of a second half may be older than those of the first."""


@dataclass(frozen=True)
class Window:
    """Records that arrive in [from_ms, to_ms) count, whenever their files are accepted."""

    from_ms: float
    to_ms: float

    @property
    def hours(self) -> float:
        return (self.to_ms - self.from_ms) / HOUR_MS


class Curves:
    """When records of a load arrived, for many at once."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self._marks: dict[int, tuple[Floats, Floats]] = {}
        for one in load.partitions:
            if id(one.arrivals) not in self._marks:
                self._marks[id(one.arrivals)] = (np.array(one.arrivals.at_ms), np.array(one.arrivals.records))

    def arrived_ms(self, number: int, offsets: Floats) -> Floats:
        """Of records of one topic-partition, by its place in the load."""
        one = self.load.partitions[number]
        found = one.backlog_age_ms * (offsets / max(one.backlog, 1) - 1)
        live = offsets >= one.backlog
        found[live] = self._live(one.arrivals, offsets[live] - one.backlog + 1)
        return found

    def _live(self, arrivals: Arrivals, wanted: Floats) -> Floats:
        """As `Arrivals.arrived_ms`."""
        at, records = self._marks[id(arrivals)]
        spans = np.floor((wanted - 1e-6) / arrivals.per_span) if len(wanted) else wanted
        rest = wanted - spans * arrivals.per_span
        i = np.clip(np.searchsorted(records, rest - 1e-6), 1, len(records) - 1)
        low, step = records[i - 1], records[i] - records[i - 1]
        share = np.clip((rest - low) / np.where(step > 0, step, 1), 0, 1)
        found: Floats = spans * arrivals.span_ms + at[i - 1] + share * (at[i] - at[i - 1])
        return found


def outcome(
    connector: SimulatedConnector, thresholds: Thresholds, curves: Curves, durations: Durations, window: Window
) -> Simulated:
    """What the records of the window got."""
    by_key: list[list[Sent]] = [[] for _ in curves.load.partitions]
    for one in connector.sent:
        by_key[one.key].append(one)
    points = min(max(POINTS // max(len(connector.sent), 1), LEAST_POINTS), MOST_POINTS)
    parts = [_part(number, sent, curves, window, points) for number, sent in enumerate(by_key)]
    ages, weights = _joined([part.ages for part in parts]), _joined([part.weights for part in parts])
    shares = _joined([part.shares for part in parts])
    sent = [one for part in parts for one in part.sent]
    sizes = np.array([one.size_bytes for one in sent])
    files_per_hour = float(shares.sum()) / window.hours
    stored = float((shares * sizes).sum()) / window.hours
    return Simulated(
        thresholds=thresholds,
        freshness=_freshness(ages, weights),
        files=_files(sizes, shares, sum(part.records for part in parts)),
        files_per_hour=files_per_hour,
        requests_per_hour=files_per_hour,
        stored_bytes_per_hour=stored,
        sent_bytes_per_hour=stored + files_per_hour * REQUEST_BYTES,
        cpu_share=_cpu_share(connector, durations, window, sum(part.records for part in parts), float(shares.sum())),
        keeps_up=_keeps_up(connector, ages, _joined([part.arrived for part in parts]), window),
        covered_ms=window.to_ms - window.from_ms,
        reasons=_reasons(sent, shares),
        partitions=tuple(
            _of_partition(one, part, window) for one, part in zip(curves.load.partitions, parts, strict=True)
        ),
    )


@dataclass(frozen=True)
class _Part:
    """One topic-partition's files with records of the window, and which share of each they are.

    ages, weights, arrived: seconds, how many records stand behind each, and when they arrived, milliseconds.
    """

    sent: list[Sent]
    shares: Floats
    ages: Floats
    weights: Floats
    arrived: Floats

    @property
    def records(self) -> float:
        return float(self.weights.sum())


def _part(number: int, sent: list[Sent], curves: Curves, window: Window, points: int) -> _Part:
    if not sent:
        return _Part([], *(np.zeros(0) for _ in range(4)))
    first = np.array([one.first for one in sent], dtype=float)
    records = np.array([one.records for one in sent], dtype=float)
    accepted = np.array([one.accepted_ms for one in sent])
    steps = (np.arange(points) + 0.5) / points
    offsets = np.floor(first[:, None] + records[:, None] * steps)
    offsets[:, 0] = first
    arrived = curves.arrived_ms(number, offsets.ravel()).reshape(offsets.shape)
    within = (arrived >= window.from_ms) & (arrived < window.to_ms)
    shares = within.mean(axis=1)
    ages = (accepted[:, None] - arrived) / 1000
    weights = np.broadcast_to(records[:, None] / points, ages.shape)
    kept = shares > 0
    held = [one for one, keep in zip(sent, kept, strict=True) if keep]
    return _Part(held, shares[kept], ages[within], weights[within], arrived[within])


def _joined(arrays: Sequence[Floats]) -> Floats:
    return np.concatenate(arrays) if arrays else np.zeros(0)


def percentiles(values: Floats, weights: Floats, wanted: Sequence[float]) -> list[float]:
    """The least value with at least this share of all weight at or below it, of each share."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    places = np.searchsorted(below, np.array(wanted) * below[-1] - 1e-9)
    return [float(values[order][min(place, len(values) - 1)]) for place in places]


def _freshness(ages: Floats, weights: Floats) -> Freshness | None:
    return Freshness(*percentiles(ages, weights, (0.5, 0.95, 0.99, 1.0))) if len(ages) else None


def _files(sizes: Floats, shares: Floats, records: float) -> Files | None:
    if not len(sizes):
        return None
    count = float(shares.sum())
    p5, p50, p95 = percentiles(sizes, shares, (0.05, 0.5, 0.95))
    return Files(p5, p50, p95, float((sizes * shares).sum()) / count, records / count)


def _reasons(sent: Sequence[Sent], shares: Floats) -> dict[str, float]:
    count: dict[str, float] = defaultdict(float)
    for one, share in zip(sent, shares, strict=True):
        count[str(one.reason)] += float(share)
    return {reason: found / sum(count.values()) for reason, found in sorted(count.items())}


def _cpu_share(
    connector: SimulatedConnector, durations: Durations, window: Window, records: float, files: float
) -> float:
    """CPU time of the sink as a share of one core."""
    took_ms = window.to_ms - window.from_ms
    batches = sum(window.from_ms <= at < window.to_ms for at, _ in connector.batches_ms)
    ticks = connector.ticks.count * took_ms / max(connector.ticks.next_ms, took_ms)
    used_ms = (
        records * durations.cpu_record_us / 1000
        + files * durations.cpu_file_ms
        + batches * durations.cpu_batch_ms
        + ticks * durations.cpu_tick_ms
    )
    return used_ms / took_ms + durations.cpu_second_ms / 1000


def _keeps_up(connector: SimulatedConnector, ages: Floats, arrived: Floats, window: Window) -> bool:
    """False where micro-batches follow each other without a pause, and records get older and older all the same."""
    middle = (window.from_ms + window.to_ms) / 2
    idle_ms, ended = 0.0, middle
    for begin, done in [*connector.batches_ms, (window.to_ms, window.to_ms)]:
        pause = min(begin, window.to_ms) - ended
        idle_ms += pause if pause > PAUSE_MS else 0.0
        ended = max(ended, done)
    later = arrived >= middle
    if idle_ms > 0.1 * (window.to_ms - middle) or not later.any() or later.all():
        return True
    return float(np.median(ages[later])) <= OLDER * float(np.median(ages[~later])) + 1.0


def _of_partition(load: PartitionLoad, part: _Part, window: Window) -> PartitionSimulated:
    count = float(part.shares.sum())
    stored = sum(one.size_bytes * share for one, share in zip(part.sent, part.shares, strict=True))
    p99 = percentiles(part.ages, part.weights, [0.99])[0] if len(part.ages) else 0.0
    return PartitionSimulated(
        load.topic,
        load.partition,
        load.arrivals.per_second * 3600,
        count / window.hours,
        stored / count if count else 0.0,
        p99,
    )
