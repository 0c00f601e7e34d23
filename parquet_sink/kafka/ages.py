"""How old the oldest undelivered record of each topic-partition is, and how they all stand, for the view."""

from collections.abc import Mapping
from dataclasses import replace

from parquet_sink.kafka.admission import Arrivals
from parquet_sink.kafka.offsets import Key
from parquet_sink.kafka.standing import Context
from parquet_sink.state import Watch


class Ages:
    """Keeps the arrivals of each topic-partition."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._arrivals: dict[Key, Arrivals] = {}
        self._shown: dict[Key, Watch] = {}

    def oldest_ms(self, key: Key, start: int, end: int, now_ms: int) -> int | None:
        """When the record at `start` arrived, epoch milliseconds; None when there is none. `end`: what is seen now.

        What waited before we looked for the first time counts as old enough.
        """
        first = key not in self._arrivals
        arrivals = self._arrivals.get(key, Arrivals()).after(start)
        seen_ms = now_ms - self._context.settings.flush.commit_interval_ms if first else now_ms
        if end > start:
            arrivals = arrivals.seen(end, seen_ms)
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
            key: Watch(*key, starts[key], end, self._arrivals[key].oldest_ms(starts[key]))
            for key, end in ends.items()
            if key in self._arrivals
        }
        for key in self._context.away:
            last = self._shown.get(key, Watch(*key, 0, 0, None))
            watches[key] = replace(last, away=True)
        changed = [watch for key, watch in watches.items() if self._shown.get(key) != watch]
        if changed:
            self._context.state.watch(changed)
            self._shown.update(watches)
