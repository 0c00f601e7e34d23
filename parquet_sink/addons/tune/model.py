"""What goes into a simulation of the sink, and what comes out of it: values.

Times are milliseconds since the simulation's start, sizes bytes, unless a name says otherwise.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

import numpy as np

from parquet_sink.kafka.settings import FlushSettings as Thresholds

MOST_MARKS: Final = 4_000
"""Of one topic-partition: enough that neither bursts nor pauses are lost."""
Times = np.ndarray
"""Of floats, milliseconds since a sample's begin, in the order of offsets."""
__all__ = [
    "Arrivals",
    "Durations",
    "Files",
    "Freshness",
    "Load",
    "Machine",
    "PartitionLoad",
    "PartitionSimulated",
    "Simulated",
    "Sizes",
    "Thresholds",
]
NEARLY: Final = 1e-6
"""Of a record: what is missing by rounding is not missing."""
SCATTER: Final = 7_919
"""A prime, so that slow micro-batches do not come in a row."""


@dataclass(frozen=True)
class Arrivals:
    """How many records of a topic-partition had arrived when: marks of a curve that is straight between two of them.

    Marks that share a time are a jump: so many records at once. The curve begins at 0 records at time 0, ends at
    `span_ms`, and repeats itself from there, so that a sample of ten minutes is a load of any length.
    """

    at_ms: tuple[float, ...]
    records: tuple[float, ...]
    span_ms: float

    def __post_init__(self) -> None:
        marks = list(zip(self.at_ms, self.records, strict=True))
        if not marks or marks[0] != (0, 0) or marks[-1][0] != self.span_ms or self.span_ms <= 0:
            raise ValueError(
                f"arrivals begin with 0 records at 0 ms, and end at {self.span_ms} ms, after 0: {marks[:3]}"
            )
        if any(a > b or m > n for (a, m), (b, n) in pairwise(marks)):
            raise ValueError("times and records of arrivals rise")

    @classmethod
    def steady(cls, per_second: float, span_ms: float = 60_000.0) -> "Arrivals":
        """Evenly spaced records."""
        return cls((0.0, span_ms), (0.0, per_second * span_ms / 1000), span_ms)

    @classmethod
    def of_times(cls, at_ms: Sequence[float], span_ms: float) -> "Arrivals":
        """Of records that arrived then, in any order; those before 0 or from `span_ms` on are an error."""
        ordered = sorted(at_ms)
        if ordered and not 0 <= ordered[0] <= ordered[-1] <= span_ms:
            raise ValueError(f"records arrive from 0 to {span_ms} ms, not {ordered[0]} to {ordered[-1]}")
        times, counts = [0.0], [0.0]
        for count, at in enumerate(ordered, 1):
            if at == times[-1] and len(times) > 1 and times[-2] == at:
                counts[-1] = float(count)  # more at the same time: a higher jump
            else:
                times += [at, at]
                counts += [count - 1.0, float(count)]
        return cls((*times, span_ms), (*counts, float(len(ordered))), span_ms)

    @property
    def per_span(self) -> float:
        """Records of one span, perhaps with a fraction: where the curve stands at its end."""
        return self.records[-1]

    @property
    def per_second(self) -> float:
        return self.per_span / self.span_ms * 1000

    def count(self, at_ms: float) -> int:
        """Records that have arrived by then, that moment included."""
        if at_ms < 0:
            return 0
        spans, within = divmod(at_ms, self.span_ms)
        i = bisect_right(self.at_ms, within)
        found = self.records[i - 1]
        if i < len(self.at_ms):
            share = (within - self.at_ms[i - 1]) / (self.at_ms[i] - self.at_ms[i - 1])
            found += share * (self.records[i] - found)
        return int(spans * self.per_span + found + NEARLY)

    def arrived_ms(self, number: int) -> float:
        """When record `number` (from 0) arrives; infinite where none ever does."""
        if self.per_span <= 0:
            return float("inf")
        wanted = number + 1
        spans = max(int((wanted - NEARLY) // self.per_span), 0)
        rest = wanted - spans * self.per_span
        i = bisect_left(self.records, rest - NEARLY)
        if i == 0:
            return spans * self.span_ms
        i = min(i, len(self.records) - 1)
        low, high = self.records[i - 1], self.records[i]
        share = min(max((rest - low) / (high - low), 0.0), 1.0) if high > low else 1.0
        return spans * self.span_ms + self.at_ms[i - 1] + share * (self.at_ms[i] - self.at_ms[i - 1])


@dataclass(frozen=True)
class Sizes:
    """How large records are, and the Parquet files that they become.

    points: (records, bytes of a finished file with so many), rising; between two of them the size is on the straight
    line, beyond the last it goes on with the last slope. The first may be (0, what a file has beside its rows).
    record_bytes: of a record in Kafka. memory_bytes: of a record as Arrow columns, 0 for as large as in Kafka.
    """

    points: tuple[tuple[int, float], ...]
    record_bytes: float
    memory_bytes: float = 0.0

    def __post_init__(self) -> None:
        if not self.points or any(
            a >= c or b > d for (a, b), (c, d) in zip(self.points, self.points[1:], strict=False)
        ):
            raise ValueError(f"points of file sizes rise: {self.points}")

    @classmethod
    def proportional(cls, bytes_per_record: float, *, overhead: float = 0.0, record_bytes: float = 0.0) -> "Sizes":
        """The same number of Parquet bytes for each record, and so many for a file."""
        points = ((0, overhead), (1_000_000, overhead + 1_000_000 * bytes_per_record))
        return cls(points, record_bytes or bytes_per_record)

    @property
    def overhead(self) -> float:
        """Of a file without a record: footer and the like."""
        return self.points[0][1] if self.points[0][0] == 0 else 0.0

    def file_bytes(self, records: int) -> float:
        """Of a finished file with so many records."""
        points = self.points if self.points[0][0] == 0 else ((0, 0.0), *self.points)
        if len(points) == 1:
            return points[0][1]
        i = min(max(bisect_left([at for at, _ in points], records), 1), len(points) - 1)
        (r0, b0), (r1, b1) = points[i - 1], points[i]
        return b0 + (b1 - b0) * (records - r0) / (r1 - r0)


@dataclass(frozen=True)
class PartitionLoad:
    """What a topic-partition gets. backlog: records that wait at the start, the oldest of them that old."""

    topic: str
    partition: int
    arrivals: Arrivals
    sizes: Sizes
    backlog: int = 0
    backlog_age_ms: float = 0.0


@dataclass(frozen=True)
class Load:
    """What all topic-partitions of one connector get. described: where it comes from, in a few words.

    began_ms: what the clock showed when simulated time is 0, for files that end by it.
    """

    partitions: tuple[PartitionLoad, ...]
    described: str = ""
    began_ms: int = 0

    @property
    def records_per_second(self) -> float:
        return sum(one.arrivals.per_second for one in self.partitions)

    @property
    def span_ms(self) -> float:
        """Of the longest curve: what repeats itself after that long was seen whole."""
        return max((one.arrivals.span_ms for one in self.partitions), default=0.0)


@dataclass(frozen=True)
class Durations:
    """How long the parts of the sink's work take, on a core of their own.

    Defaults: the benchmark's for a record; the rest are estimates, which together give the freshness that the benchmark
    measures at an interval of a second (half within 1.1 s, 99 % within 2.0 s). A connector's own: `measured`.

    look_ms: from a tick until it is known where topic-partitions end. jitter_ms: by how much ticks are late, at most,
    now one and now another. plan_ms: from there until Spark tasks begin.
    range_ms: what each range takes beside its records (claim, seek, the first records, footer). record_us: each
    record, from Kafka to Parquet. upload_ms, upload_bytes_per_s: one request, beside its bytes, and they. finish_ms:
    from the end of the last Spark task to where the next tick may come. variation: how many times as long as that
    micro-batches take, each as often as the others. cpu_...: CPU time of all processes of the sink, of each record,
    file, micro-batch, and tick, and of each second that passes.
    """

    look_ms: float = 15.0
    jitter_ms: float = 20.0
    plan_ms: float = 250.0
    range_ms: float = 40.0
    record_us: float = 4.0
    upload_ms: float = 20.0
    upload_bytes_per_s: float = 50e6
    finish_ms: float = 150.0
    variation: tuple[float, ...] = (1.0,)
    cpu_record_us: float = 4.0
    cpu_file_ms: float = 30.0
    cpu_batch_ms: float = 150.0
    cpu_tick_ms: float = 5.0
    cpu_second_ms: float = 10.0

    def of_batch(self, number: int) -> "Durations":
        """Those of one micro-batch, by its number."""
        if self.variation == (1.0,):
            return self
        factor = self.variation[number * SCATTER % len(self.variation)]
        return replace(
            self,
            plan_ms=self.plan_ms * factor,
            range_ms=self.range_ms * factor,
            finish_ms=self.finish_ms * factor,
            variation=(1.0,),
        )


@dataclass(frozen=True)
class Machine:
    """Where the sink runs. slots: Spark tasks at once, of all `connectors` that share them. tasks_max: `tasks.max`."""

    slots: int = 4
    cores: int = 2
    connectors: int = 1
    tasks_max: int | None = None


@dataclass(frozen=True)
class Freshness:
    """Seconds from a record's arrival until the target has its file; percentiles over records."""

    p50_s: float
    p95_s: float
    p99_s: float
    max_s: float


@dataclass(frozen=True)
class Files:
    """Sizes of files, bytes; percentiles over files."""

    p5_bytes: float
    p50_bytes: float
    p95_bytes: float
    mean_bytes: float
    mean_records: float


@dataclass(frozen=True)
class PartitionSimulated:
    """What one topic-partition got."""

    topic: str
    partition: int
    records_per_hour: float
    files_per_hour: float
    mean_bytes: float
    p99_s: float


@dataclass(frozen=True)
class Simulated:
    """What thresholds give under a load. freshness, files: None where no record was accepted.

    reasons: share of the files closed for each `Reason`. requests_per_hour: files sent, each once: nothing fails here.
    stored_bytes_per_hour: as files at the target; sent_bytes_per_hour: with what HTTP adds. cpu_share: of one core.
    keeps_up: False where more arrives than gets done, so that freshness has no bound. covered_ms: how much time was
    looked at. partitions: of each topic-partition, in the load's order.
    """

    thresholds: Thresholds
    freshness: Freshness | None
    files: Files | None
    files_per_hour: float
    requests_per_hour: float
    stored_bytes_per_hour: float
    sent_bytes_per_hour: float
    cpu_share: float
    keeps_up: bool
    covered_ms: float
    reasons: Mapping[str, float] = field(default_factory=dict)
    partitions: tuple[PartitionSimulated, ...] = ()

    @property
    def files_per_day(self) -> float:
        return self.files_per_hour * 24


def arrivals_of(at_ms: Times, span_ms: float, most: int = MOST_MARKS) -> Arrivals:
    """The curve of records that arrived then. A record comes no earlier than the one before it in its log.

    Of many records some that are evenly spread are marks, and so are those around the longest pauses.
    """
    times = np.minimum(np.maximum.accumulate(np.clip(at_ms, 0.0, None)), span_ms) if len(at_ms) else at_ms
    chosen = _chosen(times, max(most // 6, 2))
    marks = np.repeat(times[chosen], 2)
    counts = np.stack([chosen, chosen + 1], axis=1).ravel()
    return Arrivals(
        (0.0, *marks.tolist(), span_ms),
        (0.0, *counts.astype(float).tolist(), float(len(times))),
        span_ms,
    )


def _chosen(times: Times, parts: int) -> np.ndarray:
    """Which records are marks: about `parts` evenly spread ones, and both sides of as many pauses."""
    count = len(times)
    if count <= 3 * parts:
        return np.arange(count)
    spread = np.linspace(0, count - 1, parts).astype(np.int64)
    pauses = np.diff(times)
    before = np.argpartition(pauses, -parts)[-parts:]
    return np.unique(np.concatenate([spread, before, before + 1]))


def between_marks(at_ms: Sequence[float], counts: Sequence[float], span_ms: float) -> Arrivals:
    """The curve through these marks, which rise, but for what exceeds the span or falls."""
    times = np.clip(np.maximum.accumulate(np.asarray([0.0, *at_ms])), 0.0, span_ms)
    records = np.maximum.accumulate(np.asarray([0.0, *counts]))
    return Arrivals((*times.tolist(), span_ms), (*records.tolist(), float(records[-1])), span_ms)
