"""How far each topic-partition got: what processes tell each other of it, by value."""

from dataclasses import dataclass

from parquet_sink.model.ranges import Again


@dataclass(frozen=True)
class PartitionProgress:
    """How one topic-partition stands. Offsets; `oldest_ms` epoch milliseconds of the oldest unflushed arrival.

    away: it has no leader, or one that does not answer; the rest is as it was before.
    """

    topic: str
    partition: int
    start: int
    end: int
    oldest_ms: int | None
    away: bool = False

    @property
    def lag(self) -> int:
        """Records, at most, between what is delivered and what Kafka has."""
        return max(self.end - self.start, 0)


@dataclass(frozen=True)
class Accepted:
    """How far the last range [start, end) of a topic-partition is accepted: everything below `next_offset`.

    again: set when the rest is to be tried again.
    """

    topic: str
    partition: int
    next_offset: int
    start: int
    end: int
    reason: str
    again: Again | None = None
