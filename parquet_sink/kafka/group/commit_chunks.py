"""One commit of many offsets becomes several: the broker writes each as one message, which has a largest size."""

from collections.abc import Iterator, Sequence
from typing import Final

from confluent_kafka import KafkaError, TopicPartition

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
