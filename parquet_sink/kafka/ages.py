"""How old the oldest undelivered record of each topic-partition is, and how they all stand, for the view."""

from collections.abc import Mapping
from dataclasses import replace

from parquet_sink.kafka.admission import Arrivals
from parquet_sink.kafka.first_timestamps import FirstTimes
from parquet_sink.kafka.group_offsets import Key
from parquet_sink.kafka.progress import Context
from parquet_sink.model.progress import PartitionProgress


class Ages:
    """Keeps the arrivals of each topic-partition. times: tells how old what waits at the first look is."""

    def __init__(self, context: Context, times: FirstTimes) -> None:
        self._context, self._times = context, times
        self._arrivals: dict[Key, Arrivals] = {}
        self._shown: dict[Key, PartitionProgress] = {}

    def begin(self, ends: Mapping[Key, int], now_ms: int) -> None:
        """What waits in topic-partitions that were not looked at before is as old as its first record.

        It is old enough where that cannot be read in time: nothing that is old is held back.
        """
        starts = self._context.standing.starts
        waiting = {key: starts[key] for key, end in ends.items() if key not in self._arrivals and end > starts[key]}
        if not waiting:
            return
        times = self._times.read(waiting, now_ms)
        old_ms = now_ms - self._context.settings.flush.commit_interval_ms
        for key in waiting:
            self._arrivals[key] = Arrivals().seen(ends[key], times.get(key, old_ms))

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
        self._shown.pop(key, None)

    def show(self, ends: Mapping[Key, int]) -> None:
        """Tells the other processes how things stand, when that changed."""
        starts = self._context.standing.starts
        watches = {
            key: PartitionProgress(*key, starts[key], end, self._arrivals[key].oldest_ms(starts[key]))
            for key, end in ends.items()
            if key in self._arrivals
        }
        for key in self._context.away:
            last = self._shown.get(key, PartitionProgress(*key, 0, 0, None))
            watches[key] = replace(last, away=True)
        changed = [watch for key, watch in watches.items() if self._shown.get(key) != watch]
        if changed:
            self._context.state.record_progress(changed)
            self._shown.update(watches)
