"""How many bytes wait: values are looked at as they come, so that `commit.size.bytes` holds before a file taught it.

What a record becomes in Parquet is learned from files (`model.ranges.LearnedSchema`), and then a number of records
stands for a size. There is no such number before the first file of a topic, and it is wrong when records have grown
since the last. So a few records of what came are read now and then. Where nothing is known of a topic, bytes of values
stand in for those of Parquet: they are more in practice, so the first file is too small rather than too late. This only
makes ranges due; how they are cut into files does not depend on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import ValueSizes
from parquet_sink.planner.admission import Range, due_by_bytes
from parquet_sink.planner.context import PlanningContext
from parquet_sink.planner.first_timestamps import FirstTimestamps

LOOK_EVERY_MS: Final = 10_000
"""A look reads a batch of records of each topic-partition that has new ones."""
LEAST_INTERVAL_MS: Final = 2 * LOOK_EVERY_MS
"""With a shorter commit interval nothing is looked at: what waits is flushed by its age as soon."""
MOST_LOOKED_AT: Final = 40
"""Topic-partitions at one look; others have their turn at the next. These take 0.5 s where batches of records are of
600 kB, in which nothing else is planned; of 100 some 65 answered in the 1 s that they get."""
GROWN: Final = 2.0
"""Values that are so many times as large as those of the last files are what those taught no more."""
ALIKE: Final = 1.5
MARKS: Final = 64
"""Marks kept for one topic-partition; more are merged, which only makes records seem larger."""


@dataclass(frozen=True)
class WaitingBytes:
    """Of values, about. marks: of each look, (end offset exclusive, mean of the records from the mark before on)."""

    marks: tuple[tuple[int, float], ...] = ()

    @property
    def until(self) -> int:
        """What came below was looked at."""
        return self.marks[-1][0] if self.marks else 0

    def looked(self, end: int, mean: float | None) -> "WaitingBytes":
        """With what came up to `end`. mean: of its records; None: as those before."""
        last = self.marks[-1][1] if self.marks else 0.0
        mean = last if mean is None else mean
        if self.marks and max(mean, last) <= ALIKE * min(mean, last):
            return WaitingBytes((*self.marks[:-1], (end, max(mean, last))))
        marks = (*self.marks, (end, mean))
        return WaitingBytes(marks if len(marks) <= MARKS else _merged(marks))

    def after(self, start: int) -> "WaitingBytes":
        """Without marks whose records are all below `start`; the last one stays, for those to come."""
        kept = tuple(mark for mark in self.marks if mark[0] > start)
        return WaitingBytes(kept or self.marks[-1:])

    def between(self, start: int, high: int) -> float:
        """Of records [start, high); those that were not looked at yet are as the last."""
        total, low, mean = 0.0, start, 0.0
        for end, mean in self.marks:
            upto = min(max(end, low), high)
            total, low = total + (upto - low) * mean, upto
        return total + (high - low) * mean


class RecordSizes:
    """Keeps what was seen of the values of each topic-partition. reads: reads some of them."""

    def __init__(self, context: PlanningContext, reads: FirstTimestamps) -> None:
        self._context, self._reads = context, reads
        self._waiting: dict[PartitionKey, WaitingBytes] = {}
        self._looked_at: dict[PartitionKey, int] = {}
        self._looks, self._last_ms = 0, -LOOK_EVERY_MS

    def look(self, ends: Mapping[PartitionKey, int], now_ms: int) -> None:
        """Reads some of what came since the last look, when it is time to. ends: of all topic-partitions now."""
        flush, starts = self._context.settings.flush, self._context.offsets.starts
        if flush.commit_interval_ms < LEAST_INTERVAL_MS:
            return
        if now_ms - self._last_ms < LOOK_EVERY_MS:
            return
        for key in [key for key, end in ends.items() if end < self._of(key).until]:
            self.forget(key)  # another log has the topic-partition's name now
        fresh = {key: max(starts[key], self._of(key).until) for key in ends}
        fresh = {key: offset for key, offset in fresh.items() if offset < ends[key]}
        if not fresh:
            return
        self._looks, self._last_ms = self._looks + 1, now_ms
        chosen = sorted(fresh, key=lambda key: (self._looked_at.get(key, 0), key))[:MOST_LOOKED_AT]
        self._looked_at.update(dict.fromkeys(chosen, self._looks))
        for key, mean in self._reads.value_bytes({key: fresh[key] for key in chosen}).items():
            self._waiting[key] = self._of(key).after(starts[key]).looked(ends[key], mean)

    def due(
        self, key: PartitionKey, start: int, high: int, bytes_per_record: float | None, known: ValueSizes | None
    ) -> Range | None:
        """All that waits, when its values say that it is due. bytes_per_record: as for `due_range`.

        known: of the topic's last files.
        """
        waiting = self._waiting.get(key)
        if waiting is None or high <= start:
            return None
        values, flush = waiting.between(start, high), self._context.settings.flush
        if bytes_per_record is None:
            return due_by_bytes(start, high, values, flush)
        if known is None or values < GROWN * known.value_bytes * (high - start):
            return None
        return due_by_bytes(start, high, values * known.file_bytes / known.value_bytes, flush)

    def forget(self, key: PartitionKey) -> None:
        """Forgets a topic-partition that was deleted."""
        self._waiting.pop(key, None)
        self._looked_at.pop(key, None)

    def _of(self, key: PartitionKey) -> WaitingBytes:
        return self._waiting.get(key, WaitingBytes())


def _merged(marks: tuple[tuple[int, float], ...]) -> tuple[tuple[int, float], ...]:
    """Half as many marks; each pair keeps the larger mean."""
    pairs = [marks[index : index + 2] for index in range(0, len(marks), 2)]
    return tuple((pair[-1][0], max(mean for _, mean in pair)) for pair in pairs)
