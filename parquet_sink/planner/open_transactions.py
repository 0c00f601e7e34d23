"""Records that an open transaction holds back: Kafka has them, and shows them to nobody who reads committed ones."""

import logging
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from parquet_sink.errors import TransactionOpen
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import HELD_WARNING_S, held_message
from parquet_sink.planner.context import PlanningContext

log = logging.getLogger(__name__)

LOG_S: Final = 600.0
"""A line of the log for one that stays open, each so often."""
DRAIN_WAIT_S: Final = 60.0
"""How long a drain waits for open transactions once nothing else is left."""


class Hold(NamedTuple):
    """The first offset that is held back, and since when, epoch milliseconds."""

    offset: int
    since_ms: int


class OpenTransactions:
    """Of one connector. `holds`: of each topic-partition that ends beyond what may be read of it."""

    def __init__(self, context: PlanningContext) -> None:
        self._context = context
        self.holds: dict[PartitionKey, Hold] = {}
        self._logged_s: dict[PartitionKey, float] = {}
        self._waits_since_s: float | None = None

    def look(self, ends: Mapping[PartitionKey, int], highs: Mapping[PartitionKey, int], now_ms: int) -> None:
        """Note what is held back at a tick, and warn of what is for long."""
        for key, end in ends.items():
            if highs[key] <= end:
                self.forget(key)
                continue
            before = self.holds.get(key)
            if before is None or before.offset != end:
                self._logged_s.pop(key, None)
                before = Hold(end, now_ms)
            self.holds[key] = before
            self._warn(key, before)

    def _warn(self, key: PartitionKey, hold: Hold) -> None:
        now_s = self._context.now()
        held_s = now_s - hold.since_ms / 1_000
        if held_s >= HELD_WARNING_S and now_s - self._logged_s.get(key, -LOG_S) >= LOG_S:
            self._logged_s[key] = now_s
            log.warning("connector %s: %s.", self._context.settings.name, held_message(*key, hold.offset, held_s))

    def wait(self, missing: Mapping[PartitionKey, int]) -> bool:
        """Return whether a drain that has nothing else left waits for what is held back.

        missing: where each of those ends that is not read up to its end. Raises TransactionOpen after DRAIN_WAIT_S.
        """
        held = {key: end for key, end in missing.items() if key in self.holds}
        now_s = self._context.now()
        if not held:
            self._waits_since_s = None
            return False
        if self._waits_since_s is None:
            self._waits_since_s = now_s
        if now_s - self._waits_since_s < DRAIN_WAIT_S:
            return True
        raise TransactionOpen(
            f"Not caught up: {'; '.join(self._described(held))}. All before is delivered. Run it again once the "
            "producer has ended its transaction, or the brokers have, after the producer's transaction.timeout.ms."
        ).at(min(held))

    def _described(self, missing: Mapping[PartitionKey, int]) -> Iterator[str]:
        for key, end in sorted(missing.items()):
            hold = self.holds[key]
            held_s = self._context.now() - hold.since_ms / 1_000
            yield f"{held_message(*key, hold.offset, held_s)} ({end - hold.offset:,} offsets)"

    def forget(self, key: PartitionKey) -> None:
        """Forget a topic-partition of which nothing is held back, or that was deleted."""
        self.holds.pop(key, None)
        self._logged_s.pop(key, None)
