"""Reads several ranges: small ones together, the others one after the other, perhaps ahead of what is written.

A consumer that goes from one topic-partition to the next waits for the answer to a fetch that it sent ahead for the one
before, which a broker with nothing new holds back for `fetch.wait.max.ms`: 0.1 s for each range, however small. So one
assignment has all small ranges of many topic-partitions, and a fetch or two bring what they hold. Only what goes well
is read so: a range that brings an event other than its end, whose records take more memory than there is for all, or of
which nothing comes for long, is left to `range_reader.RangeReader`, which knows what to do.

librdkafka and Arrow let go of Python's lock, so that reading and writing of one topic-partition overlap where there is
a core for each, by a thread that reads ahead; where there is not, taking turns costs less
(`planner.admission.with_reading`).
"""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Self

from confluent_kafka import Consumer, Message, TopicPartition

from parquet_sink.kafka.batch_builder import BATCH_BYTES, BATCH_RECORDS, BatchBuilder, message_offset
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.consumer_cache import consumers
from parquet_sink.kafka.ranges_ahead import is_trouble, until_damage
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

AHEAD_BYTES: Final = 16 << 20
"""What is read of records that waits at most, unless a single batch is larger."""
AHEAD_BATCHES: Final = 12
"""Batches that wait at most: what they hold beside their arrays is not counted.

Reading goes on while a file is ended: 2.31 µs of wall time per record with 4, 1.84 with 12 (least of six, by turns, on
a busy machine; the medians were the same)."""
CLOSE_S: Final = 20.0
"""How long `close` waits for a read in progress: watermarks are asked for with a time limit of 15 s."""
SWITCH_S: Final = 0.0001
"""After which the thread that has Python's lock is asked for it, in place of 5 ms.

Arrow's functions let go of it and take it back dozens of times for a batch, and each time waited for the messages of a
poll: 3.4 µs of wall time per record with 5 ms, 2.8 with this, and no more CPU time (JSON of 150 bytes, 2 cores; least
of five, by turns)."""

Read = Callable[[PlannedRange], Iterator[RecordBatch]]
Item = RecordBatch | BaseException | None


class SmallRanges:
    """Of one Spark task. ranges: in the order in which they will be asked for. parts: what of a record is read."""

    def __init__(self, kafka: KafkaSettings, ranges: Sequence[PlannedRange], parts: RecordParts) -> None:
        self._kafka, self._parts = kafka, parts
        groups = _groups([one for one in ranges if 0 < one.end - one.start <= SMALL_RECORDS and one.epoch < 0])
        self._unread = {(one.topic, one.partition): group for group in groups for one in group if len(group) > 1}
        self._held: dict[PartitionKey, list[RecordBatch]] = {}

    def has(self, planned: PlannedRange) -> bool:
        """Whether it is to be read together with others."""
        return (planned.topic, planned.partition) in self._unread

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
    readings = {(one.topic, one.partition): _Reading(one, parts, kafka.record_max_bytes) for one in ranges}
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

    def __init__(self, planned: PlannedRange, parts: RecordParts, record_bytes: int) -> None:
        self.received, self._end = planned.start, planned.end
        self.ended = self.whole = False
        self.batches: list[RecordBatch] = []
        self._builder = BatchBuilder(planned.topic, planned.partition, parts, record_bytes)

    @property
    def missing(self) -> int:
        return self._end - self.received

    def add(self, messages: Sequence[Message]) -> int:
        """Takes what came of it; gives its bytes, as far as they are read."""
        messages = until_damage(messages)
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
    error = message.error()
    return error is not None and is_trouble(error)


