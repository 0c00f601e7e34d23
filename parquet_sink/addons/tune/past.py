"""A load, and how long uploads take, from the history of what a connector uploaded. Pure.

A file says when its oldest record came, how many records it has, and when it was accepted; between its first record and
the first of the next file its records are taken to have come evenly. So bursts within one file are not seen: a sample
of the topics (`addons.tune.sampling`) sees them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from parquet_sink.addons.tune.model import Arrivals, Durations, Load, PartitionLoad, Sizes, between_marks
from parquet_sink.addons.tune.quantities import duration_text
from parquet_sink.errors import NothingSampled
from parquet_sink.history.records import Origin, UploadOutcome, UploadRecord
from parquet_sink.model.partitions import PartitionKey

LEAST_FILES: Final = 3
LEAST_SPAN_MS: Final = 10_000
LEAST_UPLOADS: Final = 10
"""So few say nothing of how long uploads take."""
BUCKETS: Final = 16
"""Sizes of files by the number of their records: a point for each so many in a power of ten."""
COMPRESSED: Final = 3.0
"""Bytes of a record in Kafka for each of Parquet, which the history does not know; only memory hangs on it."""


@dataclass(frozen=True)
class Past:
    """What the history tells. files: how many it was taken from. untimed: how many had no timestamps."""

    load: Load
    files: int
    untimed: int


def load_of(records: Iterable[UploadRecord], source: str) -> Past:
    """The load that these uploads were of. source: in words, for messages. Raises NothingSampled."""
    accepted = [one for one in records if _counts(one)]
    timed = [one for one in accepted if one.oldest_ms is not None]
    begin = min((one.oldest_ms or 0 for one in timed), default=0)
    span_ms = float(max((one.at_ms for one in timed), default=0) - begin)
    if len(timed) < LEAST_FILES or span_ms < LEAST_SPAN_MS:
        raise NothingSampled(
            f"{source} has {len(timed):,} files with timestamps that were accepted, and {len(accepted) - len(timed):,} "
            f"without, within {duration_text(span_ms / 1000)}: too little to learn from. Take more of it, or a sample "
            "of the topics (--sample 10m)."
        )
    partitions: dict[PartitionKey, list[UploadRecord]] = defaultdict(list)
    topics: dict[str, list[UploadRecord]] = defaultdict(list)
    for one in timed:
        partitions[one.topic, one.partition].append(one)
        topics[one.topic].append(one)
    sizes = {topic: _sizes(files) for topic, files in topics.items()}
    loads = tuple(
        PartitionLoad(*key, _arrivals(files, begin, span_ms), sizes[key[0]])
        for key, files in sorted(partitions.items())
    )
    described = f"the history of {len(timed):,} files in {duration_text(span_ms / 1000)}"
    return Past(Load(loads, described, begin), len(timed), len(accepted) - len(timed))


def _counts(one: UploadRecord) -> bool:
    """Whether a file stands for records that came, and not for some that were sent once more."""
    return one.outcome is UploadOutcome.ACCEPTED and one.origin is Origin.RUN and not one.repeat and one.records > 0


def _arrivals(files: Sequence[UploadRecord], begin: int, span_ms: float) -> Arrivals:
    """The curve of one topic-partition."""
    ordered = sorted(files, key=lambda one: one.first_offset)
    times, counts, total = [], [], 0
    for index, one in enumerate(ordered):
        oldest = float((one.oldest_ms or 0) - begin)
        following = ordered[index + 1].oldest_ms if index + 1 < len(ordered) else None
        until = min(one.at_ms, one.at_ms if following is None else following) - begin
        times += [oldest, oldest, max(float(until), oldest)]
        counts += [total, total + 1, total + one.records]
        total += one.records
    return between_marks(times, counts, span_ms)


def _sizes(files: Sequence[UploadRecord]) -> Sizes:
    """How large files of a topic are by their records: medians of files of about as many."""
    buckets: dict[int, list[UploadRecord]] = defaultdict(list)
    for one in files:
        buckets[int(np.log10(one.records) * BUCKETS)].append(one)
    points: list[tuple[int, float]] = [(0, 0.0)]
    for _, group in sorted(buckets.items()):
        records = int(np.median([one.records for one in group]))
        size = float(np.median([one.size_bytes for one in group]))
        if records > points[-1][0] and size > points[-1][1]:
            points.append((records, size))
    per_record = points[-1][1] / points[-1][0]
    if len(points) > 2:  # the line through the two smallest says what a file has beside its rows
        (r1, b1), (r2, b2) = points[1], points[2]
        points[0] = (0, max(b1 - (b2 - b1) / (r2 - r1) * r1, 0.0))
        points = points if points[0][1] < b1 else points[1:]
    return Sizes(tuple(points), per_record * COMPRESSED)


def durations_of(records: Iterable[UploadRecord], given: Durations) -> tuple[Durations, str]:
    """With what one request and its bytes took, where enough uploads were accepted at once; and that in words."""
    first = [one for one in records if one.outcome is UploadOutcome.ACCEPTED and one.attempts == 1]
    if len(first) < LEAST_UPLOADS:
        return given, ""
    size = np.array([one.size_bytes for one in first], float)
    taken = np.array([one.upload_s for one in first], float)
    per_byte = float(np.polyfit(size, taken, 1)[0]) if np.ptp(size) > size.mean() / 10 else 0.0
    per_byte = max(per_byte, 1 / given.upload_bytes_per_s) if per_byte <= 0 else per_byte
    beside = max(float(np.median(taken - per_byte * size)), 0.001)
    found = replace(given, upload_ms=beside * 1000, upload_bytes_per_s=1 / per_byte)
    return found, f"{len(first):,} uploads: {duration_text(beside)} and {1 / per_byte / 1e6:.3g} MB a second"
