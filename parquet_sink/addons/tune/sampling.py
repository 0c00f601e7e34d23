"""What the real topics get: the latest records, read without a group and without committing anything.

When they arrived is what their Kafka timestamps say. The latest of a topic's records are kept, for Parquet files to be
written of them (`addons.tune.parquet_sizes`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from parquet_sink.addons.tune.parquet_sizes import value_bytes
from parquet_sink.addons.tune.quantities import duration_text
from parquet_sink.addons.tune.window import Window, choose
from parquet_sink.errors import NothingSampled
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.range_reader import RangeReader
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.records import RecordBatch, RecordParts

KEPT_RECORDS: Final = 100_000
KEPT_BYTES: Final = 48 << 20
"""Of all topics together: what Parquet files are written of."""
LOOKUPS: Final = 300
"""Moments at which the broker is asked where topic-partitions stood, where there is too much to read all of it."""

ENOUGH: Final = 1.5
"""Times the records that were asked for: a window that is found by their number may have so many."""

Progress = Callable[[str, int, int], None]
"""What is done, how much of it so far, and of how much."""


@dataclass
class PartitionSample:
    """What one topic-partition got. at_ms: since the window's begin, by offset; records: how many were read.

    offsets: (milliseconds, records so far) in place of `at_ms` where not all was read.
    """

    topic: str
    partition: int
    at_ms: np.ndarray = field(default_factory=lambda: np.empty(0))
    offsets: tuple[tuple[float, int], ...] = ()
    records: int = 0
    value_bytes: int = 0
    untimed: int = 0


@dataclass
class Sample:
    """All topic-partitions over the same time. kept: batches of each topic, in order, of consecutive records mostly.

    incomplete: topic-partitions of which only the latest records were read.
    """

    window: Window
    partitions: list[PartitionSample]
    kept: dict[str, list[RecordBatch]]
    incomplete: int

    @property
    def records(self) -> int:
        return sum(one.records for one in self.partitions)


def sample(
    kafka: KafkaSettings,
    parts: RecordParts,
    *,
    within_s: float | None,
    most_records: int,
    now_ms: int,
    progress: Progress = lambda what, done, of: None,
) -> Sample:
    """The records of the last `within_s` seconds (None: as far back as `most_records` go), not more than so many.

    What the window has beyond that is not read: when it came is asked of the broker, by time. parts: what of a record
    is kept. Raises NothingSampled where there are no records, KafkaFailed.
    """
    kafka = replace(kafka, lost_offsets="CONTINUE")
    cluster = KafkaCluster(kafka)
    keys = cluster.topic_partitions()
    if not keys:
        raise NothingSampled(f"No topic matches {kafka.topics_regex}; create it, or correct [topics.regex].")
    window = choose(cluster, keys, within_s, most_records, now_ms)
    whole = window.offsets <= most_records * (1 if within_s else ENOUGH)
    shares = _shares(window, window.offsets if whole else most_records)
    sampled, kept = [], _Kept(window)
    read = 0
    for key, (start, end) in sorted(window.spans.items(), key=lambda item: item[1][0] - item[1][1]):
        one = PartitionSample(*key)
        for batch in RangeReader(kafka, *key, end - shares[key], end, parts=parts).batches() if start < end else ():
            _add(one, batch, window.begin_ms)
            kept.add(batch)
            read += len(batch)
            progress("reading records", read, sum(shares.values()))
        sampled.append(one)
    sampled.sort(key=lambda one: (one.topic, one.partition))
    incomplete = [key for key, (start, end) in window.spans.items() if shares[key] < end - start]
    if incomplete:
        _ask_for_times(cluster, window, incomplete, sampled, progress)
    _check(sampled, window)
    return Sample(window, sampled, kept.batches, len(incomplete))


def _shares(window: Window, most: int) -> dict[PartitionKey, int]:
    """How many offsets of each are read: all, or of the largest equally many."""
    lengths = {key: end - start for key, (start, end) in window.spans.items()}
    left, shares = most, {}
    for index, (key, length) in enumerate(sorted(lengths.items(), key=lambda item: item[1])):
        shares[key] = min(length, max(left // (len(lengths) - index), 1))
        left -= shares[key]
    return shares


def _add(one: PartitionSample, batch: RecordBatch, begin_ms: int) -> None:
    stamps = batch.timestamps.to_numpy()
    one.at_ms = np.concatenate([one.at_ms, (stamps - begin_ms).astype(float)])
    one.untimed += int((stamps <= 0).sum())
    one.records += len(batch)
    one.value_bytes += value_bytes(batch)


class _Kept:
    """Batches for Parquet files: of each topic as many as it is due, of its largest topic-partitions first."""

    def __init__(self, window: Window) -> None:
        topics = {topic for topic, _ in window.spans}
        self._records, self._bytes = max(KEPT_RECORDS // len(topics), 500), max(KEPT_BYTES // len(topics), 1 << 16)
        self.batches: dict[str, list[RecordBatch]] = {}
        self._fill: dict[str, tuple[int, int]] = {}

    def add(self, batch: RecordBatch) -> None:
        records, size = self._fill.get(batch.topic, (0, 0))
        if records >= self._records or size >= self._bytes or not len(batch):
            return
        self.batches.setdefault(batch.topic, []).append(batch)
        self._fill[batch.topic] = records + len(batch), size + batch.values.nbytes


def _ask_for_times(
    cluster: KafkaCluster,
    window: Window,
    keys: Sequence[PartitionKey],
    sampled: Sequence[PartitionSample],
    progress: Progress,
) -> None:
    """Of topic-partitions that were not read whole: how far they were at moments that are evenly spread."""
    curves: dict[PartitionKey, list[tuple[float, int]]] = {key: [] for key in keys}
    for number in range(1, LOOKUPS):
        at_ms = window.span_ms * number / LOOKUPS
        found = cluster.offsets_since(keys, window.begin_ms + int(at_ms))
        for key, offset in found.items():
            start, end = window.spans[key]
            curves[key].append((at_ms, min(max((end if offset is None else offset) - start, 0), end - start)))
        progress("asking when records came", number + 1, LOOKUPS)
    for one in sampled:
        if (key := (one.topic, one.partition)) in curves:
            start, end = window.spans[key]
            one.offsets = (*curves[key], (window.span_ms, end - start))


def _check(sampled: Sequence[PartitionSample], window: Window) -> None:
    """Raises NothingSampled."""
    records, untimed = sum(one.records for one in sampled), sum(one.untimed for one in sampled)
    if not records:
        raise NothingSampled(
            f"No record came within the last {duration_text(window.span_ms / 1000)}. Give a longer --sample, --records "
            "N for the latest ones however old they are, or state the load with --rate."
        )
    if untimed:
        raise NothingSampled(
            f"{untimed:,} of {records:,} records have no timestamp, so nobody can say when they came. Take the history "
            "(--history), or state the load with --rate."
        )
