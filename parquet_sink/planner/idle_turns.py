"""Which topic-partitions are asked where they end at a tick: of very many that are idle, some at each.

To ask for one with all care (its leader's epoch, why it does not answer) and to decide about it costs some 20 µs of
CPU, at each tick; of thousands most bring nothing new for long. Those are asked in turn, each at least twice in the
commit interval, by a request for many that costs 3 µs for each (`KafkaCluster.quick_ends`) and decides nothing: those
that do not end where we stand are asked with all care at the same tick. What is found then counts as old as it may be,
so that no record waits longer than its interval. The others are asked at every tick.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final

from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.planner.admission import seen_ms, tick_ms

AT_ONCE: Final = 1_000
"""Idle ones that are asked with all care at each tick, all the same."""
IDLE_AFTER: Final = 10
"""Looks at which there was nothing to take, one after the other."""
IDLE_AT_START: Final = 3
"""Likewise of one that had nothing yet: to look at 10,000 with all care takes 0.3 s of CPU."""
MOST_MS: Final = 10_000
"""How long one waits for its turn at most: many records may have come to it."""


class IdleTurns:
    """Of one connector. Times are epoch milliseconds.

    quick_ends: where topic-partitions end; absent are those of which that is not known.
    """

    def __init__(
        self, flush: FlushSettings, quick_ends: Callable[[Sequence[PartitionKey]], Mapping[PartitionKey, int]]
    ) -> None:
        self._flush, self._quick_ends = flush, quick_ends
        self._ticks = max(min(flush.commit_interval_ms // 2, MOST_MS) // tick_ms(flush), 1)
        self._quiet: dict[PartitionKey, int] = {}
        self._idle: dict[PartitionKey, int] = {}
        """When each was asked last, the longest ago first."""

    def turn(self, starts: Mapping[PartitionKey, int], now_ms: int) -> list[PartitionKey]:
        """Those of all topic-partitions that are to be asked now. starts: what is not taken yet begins there."""
        if len(self._idle) <= AT_ONCE:
            return list(starts)
        busy = [key for key in starts if key not in self._idle]
        return busy + self._awake(list(islice(self._idle, math.ceil(len(self._idle) / self._ticks))), starts, now_ms)

    def _awake(
        self, keys: Sequence[PartitionKey], starts: Mapping[PartitionKey, int], now_ms: int
    ) -> list[PartitionKey]:
        """Those of idle ones that may have something new."""
        ends = self._quick_ends(keys)
        awake = []
        for key in keys:
            if ends.get(key) == starts[key]:
                del self._idle[key]
                self._idle[key] = now_ms
            else:
                awake.append(key)
        return awake

    def since_ms(self, key: PartitionKey) -> int | None:
        """What is new in an idle one came since then, about; None: since the tick before."""
        asked = self._idle.get(key)
        return None if asked is None else int(seen_ms(math.inf, asked, self._flush))

    def asked(self, ends: Mapping[PartitionKey, int], starts: Mapping[PartitionKey, int], now_ms: int) -> None:
        """These were asked with all care. ends: where each ends."""
        for key, end in ends.items():
            self._idle.pop(key, None)
            self._quiet[key] = quiet = self._quiet.get(key, IDLE_AFTER - IDLE_AT_START) + 1 if end <= starts[key] else 0
            if quiet >= IDLE_AFTER:
                self._idle[key] = now_ms

    def forget(self, key: PartitionKey) -> None:
        """Forgets a topic-partition that was deleted."""
        self._quiet.pop(key, None)
        self._idle.pop(key, None)
