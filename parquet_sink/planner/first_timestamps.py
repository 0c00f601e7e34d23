"""Small reads of topic-partitions: how old what waits at a start is, and how large the values are that come."""

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaException, Message, TopicPartition

from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.renewal import TimeLimited
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey

log = logging.getLogger(__name__)

LIMIT_S: Final = 10.0
"""For all topic-partitions together."""
CLOSE_S: Final = 2.0
LOOK_S: Final = 1.0
"""For a look at the sizes of values, in which nothing else is planned."""
POLL_S: Final = 0.1
POLL_RECORDS: Final = 200
"""Whole batches of records come of each topic-partition, and what came is kept until all have answered."""
SMALL: Final[Mapping[str, Any]] = {
    "fetch.message.max.bytes": "65536",
    "message.max.bytes": "1000000",
    "fetch.max.bytes": "1000000",
    "queued.min.messages": "1",
    "queued.max.messages.kbytes": "1024",
    "fetch.wait.max.ms": "100",
    "fetch.min.bytes": "1",
}
"""One record of each is wanted. A broker gives whole batches of records, of the first topic-partition one of any size,
of others what these bytes allow: a thousand with batches of 16 or 60 kB answer in 2.3 s, one after the other in 20."""


class FirstTimestamps:
    """Reads the first records at or after some offsets. Its consumer lives as long as that takes."""

    def __init__(self, kafka: KafkaSettings, client_log: ClientLog) -> None:
        self._kafka, self._client_log = kafka, client_log

    def read(
        self, starts: Mapping[PartitionKey, int], now_ms: int, limit_s: float = LIMIT_S
    ) -> dict[PartitionKey, int]:
        """Epoch milliseconds, at most `now_ms`, which also stands for a record without a timestamp, and for none.

        Absent: topic-partitions that gave no answer in time, or whose offset Kafka has no more.
        """
        try:
            answers = self._answers(starts, limit_s)
            times = {key: _time(messages[0], now_ms) for key, messages in answers.items()}
            return {key: at for key, at in times.items() if at is not None}
        except KafkaException as error:
            log.warning("group %s: the age of what waits cannot be read. %s.", self._kafka.group, error.args[0].str())
            return {}

    def value_bytes(self, starts: Mapping[PartitionKey, int]) -> dict[PartitionKey, float | None]:
        """The mean of the first values that come of each topic-partition, None where there are no records.

        Absent: as for `read`, after LOOK_S.
        """
        try:
            answers = self._answers(starts, LOOK_S)
        except KafkaException as error:
            log.debug("group %s: the size of what waits cannot be read. %s.", self._kafka.group, error.args[0].str())
            return {}
        found: dict[PartitionKey, float | None] = {}
        for key, messages in answers.items():
            sizes = [len(one.value() or b"") for one in messages if one.error() is None]
            if sizes or any(_is_end(one) for one in messages):
                found[key] = sum(sizes) / len(sizes) if sizes else None
        return found

    def _answers(self, starts: Mapping[PartitionKey, int], limit_s: float) -> dict[PartitionKey, list[Message]]:
        """What came of each topic-partition first: records, or one event that says something of them."""
        consumer: Consumer = client_options.build(
            Consumer, {**client_options.reader_options(self._kafka), **SMALL}, self._client_log
        )
        try:
            return _first_answers(consumer, starts, limit_s)
        finally:
            with suppress(TimeoutError):
                TimeLimited(CLOSE_S).run(consumer.close)


def _first_answers(
    consumer: Consumer, starts: Mapping[PartitionKey, int], limit_s: float
) -> dict[PartitionKey, list[Message]]:
    found: dict[PartitionKey, list[Message]] = {}
    consumer.assign([TopicPartition(*key, offset) for key, offset in starts.items()])
    deadline = time.monotonic() + limit_s
    while len(found) < len(starts) and time.monotonic() < deadline:
        answered: dict[PartitionKey, list[Message]] = {}
        for message in consumer.consume(POLL_RECORDS, POLL_S):
            key = (message.topic() or "", -1 if (partition := message.partition()) is None else partition)
            if key in starts and key not in found and not _passing(message):
                answered.setdefault(key, []).append(message)
        if answered:
            found |= answered
            consumer.incremental_unassign([TopicPartition(*key) for key in answered])
    return found


def _passing(message: Message) -> bool:
    """Whether this is an error that says nothing of the topic-partition's records."""
    error = message.error()
    return error is not None and (error.retriable() or error.code() in client_errors.PASSING)


def _is_end(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == client_options.END_OF_PARTITION


def _time(message: Message, now_ms: int) -> int | None:
    """The time that a record, or the event in its place, stands for; None: it is not known."""
    error = message.error()
    if error is not None:
        return now_ms if error.code() == client_options.END_OF_PARTITION else None
    kind, at = message.timestamp()
    return now_ms if kind == TIMESTAMP_NOT_AVAILABLE or at < 0 else min(at, now_ms)
