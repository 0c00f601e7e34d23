"""A committed offset with the metadata beside it, and commits of many offsets in chunks that brokers take."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import KafkaError, TopicPartition

from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey

CHUNK_BYTES: Final = 250_000
"""Of one commit, about: a broker takes messages of 1,048,588 bytes (`message.max.bytes`), unless told otherwise."""
OFFSET_BYTES: Final = 60
"""What one offset takes at the broker beside its names and its metadata, about."""
TOO_LARGE: Final = frozenset(
    {
        KafkaError.INVALID_COMMIT_OFFSET_SIZE,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.UNKNOWN,
    }
)
"""Answers to a commit that grew past the broker's limit; Kafka 4.1 has no better word for it than the last."""
NO_IDS: Final[Mapping[str, str]] = MappingProxyType({})
NO_EPOCHS: Final[Mapping[PartitionKey, int]] = MappingProxyType({})


def chunks(group: str, offsets: Sequence[TopicPartition]) -> Iterator[list[TopicPartition]]:
    """The offsets, in order, in commits of CHUNK_BYTES at most; a larger one is alone."""
    chunk: list[TopicPartition] = []
    held = 0
    for one in offsets:
        size = OFFSET_BYTES + len(group) + len(one.topic) + len(one.metadata or "")
        if chunk and held + size > CHUNK_BYTES:
            yield chunk
            chunk, held = [], 0
        chunk.append(one)
        held += size
    if chunk:
        yield chunk


def split(chunk: Sequence[TopicPartition]) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """A chunk that was too large, as two."""
    middle = len(chunk) // 2
    return list(chunk[:middle]), list(chunk[middle:])


@dataclass(frozen=True)
class RangePlan:
    """The range [start, end) that is being flushed, and its reason.

    It stands beside the committed offset, so that after a crash the same range is flushed again, as the same files. Its
    start is below that offset when a part of the range was accepted before the rest failed.
    """

    start: int
    end: int
    reason: str


NO_PLANS: Final[Mapping[PartitionKey, RangePlan]] = MappingProxyType({})


def commit_metadata(instance: Instance, plan: RangePlan | None = None, topic_id: str = "") -> str:
    """What stands beside each committed offset; far below the broker's limit of 4,096 bytes.

    topic_id: of the topic that the offset belongs to; "" when it is not known.
    """
    told = {"by": "parquet-sink", **vars(instance), "plan": plan, "topic_id": topic_id or None}
    return json.dumps(told, default=vars)


@dataclass(frozen=True)
class Committed:
    """One committed offset, and the metadata found beside it. epoch: of the leader, None where none was committed."""

    offset: int
    metadata: str
    epoch: int | None = None

    def committer(self) -> str:
        """Who made it, for an operator."""
        who = self._who()
        try:
            return f"instance {who['id']} (host {who['host']}, process {who['pid']}, started {who['started']})"
        except KeyError:
            return "an operator or another program"

    def is_from(self, instance: Instance) -> bool:
        """Whether this instance made it."""
        return self._who().get("id") == instance.id

    @property
    def plan(self) -> RangePlan | None:
        """The range that was being flushed when this offset was committed, if one was."""
        found = self._who().get("plan") or {}
        try:
            plan = RangePlan(int(found.get("start", self.offset)), int(found["end"]), str(found["reason"]))
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
        return plan if plan.start <= self.offset < plan.end else None

    @property
    def topic_id(self) -> str:
        """Of the topic that the offset belongs to; "" when nobody wrote it down."""
        found = self._who().get("topic_id")
        return found if isinstance(found, str) else ""

    def _who(self) -> dict[str, Any]:
        return _read(self.metadata)


@lru_cache(maxsize=1_000)
def _read(metadata: str) -> dict[str, Any]:
    """Of thousands of offsets that are looked at again and again most have the same beside them."""
    try:
        found = json.loads(metadata)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and found.get("by") == "parquet-sink" else {}
