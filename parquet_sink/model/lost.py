"""Offsets that a connector passes over, because what they held cannot be delivered any more."""

from enum import StrEnum
from typing import NamedTuple


class LossCause(StrEnum):
    """Why records are gone before they were delivered.

    RETENTION: Kafka deleted them. RECREATED: their topic was deleted and made anew. DELETED: their topic, or
    topic-partition, was deleted. TRUNCATED: the log was cut back and has grown again, so that other records have
    their offsets.
    """

    RETENTION = "retention"
    RECREATED = "recreated"
    DELETED = "deleted"
    TRUNCATED = "truncated"


class LostOffsets(NamedTuple):
    """Offsets [start, end) of one topic-partition; where nobody knows how many there were, the end is the start."""

    start: int
    end: int
    cause: LossCause

    @classmethod
    def recreated(cls, start: int) -> "LostOffsets":
        """Of a topic that was deleted and made anew: what it held from `start` on."""
        return cls(start, start, LossCause.RECREATED)

    @classmethod
    def before(cls, first: int, start: int) -> "LostOffsets":
        """What Kafka no longer has from `start` on. first: the first offset that it has.

        Where that is not behind the start, the topic-partition is another one.
        """
        return cls(start, first, LossCause.RETENTION) if first > start else cls.recreated(start)
