"""How old the oldest undelivered record of each topic-partition is, and how they all stand, for the view."""

from collections.abc import Mapping
from dataclasses import replace

from parquet_sink.kafka.group.offsets import Key
from parquet_sink.kafka.planning.admission import Arrivals
from parquet_sink.kafka.planning.context import PlanningContext
from parquet_sink.kafka.planning.first_timestamps import FirstTimestamps
from parquet_sink.model.progress import PartitionProgress


class RecordAges:
    """Keeps the arrivals of each topic-partition. timestamps: tells how old what waits at the first look is."""

    def __init__(self, context: PlanningContext, timestamps: FirstTimestamps) -> None:
        self._context, self._timestamps = context, timestamps
        self._arrivals: dict[Key, Arrivals] = {}
        self._published: dict[Key, PartitionProgress] = {}

    def load(self, ends: Mapping[Key, int], now_ms: int) -> None:
        """What waits in topic-partitions that were not looked at before is as old as its first record.

        It is old enough where that cannot be read in time: nothing that is old is held back.
        """
        starts = self._context.offsets.starts
        waiting = {key: starts[key] for key, end in ends.items() if key not in self._arrivals and end > starts[key]}
        if not waiting:
            return
        found = self._timestamps.read(waiting, now_ms)
        old_ms = now_ms - self._context.settings.flush.commit_interval_ms
        for key in waiting:
            self._arrivals[key] = Arrivals().seen(ends[key], found.get(key, old_ms))

    def oldest_ms(self, key: Key, start: int, end: int, now_ms: int) -> int | None:
        """When the record at `start` arrived, epoch milliseconds; None when there is none. `end`: what is seen now."""
        arrivals = self._arrivals.get(key, Arrivals()).after(start)
        if end > start:
            arrivals = arrivals.seen(end, now_ms)
        self._arrivals[key] = arrivals
        return arrivals.oldest_ms(start)

    def forget(self, key: Key) -> None:
        """This topic-partition is not there any more."""
        self._arrivals.pop(key, None)
        self._published.pop(key, None)

    def publish(self, ends: Mapping[Key, int]) -> None:
        """Tells the other processes how things stand, when that changed."""
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
