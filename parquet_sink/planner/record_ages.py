"""How old the oldest undelivered record of each topic-partition is, and whether the flush interval can be kept."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from parquet_sink.model.events import FlushIntervalExceeded
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PartitionProgress, PlannedRange
from parquet_sink.planner.admission import seen_ms
from parquet_sink.planner.context import PlanningContext
from parquet_sink.planner.first_timestamps import FirstTimestamps
from parquet_sink.planner.open_transactions import Hold
from parquet_sink.state.store import REPORTED_MS

log = logging.getLogger(__name__)

MARKS: Final = 512
"""Arrival marks kept for one topic-partition; older neighbours are merged, which only makes records seem older."""
EXCEEDED: Final = 2.0
"""Times the interval after which a range is taken too late; a tick, and the micro-batch before, take their time."""
TICKS_S: Final = 1.0
FULL_S: Final = 0.5
"""For the ages of all that is due in any case. Batches of records beyond 64 kB answer one after the other: a hundred a
second."""
LOG_S: Final = 600.0
"""A line of the log for what goes on, each so often."""


@dataclass(frozen=True)
class Arrivals:
    """When offsets were first seen: (end offset exclusive, epoch milliseconds), both rising."""

    marks: tuple[tuple[int, int], ...] = ()

    def observed(self, high: int, now_ms: int) -> "Arrivals":
        """With everything below `high` seen by `now_ms`."""
        last = self.marks[-1][0] if self.marks else -1
        if high <= last:
            return self
        marks = (*self.marks, (high, now_ms))
        return Arrivals(marks if len(marks) <= MARKS else _merged_arrivals(marks))

    def after(self, start: int) -> "Arrivals":
        """Without marks whose records are all below `start`, the first unflushed offset."""
        if not self.marks or self.marks[0][0] > start:
            return self
        return replace(self, marks=tuple(m for m in self.marks if m[0] > start))

    def oldest_ms(self, start: int) -> int | None:
        """When the record at `start` was seen; None when nothing at or above it was."""
        return next((ms for high, ms in self.marks if high > start), None)


_NONE: Final = Arrivals()


def _merged_arrivals(marks: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Half as many marks; each pair keeps the earlier time, so ages never shrink."""
    pairs = [marks[i : i + 2] for i in range(0, len(marks), 2)]
    return tuple((pair[-1][0], pair[0][1]) for pair in pairs)


class RecordAges:
    """Keeps the arrivals of each topic-partition. timestamps: reads those of first records, for the age at a start."""

    def __init__(self, context: PlanningContext, timestamps: FirstTimestamps) -> None:
        self._context, self._timestamps = context, timestamps
        self._arrivals: dict[PartitionKey, Arrivals] = {}
        self._published: dict[PartitionKey, PartitionProgress] = {}
        self._looked_ms: int | None = None
        self._seen_ms = 0
        self._holds: Mapping[PartitionKey, Hold] = {}

    def look(self, now_ms: int) -> None:
        """At each tick, before anything is asked: what is new at it came since the one before."""
        self._seen_ms = int(seen_ms(now_ms, self._looked_ms, self._context.settings.flush))
        self._looked_ms = now_ms

    def load(
        self,
        ends: Mapping[PartitionKey, int],
        now_ms: int,
        full: Callable[[Mapping[PartitionKey, int]], Collection[PartitionKey]],
    ) -> None:
        """Sets the age of what waits in topic-partitions that are new here: that of their first record.

        It is old enough where that cannot be read in time: nothing that is old is held back. full: of such ends those
        with a full file, which is due whatever its age, and so hardly waits for it to be read.
        """
        starts = self._context.offsets.starts
        waiting = {key: starts[key] for key, end in ends.items() if key not in self._arrivals and end > starts[key]}
        if not waiting:
            return
        hurried = {key: waiting[key] for key in full({key: ends[key] for key in waiting})}
        others = {key: start for key, start in waiting.items() if key not in hurried}
        found = self._timestamps.read(others, now_ms) if others else {}
        if hurried:
            found |= self._timestamps.read(hurried, now_ms, FULL_S)
        old_ms = now_ms - self._context.settings.flush.commit_interval_ms
        for key in waiting:
            self._arrivals[key] = _NONE.observed(ends[key], found.get(key, old_ms))

    def oldest_ms(self, key: PartitionKey, start: int, end: int, since_ms: int | None = None) -> int | None:
        """When the record at `start` arrived, epoch milliseconds; None when there is none. `end`: what is seen now.

        since_ms: since when what is new may be there; None: since the tick before.
        """
        arrivals = self._arrivals.get(key, _NONE).after(start)
        if end > start:
            arrivals = arrivals.observed(end, min(self._seen_ms, since_ms or self._seen_ms))
        self._arrivals[key] = arrivals
        return arrivals.oldest_ms(start)

    def note_empty(self, key: PartitionKey) -> None:
        """Nothing waits in this topic-partition: what comes is new at the tick that sees it."""
        self._arrivals.setdefault(key, _NONE)

    def end_before(self, key: PartitionKey, start: int, at_ms: int | None) -> int | None:
        """Up to where records were seen before a time (exclusive); None where none at or above `start` was."""
        if at_ms is None:
            return None
        marks = self._arrivals.get(key, _NONE).marks
        return max((high for high, ms in marks if ms < at_ms and high > start), default=None)

    def seen_ms(self, ranges: Sequence[PlannedRange]) -> dict[PartitionKey, int]:
        """When the first record of each of these ranges arrived."""
        keys = {(one.topic, one.partition): one.start for one in ranges}
        found = {key: self._arrivals.get(key, _NONE).oldest_ms(start) for key, start in keys.items()}
        return {key: at for key, at in found.items() if at is not None}

    def forget(self, key: PartitionKey) -> None:
        """Forgets a topic-partition that was deleted."""
        self._arrivals.pop(key, None)
        self._published.pop(key, None)

    def publish(self, highs: Mapping[PartitionKey, int], holds: Mapping[PartitionKey, Hold]) -> None:
        """Records the progress of topic-partitions for the other processes, where it changed.

        highs: their high watermarks. holds: what open transactions hold back.
        """
        starts, self._holds = self._context.offsets.starts, holds
        progress = {
            key: self._progress(key, starts[key], high)
            for key, high in highs.items()
            if key in self._arrivals and not self._is_published(key, starts[key], high)
        }
        for key in self._context.unavailable:
            last = self._published.get(key, PartitionProgress(*key, 0, 0, None))
            progress[key] = replace(last, away=True)
        changed = [one for key, one in progress.items() if self._published.get(key) != one]
        if changed:
            self._context.state.record_progress(changed)
            self._published.update(progress)

    def _progress(self, key: PartitionKey, start: int, high: int) -> PartitionProgress:
        hold, oldest_ms = self._holds.get(key), self._arrivals[key].oldest_ms(start)
        if hold is None:
            return PartitionProgress(*key, start, high, oldest_ms)
        oldest_ms = hold.since_ms if oldest_ms is None else oldest_ms
        return PartitionProgress(*key, start, high, oldest_ms, held_at=hold.offset, held_ms=hold.since_ms)

    def _is_published(self, key: PartitionKey, start: int, end: int) -> bool:
        """Whether it stands as it was published last, and so the oldest is the one that it was."""
        last, hold = self._published.get(key), self._holds.get(key)
        same = last is not None and (last.held_at, last.held_ms) == (hold or (None, None))
        return same and last is not None and last.start == start and last.end == end and not last.away


