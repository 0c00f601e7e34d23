"""How old the oldest undelivered record of each topic-partition is, and how they all stand, for the view."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.progress import PartitionProgress
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.planner.admission import seen_ms
from parquet_sink.planner.arrivals import Arrivals
from parquet_sink.planner.clients import FirstRecords
from parquet_sink.planner.context import PlanningContext


class RecordAges:
    """Keeps the arrivals of each topic-partition. timestamps: reads those of first records, for the age at a start."""

    def __init__(self, context: PlanningContext, timestamps: FirstRecords) -> None:
        self._context, self._timestamps = context, timestamps
        self._arrivals: dict[PartitionKey, Arrivals] = {}
        self._published: dict[PartitionKey, PartitionProgress] = {}
        self._looked_ms: int | None = None
        self._seen_ms = 0

    def look(self, now_ms: int) -> None:
        """At each tick, before anything is asked: what is new at it came since the one before."""
        self._seen_ms = int(seen_ms(now_ms, self._looked_ms, self._context.settings.flush))
        self._looked_ms = now_ms

    def load(self, ends: Mapping[PartitionKey, int], now_ms: int) -> None:
        """Sets the age of what waits in topic-partitions that are new here: that of their first record.

        It is old enough where that cannot be read in time: nothing that is old is held back.
        """
        starts = self._context.offsets.starts
        waiting = {key: starts[key] for key, end in ends.items() if key not in self._arrivals and end > starts[key]}
        if not waiting:
            return
        found = self._timestamps.read(waiting, now_ms)
        old_ms = now_ms - self._context.settings.flush.commit_interval_ms
        for key in waiting:
            self._arrivals[key] = Arrivals().observed(ends[key], found.get(key, old_ms))

    def oldest_ms(self, key: PartitionKey, start: int, end: int) -> int | None:
        """When the record at `start` arrived, epoch milliseconds; None when there is none. `end`: what is seen now."""
        arrivals = self._arrivals.get(key, Arrivals()).after(start)
        if end > start:
            arrivals = arrivals.observed(end, self._seen_ms)
        self._arrivals[key] = arrivals
        return arrivals.oldest_ms(start)

    def seen_ms(self, ranges: Sequence[PlannedRange]) -> dict[PartitionKey, int]:
        """When the first record of each of these ranges arrived."""
        keys = {(one.topic, one.partition): one.start for one in ranges}
        found = {key: self._arrivals.get(key, Arrivals()).oldest_ms(start) for key, start in keys.items()}
        return {key: at for key, at in found.items() if at is not None}

    def forget(self, key: PartitionKey) -> None:
        """Forgets a topic-partition that was deleted."""
        self._arrivals.pop(key, None)
        self._published.pop(key, None)

    def publish(self, ends: Mapping[PartitionKey, int]) -> None:
        """Records the progress of topic-partitions for the other processes, where it changed."""
        starts = self._context.offsets.starts
        progress = {
            key: PartitionProgress(*key, starts[key], end, self._arrivals[key].oldest_ms(starts[key]))
            for key, end in ends.items()
            if key in self._arrivals
        }
        for key in self._context.unavailable:
            last = self._published.get(key, PartitionProgress(*key, 0, 0, None))
            progress[key] = replace(last, away=True)
        changed = [one for key, one in progress.items() if self._published.get(key) != one]
        if changed:
            self._context.state.record_progress(changed)
            self._published.update(progress)
