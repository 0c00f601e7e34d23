"""Admission: which topic-partitions are due, up to which offset, and why. Pure.

A topic-partition is due when its unflushed records, their estimated Parquet bytes or the age of the oldest of them
passes a threshold. The range [start, end) then becomes work of the next micro-batch. A range is bounded, so that a
backlog of any size is worked off in micro-batches of bounded length, and ends where files end if it can, so that a
backlog makes full files.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from parquet_sink.config.settings import FlushSettings
from parquet_sink.files.rotation import Reason

MOST_RANGE_RECORDS: Final = 1_000_000
LEAST_RANGE_RECORDS: Final = 150_000
RECORDS_PER_SECOND: Final = 150_000
"""What one topic-partition is worked off at, about; measured with `make bench` on 2 cores."""
MARKS: Final = 512
"""Arrival marks kept for one topic-partition; older neighbours are merged, which only makes records seem older."""


@dataclass(frozen=True)
class Range:
    """Offsets [start, end) of one topic-partition, and why they are due."""

    start: int
    end: int
    reason: Reason


Candidate = tuple[str, int, Range]
"""topic, partition, range"""


@dataclass(frozen=True)
class Arrivals:
    """When offsets were first seen: (end offset exclusive, epoch milliseconds), both rising."""

    marks: tuple[tuple[int, int], ...] = ()

    def seen(self, high: int, now_ms: int) -> "Arrivals":
        """With everything below `high` seen by `now_ms`."""
        last = self.marks[-1][0] if self.marks else -1
        if high <= last:
            return self
        marks = (*self.marks, (high, now_ms))
        return Arrivals(marks if len(marks) <= MARKS else _merged(marks))

    def after(self, start: int) -> "Arrivals":
        """Without marks whose records are all below `start`, the first unflushed offset."""
        if not self.marks or self.marks[0][0] > start:
            return self
        return replace(self, marks=tuple(m for m in self.marks if m[0] > start))

    def oldest_ms(self, start: int) -> int | None:
        """When the record at `start` was seen; None when nothing at or above it was."""
        return next((ms for high, ms in self.marks if high > start), None)


def _merged(marks: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Half as many marks; each pair keeps the earlier time, so ages never shrink."""
    pairs = [marks[i : i + 2] for i in range(0, len(marks), 2)]
    return tuple((pair[-1][0], pair[0][1]) for pair in pairs)


def range_records(commit_interval_ms: int) -> int:
    """Offsets in one range at most, unless one file alone is larger.

    A micro-batch makes every other topic-partition wait, so it should take about a quarter of the commit interval;
    a longer one costs less per record.
    """
    fitting = RECORDS_PER_SECOND * commit_interval_ms // 4_000
    return min(max(fitting, LEAST_RANGE_RECORDS), MOST_RANGE_RECORDS)


def due(
    start: int,
    high: int,
    oldest_ms: int | None,
    bytes_per_record: float | None,
    flush: FlushSettings,
    now_ms: int,
    *,
    draining: bool = False,
) -> Range | None:
    """The range of one topic-partition that is due now, None when nothing is.

    start: first unflushed offset. high: high watermark, or last stable offset (exclusive). bytes_per_record: Parquet
    bytes that a record became lately, None when unknown (then size never makes a range due). draining: what is there
    is due, whatever the thresholds say.
    """
    waiting = high - start
    if waiting <= 0:
        return None
    whole = _records_per_file(bytes_per_record, flush)
    reason = _reason(waiting, whole, oldest_ms, flush, now_ms, draining)
    if reason is None:
        return None
    bound = max(range_records(flush.commit_interval_ms) // whole, 1) * whole
    if reason in (Reason.RECORDS, Reason.SIZE):
        waiting = min(max(waiting // whole, 1) * whole, bound, waiting)
    return Range(start, start + waiting, reason)


def _records_per_file(bytes_per_record: float | None, flush: FlushSettings) -> int:
    if not bytes_per_record:
        return flush.commit_records
    return max(1, min(flush.commit_records, int(flush.commit_size_bytes / bytes_per_record)))


def _reason(
    waiting: int, whole: int, oldest_ms: int | None, flush: FlushSettings, now_ms: int, draining: bool
) -> Reason | None:
    if waiting >= flush.commit_records:
        return Reason.RECORDS
    if waiting >= whole:
        return Reason.SIZE
    if draining:
        return Reason.END_OF_INPUT
    if oldest_ms is not None and now_ms - oldest_ms >= flush.commit_interval_ms:
        return Reason.INTERVAL
    return None


def together(due_now: Sequence[tuple[int, Candidate]], flush: FlushSettings, slots: int) -> list[Candidate]:
    """Those that one micro-batch takes: as much as `slots` ranges of full length, the rest wait for the next.

    Each comes with the number of the micro-batch that took its topic-partition last (0: none yet); the longest ago
    comes first, so that none starves behind a backlog of others.
    """
    longest = max((span.end - span.start for _, (_, _, span) in due_now), default=0)
    budget = slots * max(range_records(flush.commit_interval_ms), longest)
    taken: list[Candidate] = []
    for _, candidate in sorted(due_now, key=lambda item: (item[0], item[1][:2])):
        if budget <= 0:
            break
        taken.append(candidate)
        budget -= candidate[2].end - candidate[2].start
    return taken