class LateFlushes:
    """Compares the ages of ranges with the interval when they are taken.

    They wait for the micro-batch before, or for Spark to ask for the next: a trigger in a PySpark program may be longer
    than the interval. What waited while nothing was to be taken is not late: what was there at the start, what came
    during the first micro-batch, in which all is loaded, during a pause, or while uploads fail, which is reported
    elsewhere. Ages count from the end of that.
    """

    def __init__(self, context: PlanningContext) -> None:
        self._context = context
        self._since_s = context.now()
        self._running: tuple[int, float] | None = None
        self._first_ended = False
        self._reported = FlushIntervalExceeded(context.settings.name, 0.0, 0, 0.0, 0.0, 0, 0.0)
        self._logged_s = -LOG_S
        self._ranges, self._batch_s = 0, 0.0
        self._asked_s, self._idle_s, self._ended = self._since_s, 0.0, False

    def asked(self) -> None:
        """Spark asks what is due, whether or not brokers answer: the micro-batch before is done."""
        now_s = self._context.now()
        self._asked_s, self._idle_s = now_s, now_s - self._asked_s
        if self._running is not None:
            whole_s = now_s - self._running[1]
            self._idle_s = min(self._reported_for_s(), whole_s)
            self._ranges, self._batch_s = self._running[0], whole_s - self._idle_s
            self._running, self._ended = None, True

    def tick(self, *, excused: bool) -> None:
        """At each, before ranges are taken. excused: what waits now is not late."""
        now_s, starting = self._context.now(), not self._first_ended
        self._first_ended = self._ended
        if excused or starting:
            self._since_s = now_s

    def taken(self, ranges: Sequence[PlannedRange], oldest_ms: Mapping[PartitionKey, int]) -> None:
        """These make the next micro-batch. oldest_ms: when the first record of each was seen."""
        if not ranges:
            return
        now_s = self._context.now()
        self._running = len(ranges), now_s
        interval_s = self._context.settings.flush.commit_interval_ms / 1_000
        seen_s = [oldest_ms.get((one.topic, one.partition), now_s * 1_000) / 1_000 for one in ranges]
        waited = [now_s - max(at_s, self._since_s) for at_s in seen_s]
        late = [seconds for seconds in waited if seconds > EXCEEDED * interval_s + TICKS_S]
        asked_late = self._idle_s > interval_s and self._idle_s >= self._batch_s
        reported = FlushIntervalExceeded(
            connector=self._context.settings.name,
            at_s=now_s,
            partitions=len(late),
            waited_s=max(late, default=0.0),
            interval_s=interval_s,
            batch_ranges=self._ranges,
            batch_s=self._batch_s,
            idle_s=self._idle_s if late and asked_late else 0.0,
        )
        if late or self._reported.partitions:
            self._context.state.append_events([reported])
        if late and (not self._reported.partitions or now_s - self._logged_s >= LOG_S):
            self._logged_s = now_s
            log.warning("connector %s: %s", reported.connector, reported.described)
        self._reported = reported

    def _reported_for_s(self) -> float:
        """How long ago the sink reported the micro-batch before; 0 where no sink of ours does."""
        at_ms = self._context.state.get(REPORTED_MS)
        return 0.0 if at_ms is None else max(self._context.monotonic() - at_ms / 1_000, 0.0)