class ReadAhead:
    """Iterates (range, batch), then (range, None) at each range's end, or (range, error) when it cannot be read.

    Ranges come one after the other, in order. Use as a context manager; at its end the thread ends.
    """

    def __init__(self, ranges: Sequence[PlannedRange], read: Read, ahead_bytes: int = AHEAD_BYTES) -> None:
        self._ranges, self._read = ranges, read
        self._most_bytes, self._bytes, self._closed = ahead_bytes, 0, False
        self._items: deque[tuple[PlannedRange, Item]] = deque()
        self._changed = threading.Condition()
        self._skipped: set[PlannedRange] = set()
        self._thread = threading.Thread(target=self._run, name="read-ahead", daemon=True)

    def __enter__(self) -> Self:
        self._switch_s = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        self._thread.start()
        return self

    def __exit__(self, *trouble: object) -> None:
        sys.setswitchinterval(self._switch_s)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(CLOSE_S)

    def __iter__(self) -> Iterator[tuple[PlannedRange, Item]]:
        unfinished = len(self._ranges)
        while unfinished:
            planned, item = self._take()
            unfinished -= not isinstance(item, RecordBatch)
            yield planned, item

    def skip(self, planned: PlannedRange) -> None:
        """The rest of this range need not be read; its end comes all the same."""
        self._skipped.add(planned)

    def _run(self) -> None:
        for planned in self._ranges:
            try:
                for batch in self._read(planned):
                    if planned in self._skipped or not self._put(planned, batch):
                        break
                end: Item = None
            except BaseException as error:  # noqa: BLE001 - raised or reported by whoever takes it
                end = error
            if not self._put(planned, end):
                return

    def _put(self, planned: PlannedRange, item: Item) -> bool:
        """False when nobody takes anything any more."""
        size = _bytes(item)
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_room(size))
            if not self._closed:
                self._items.append((planned, item))
                self._bytes += size
                self._changed.notify_all()
            return not self._closed

    def _has_room(self, size: int) -> bool:
        fits = self._bytes + size <= self._most_bytes and len(self._items) < AHEAD_BATCHES
        return fits or not self._items

    def _take(self) -> tuple[PlannedRange, Item]:
        with self._changed:
            self._changed.wait_for(lambda: self._items)
            planned, item = self._items.popleft()
            self._bytes -= _bytes(item)
            self._changed.notify_all()
            return planned, item


class ReadInTurn:
    """The same, each batch read when it is asked for, by whoever asks."""

    def __init__(self, ranges: Sequence[PlannedRange], read: Read) -> None:
        self._ranges, self._read = ranges, read
        self._skipped: set[PlannedRange] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *trouble: object) -> None:
        """Nothing is under way."""

    def __iter__(self) -> Iterator[tuple[PlannedRange, Item]]:
        for planned in self._ranges:
            yield from ((planned, item) for item in self._items(planned))

    def skip(self, planned: PlannedRange) -> None:
        """The rest of this range is not read; its end comes all the same."""
        self._skipped.add(planned)

    def _items(self, planned: PlannedRange) -> Iterator[Item]:
        batches = self._read(planned)
        while planned not in self._skipped:
            try:
                batch = next(batches)
            except StopIteration:
                break
            except Exception as error:  # noqa: BLE001 - raised or reported by whoever takes it
                yield error
                return
            yield batch
        yield None


def reading(ranges: Sequence[PlannedRange], read: Read) -> ReadAhead | ReadInTurn:
    """As the ranges of a task say, which all say the same; in turn where none is worth a thread."""
    ahead = any(one.read_ahead and _is_long(one) for one in ranges)
    return ReadAhead(ranges, read) if ahead else ReadInTurn(ranges, read)


def _is_long(planned: PlannedRange) -> bool:
    """Whether there is something to read while something of it is written, as far as that is known.

    Of 300 ranges of three records the second thread made of 1.0 s of CPU 1.9 s, by `SWITCH_S`, while files were sent.
    """
    records = planned.end - planned.start
    return records > SMALL_RECORDS or records * (planned.known.bytes_per_record or 0.0) > BATCH_BYTES


def _bytes(item: Item) -> int:
    return item.nbytes if isinstance(item, RecordBatch) else 0
