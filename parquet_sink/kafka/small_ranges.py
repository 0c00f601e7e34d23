"""Reads small ranges of many topic-partitions together, by one consumer, as one range is read by `range_reader`.

A consumer that goes from one topic-partition to the next waits for the answer to a fetch that it sent ahead for the one
before, which a broker with nothing new holds back for `fetch.wait.max.ms`: 0.1 s for each range, however small. Here
one assignment has all of them, and a fetch or two bring what they hold.

Only what goes well is read so: a range that brings an event other than its end, whose records take more memory than
there is for all, or of which nothing comes for long, is left to `RangeReader`, which knows what to do.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, Message, TopicPartition

from parquet_sink.kafka.batch_builder import BATCH_RECORDS, BatchBuilder, message_offset
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.consumer_cache import consumers
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.process.memory import give_back

SMALL_RECORDS: Final = 1_000
"""Offsets of a range that is read together with others: one that is larger costs more than the wait."""
TOGETHER_RECORDS: Final = BATCH_RECORDS
TOGETHER_RANGES: Final = 500
TOGETHER_BYTES: Final = 8 << 20
"""Bounds of what is read together, and so held in memory until it is written."""
POLL_S: Final = 0.02
"""A poll ends early only when it has as many records as were asked for, and gaps in offsets are asked for, too."""
QUIET_S: Final = 2.0
"""After so long without a record or an end, what is not whole is left to readers of its own."""


class SmallRanges:
    """Of one Spark task. ranges: in the order in which they will be asked for. parts: what of a record is read."""

    def __init__(self, kafka: KafkaSettings, ranges: Sequence[PlannedRange], parts: RecordParts) -> None:
        self._kafka, self._parts = kafka, parts
        groups = _groups([one for one in ranges if 0 < one.end - one.start <= SMALL_RECORDS and one.epoch < 0])
        self._unread = {(one.topic, one.partition): group for group in groups for one in group if len(group) > 1}
        self._held: dict[PartitionKey, list[RecordBatch]] = {}

    def take(self, planned: PlannedRange) -> list[RecordBatch] | None:
        """The batches of a range, which are those that its own reader gives; None: they are to be read by that."""
        key = (planned.topic, planned.partition)
        group = self._unread.get(key)
        if group is not None:
            for one in group:
                del self._unread[one.topic, one.partition]
            self._held |= read_together(self._kafka, group, self._parts)
        return self._held.pop(key, None)


def _groups(ranges: Sequence[PlannedRange]) -> list[list[PlannedRange]]:
    """Which are read together."""
    groups: list[list[PlannedRange]] = []
    room = 0
    for one in ranges:
        room -= one.end - one.start
        if not groups or room < 0 or len(groups[-1]) == TOGETHER_RANGES:
            groups.append([])
            room = TOGETHER_RECORDS - (one.end - one.start)
        groups[-1].append(one)
    return groups


def read_together(
    kafka: KafkaSettings, ranges: Sequence[PlannedRange], parts: RecordParts
) -> dict[PartitionKey, list[RecordBatch]]:
    """The batches of those ranges that could be read whole. One range of a topic-partition at most."""
    cached = consumers.take(kafka)
    readings = {(one.topic, one.partition): _Reading(one, parts) for one in ranges}
    whole = _read(cached.consumer, readings)
    cached.consumer.unassign()
    cached.position = None
    consumers.put_back(cached)
    give_back()
    return {key: one.batches for key, one in whole.items()}


def _read(consumer: Consumer, readings: Mapping[PartitionKey, "_Reading"]) -> dict[PartitionKey, "_Reading"]:
    """Those that were read whole."""
    left = dict(readings)
    consumer.assign([TopicPartition(*key, one.received) for key, one in left.items()])
    last_heard, room = time.monotonic(), TOGETHER_BYTES
    while left and room > 0 and time.monotonic() - last_heard < QUIET_S:
        messages = consumer.consume(sum(one.missing for one in left.values()), POLL_S)
        ended: list[PartitionKey] = []
        for key, found in _by_partition(messages, left).items():
            last_heard = time.monotonic()
            one = left[key]
            room -= one.add(found)
            if one.ended:
                ended.append(key)
                del left[key]
        if ended and left:
            consumer.incremental_unassign([TopicPartition(*key) for key in ended])
    return {key: one for key, one in readings.items() if one.whole}


def _by_partition(
    messages: Sequence[Message], wanted: Mapping[PartitionKey, object]
) -> dict[PartitionKey, list[Message]]:
    found: dict[PartitionKey, list[Message]] = {}
    for message in messages:
        topic, partition = message.topic(), message.partition()
        if topic is not None and partition is not None and (topic, partition) in wanted:
            found.setdefault((topic, partition), []).append(message)
    return found


class _Reading:
    """One range among others. received: the offset after the last record so far. ended: nothing more is wanted of it.

    whole: it ended because all of it is in `batches`.
    """

    def __init__(self, planned: PlannedRange, parts: RecordParts) -> None:
        self.received, self._end = planned.start, planned.end
        self.ended = self.whole = False
        self.batches: list[RecordBatch] = []
        self._builder = BatchBuilder(planned.topic, planned.partition, parts)

    @property
    def missing(self) -> int:
        return self._end - self.received

    def add(self, messages: Sequence[Message]) -> int:
        """Takes what came of it; gives its bytes, as far as they are read."""
        records = [one for one in messages if one.error() is None]
        inside = [one for one in records if message_offset(one) < self._end]
        size = self._builder.add(inside) if inside else 0
        self.batches += self._builder.full()
        if records:
            self.received = message_offset(records[-1]) + 1
        self.whole = self.received >= self._end or any(map(self._is_end, messages))
        if self.whole and (rest := self._builder.rest()) is not None:
            self.batches.append(rest)
        self.ended = self.whole or any(map(_is_trouble, messages))
        return size

    def _is_end(self, message: Message) -> bool:
        """Whether the topic-partition ends at or past the end of the range."""
        error = message.error()
        at_end = error is not None and error.code() == client_options.END_OF_PARTITION
        return at_end and (message.offset() or 0) >= self._end


def _is_trouble(message: Message) -> bool:
    """Whether this is an event that a reader must see to."""
    error = message.error()
    if error is None or error.retriable():
        return False
    return error.code() not in {client_options.END_OF_PARTITION, *client_errors.PASSING}
