"""Fetches the next ranges of a Spark task while one of them is written: one consumer has several topic-partitions.

A consumer that goes from one topic-partition to the next waits for the answer to the fetch that it sent ahead for the
last, and where a range ends with a transaction's marker, for one more that says so: 0.2 s for each range, however
short. Here one fetch brings what several ranges hold, and each has a queue of its own, which is read in C. What does
not go well is left to a consumer of the range's own, which knows what to do (`range_reader.RangeReader`).
"""

import time
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from confluent_kafka import KafkaError, Message, TopicPartition

from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.consumer_cache import CachedConsumer, consumers
from parquet_sink.kafka.native_batches import NativeBuilder, NativeQueue, Reading
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordParts

AHEAD_RANGES: Final = 16
AHEAD_RECORDS: Final = 40_000
"""Bounds of what is fetched at once, the range that is written among them; the next one is, in any case. Of each the
client holds up to 2 MiB (`client.options.reader_options`). When half of it is over, the others follow, together."""
POLL_S: Final = 0.1
QUIET_S: Final = 5.0
"""After a wait of so long for a record or an event of the range that is read, all that are left have own consumers."""
MAIN_EVENTS: Final = 100


class RangesAhead:
    """Of one Spark task. One thread at a time. `_fetched`: so many ranges are begun before others are fetched.

    ranges: those to be fetched ahead, in the order in which they will be asked for. Of each topic-partition it is the
    first; one whose log is to be compared with what was read before needs a new consumer, and of one alone nothing is
    ahead.
    """

    def __init__(self, kafka: KafkaSettings, ranges: Sequence[PlannedRange]) -> None:
        self._kafka = kafka
        self._left: dict[PartitionKey, PlannedRange] = {}
        for one in ranges:
            if one.epoch < 0 and one.start < one.end:
                self._left.setdefault((one.topic, one.partition), one)
        if len(self._left) == 1:
            self._left.clear()
        self._cached: CachedConsumer | None = None
        self._queues: dict[PartitionKey, NativeQueue] = {}
        self._queue: NativeQueue | None = None
        self._builder: NativeBuilder | None = None
        self._fetched = 0
        self._waited_s = 0.0

    def begin(self, topic: str, partition: int, start: int, end: int) -> bool:
        """Whether this range comes from here: `read` gives it, until another one is begun. Those before it are over.

        Raises KafkaException, and as making a consumer does.
        """
        key, self._queue = (topic, partition), None
        found = self._left.get(key)
        if found is None or (found.start, found.end) != (start, end):
            return False
        while (first := next(iter(self._left))) != key:
            self._over(first)
        if self._fetched <= 0 or key not in self._queues:
            wanted = self._next()
            self._advance(wanted)
            self._fetched = len(wanted) - len(wanted) // 2
        self._over(key)
        self._queue, self._waited_s = self._queues[key], 0.0
        return True

    def builder(self, topic: str, partition: int, parts: RecordParts) -> NativeBuilder:
        """For `read`, until another range is begun: one for all, as its buffers are large enough then."""
        if self._builder is None or self._builder.parts != parts:
            self._builder = NativeBuilder(topic, partition, parts, self._kafka.record_max_bytes)
        self._builder.begin(topic, partition)
        return self._builder

    def read(self, builder: NativeBuilder, end: int) -> Reading | None:
        """Fills the builder, for so long as one poll takes; None: what is not given yet is to be read otherwise."""
        assert self._queue is not None
        assert self._cached is not None
        began = time.monotonic()
        reading = self._queue.read(builder, end, POLL_S)
        if not all(map(_is_event, self._cached.consumer.consume(MAIN_EVENTS, 0))):
            self._left.clear()  # a record where none is to come: some queue has a gap
            return None
        self._waited_s = 0.0 if reading.heard else self._waited_s + time.monotonic() - began
        if self._waited_s > QUIET_S:
            self._left.clear()
            return None
        if reading.event is None:
            return reading
        error, offset = reading.event
        if error.code() == client_options.END_OF_PARTITION:
            return Reading(heard=True, at_end=offset >= end)
        return None if is_trouble(error) else reading

    def close(self) -> None:
        """Ends fetching; the consumer is kept for the next task."""
        self._left.clear()
        self._queue = None
        for queue in self._queues.values():
            queue.close()
        self._queues.clear()
        cached, self._cached = self._cached, None
        if cached is not None:
            cached.unassign()
            consumers.put_back(cached)

    def _over(self, key: PartitionKey) -> None:
        """No range of this topic-partition is asked for any more, but that which is read."""
        del self._left[key]
        self._fetched -= 1

    def _next(self) -> dict[PartitionKey, PlannedRange]:
        """Those that are to be fetched now, the first is the one that is asked for."""
        wanted: dict[PartitionKey, PlannedRange] = {}
        records = 0
        for key, one in islice(self._left.items(), AHEAD_RANGES):
            if len(wanted) >= 2 and records >= AHEAD_RECORDS:
                break
            wanted[key] = one
            records += one.end - one.start
        return wanted

    def _advance(self, wanted: Mapping[PartitionKey, PlannedRange]) -> None:
        """Has these fetched in the place of those that are over."""
        if self._cached is None:
            self._cached = consumers.take(self._kafka, in_c=True, several=True)
        consumer = self._cached.consumer
        over = [key for key in self._queues if key not in wanted]
        for key in over:
            self._queues.pop(key).close()
        if over:
            consumer.incremental_unassign([TopicPartition(*key) for key in over])
        new = {key: one for key, one in wanted.items() if key not in self._queues}
        for key in new:  # before it is assigned, so that nothing of it goes to the consumer's main queue
            self._queues[key] = NativeQueue(consumer, *key)
        if new:
            consumer.incremental_assign([TopicPartition(*key, one.start) for key, one in new.items()])


def is_trouble(error: KafkaError) -> bool:
    """Whether this is an event that a reader of the range's own must see to."""
    passes = error.retriable() or error.code() in {client_options.END_OF_PARTITION, *client_errors.PASSING}
    return is_damage(error) or not passes


def is_damage(error: KafkaError) -> bool:
    """Return True if the client cannot read a batch of records: it is damaged, or too large once decompressed."""
    code = error.code()
    bad_message = code == KafkaError._BAD_MSG and "failed CRC32" in error.str()  # noqa: SLF001 - the client's public name
    return bad_message or code == KafkaError._BAD_COMPRESSION  # noqa: SLF001


def until_damage(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages up to one that says that a batch cannot be read; behind it there is a gap."""
    for index, message in enumerate(messages):
        if (error := message.error()) is not None and is_damage(error):
            return messages[: index + 1]
    return messages


def _is_event(message: Message) -> bool:
    return message.error() is not None
