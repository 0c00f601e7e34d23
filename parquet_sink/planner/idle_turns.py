"""Which topic-partitions are asked where they end at a tick: of very many that are idle, some at each.

To ask for one and to decide about it costs some 30 µs of CPU, at each tick; of thousands most bring nothing new for
long. Those are asked in turn, each at least twice in the commit interval, and what is found there counts as old
as it may be, so that no record waits longer than its interval. The others are asked at every tick.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.planner.admission import seen_ms, tick_ms

AT_ONCE: Final = 1_000
"""Idle ones that are asked at each tick, all the same."""
IDLE_AFTER: Final = 10
"""Looks at which there was nothing to take, one after the other."""
MOST_MS: Final = 10_000
"""How long one waits for its turn at most: many records may have come to it."""


class IdleTurns:
    """Of one connector. Times are epoch milliseconds."""

    def __init__(self, flush: FlushSettings) -> None:
        self._flush = flush
        self._ticks = max(min(flush.commit_interval_ms // 2, MOST_MS) // tick_ms(flush), 1)
        self._quiet: dict[PartitionKey, int] = {}
        self._idle: dict[PartitionKey, int] = {}
        """When each was asked last, the longest ago first."""

    def turn(self, keys: Iterable[PartitionKey]) -> list[PartitionKey]:
        """Those of all topic-partitions that are to be asked now."""
        there = set(keys)
        for gone in self._quiet.keys() - there:
            del self._quiet[gone]
            self._idle.pop(gone, None)
        count = max(AT_ONCE, math.ceil(len(self._idle) / self._ticks))
        if len(self._idle) <= count:
            return list(keys)
        return [*(key for key in keys if key not in self._idle), *islice(self._idle, count)]

    def since_ms(self, key: PartitionKey) -> int | None:
        """What is new in an idle one came since then, about; None: since the tick before."""
        asked = self._idle.get(key)
        return None if asked is None else int(seen_ms(math.inf, asked, self._flush))

    def asked(self, ends: Mapping[PartitionKey, int], starts: Mapping[PartitionKey, int], now_ms: int) -> None:
        """These were asked. ends, starts: where each ends, and what is not taken yet begins."""
        for key, end in ends.items():
            self._idle.pop(key, None)
            self._quiet[key] = quiet = self._quiet.get(key, 0) + 1 if end <= starts[key] else 0
            if quiet >= IDLE_AFTER:
                self._idle[key] = now_ms
