"""Reads one range of one topic-partition as blocks, to its very end and not beyond.

A range [start, end) is done when a record at or past `end` was seen, or the broker says that the topic-partition ends
there; never by counting, because transaction markers, aborted records and compaction leave gaps.
"""

import logging
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from parquet_sink.errors import RESET_TOOL, KafkaFailed, OffsetsLost
from parquet_sink.kafka import client_errors, client_options, consumer_pool
from parquet_sink.kafka.leader_epochs import says_cut
from parquet_sink.kafka.reader_checks import Lookout
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.records import RecordBatch
from parquet_sink.process.memory import give_back

log = logging.getLogger(__name__)

BLOCK_RECORDS: Final = 10_000
"""Records in one block: enough to be vectorised, few enough to keep workers small (20,000 cost 200 MB more in all)."""
BLOCK_BYTES: Final = 4 << 20
"""Bytes of values in one block, unless a single record is larger."""
FIRST_POLL_RECORDS: Final = 1_000
POLL_S: Final = 0.1
SILENCE_S: Final = 120.0
"""A range whose next record does not come for so long, although the broker promised it, fails."""
IDLE_CONSUMERS: Final = 4
"""Consumers kept for other topic-partitions in one process: each holds connections and up to 4 MiB."""


@dataclass
class _Position:
    """A consumer, and where it stands."""

    consumer: Consumer
    key: int
    topic: str = ""
    partition: int = -1
    offset: int = -1
    topic_id: str = ""
    idle_since: float = 0.0


_consumers: dict[int, _Position] = {}
"""One consumer for each configuration in this process, kept from micro-batch to micro-batch: a new one costs 0.2 s."""


class RangeReader:
    """Iterates the blocks of one range, as they are a pure function of its start and of the records in it.

    `next_offset` is the offset after the last block so far. topic_id: of the topic that the range belongs to; "" when
    not known. accepted: offsets below were delivered by an earlier attempt, so it is no loss when they are gone. epoch:
    the leader epoch of what is before the start, so that the leader is asked whether the log is the same; -1: not.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topic: str,
        partition: int,
        start: int,
        end: int,
        topic_id: str = "",
        *,
        accepted: int = 0,
        epoch: int = -1,
    ) -> None:
        self._kafka, self.topic, self.partition, self.end, self._topic_id = kafka, topic, partition, end, topic_id
        self.next_offset = self._received = start
        self.lost: tuple[int, int] | None = None
        self._accepted, self._epoch = accepted, epoch
        self._lookout = Lookout(topic, partition, max(start, accepted), stop=kafka.lost_offsets == "STOP")
        self._beyond = False

    def blocks(self) -> Iterator[RecordBatch]:
        """Raises OffsetsLost when Kafka no longer has the start and the settings do not accept that; KafkaFailed.

        When it raises, records that do not fill a block are not given: the range is read again from its start.
        """
        position = self._acquire()
        try:
            yield from self._blocks(position)
        except GeneratorExit:
            self._beyond = True
            self._release(position)
            raise
        self.next_offset = max(self.next_offset, self.end)
        self._release(position)
        give_back()

    def _blocks(self, position: _Position) -> Iterator[RecordBatch]:
        finished = False
        filling = Filling()
        wanted, heard = FIRST_POLL_RECORDS, time.monotonic()
        while not finished:
            most = min(wanted, filling.room, self.end - self._received)
            messages = position.consumer.consume(most, POLL_S)
            if not messages:
                self._check_silence(position, heard)
                continue
            records, finished = self._sort(position, messages)
            if records:
                wanted = self._next_poll(records, wanted)
                filling.add(records)
                yield from (self._block(*taken) for taken in filling.full())
            heard = time.monotonic()  # only now: whoever takes the blocks may have waited long for the target
        if filling.messages:
            yield self._block(*filling.rest())

    def _acquire(self) -> _Position:
        settings = client_options.reading(self._kafka)
        key = client_options.fingerprint(settings)
        position = _consumers.pop(key, None)
        if position is not None and self._epoch >= 0:
            position.consumer.close()  # one that knows the leader already does not ask it about the log
            position = None
        if position is None:
            while len(_consumers) >= IDLE_CONSUMERS:
                _consumers.pop(next(iter(_consumers))).consumer.close()
            position = _Position(client_options.build(Consumer, settings), key)
        stands = (position.topic, position.topic_id, position.partition, position.offset)
        if stands != (self.topic, self._topic_id, self.partition, self._received):
            start = TopicPartition(self.topic, self.partition, self._received, leader_epoch=self._epoch)
            position.consumer.assign([start])
        return position

    def _release(self, position: _Position) -> None:
        """Keeps the consumer for the next range. Records past the end that it gave us are read again: they are few."""
        position.topic, position.topic_id, position.partition = self.topic, self._topic_id, self.partition
        position.offset = -1 if self._beyond else self.end
        if self._beyond:
            position.consumer.unassign()
        position.idle_since = time.monotonic()
        _consumers[position.key] = position
        consumer_pool.look_after(_consumers)

    def _sort(self, position: _Position, messages: list[Message]) -> tuple[list[Message], bool]:
        """The records below the end, and whether the range is done."""
        records = [m for m in messages if m.error() is None] if any(map(Message.error, messages)) else messages
        finished = False
        if records:
            last = _offset(records[-1])
            self._received, finished = last + 1, last >= self.end - 1
            if last >= self.end:
                self._beyond = True
                records = [m for m in records if _offset(m) < self.end]
        if len(records) < len(messages):
            for message in messages:
                if (error := message.error()) is not None:
                    finished |= self._event(position, error, message.offset() or 0)
        return records, finished

    def _event(self, position: _Position, error: KafkaError, offset: int) -> bool:
        """What librdkafka says between records; True when the topic-partition ends at or past our end."""
        code = error.code()
        if code == client_options.END_OF_PARTITION:
            self._beyond |= offset > self.end  # it is not told again to the range that goes up to there
            return offset >= self.end
        if says_cut(code, error.str()):
            self._lookout.cut_back(error.str(), self._received)
            position.consumer.assign([TopicPartition(self.topic, self.partition, self._received)])
            return False
        if code in client_options.OUT_OF_RANGE:
            return self._overtaken(position)
        if error.retriable() or code in client_errors.PASSING:
            return False
        raise client_errors.failure(
            error, f"Topic {self.topic}, topic-partition {self.partition}, offset {self._received}"
        )

    def _overtaken(self, position: _Position) -> bool:
        """Retention deleted the next offset: stop, or go on behind the gap when the settings accept the loss.

        Nothing follows an offset past the end: the group's offsets must be looked up anew (KafkaFailed).
        """
        tp = TopicPartition(self.topic, self.partition)
        low, high = position.consumer.get_watermark_offsets(tp, timeout=15.0)
        gone = max(self._received, min(self._accepted, low))  # what was delivered before is no loss
        if gone < low or self._received > high:
            self._accept_loss(gone, low, high)
        self._received = self.next_offset = max(low, self._received)
        if self._received >= self.end:
            self._beyond = True
            return True
        position.consumer.assign([TopicPartition(self.topic, self.partition, self._received)])
        return False

    def _accept_loss(self, gone: int, low: int, high: int) -> None:
        """Raises OffsetsLost or KafkaFailed, unless the settings accept the loss of offsets [gone, low)."""
        error = lost(self.topic, self.partition, gone, low, high)
        self.lost = (gone, min(max(low, gone), self.end))
        if self._kafka.lost_offsets == "STOP":
            raise error
        if gone > high:
            raise KafkaFailed(str(error))
        log.warning("%s Going on at %d.", error, self.lost[1])

    def _check_silence(self, position: _Position, heard: float) -> None:
        silent_s = time.monotonic() - heard
        self._lookout.silent(position.consumer, silent_s)
        if silent_s > SILENCE_S:
            raise KafkaFailed(
                f"Topic {self.topic}, topic-partition {self.partition}: no record came for {SILENCE_S:.0f} s after "
                f"offset {self._received}, although the range goes to {self.end}. Check the broker."
            )

    def _block(self, records: list[Message], values: list[bytes | None]) -> RecordBatch:
        offsets: list[int] = list(map(_offset, records))
        stamps = [ms if kind else 0 for kind, ms in map(Message.timestamp, records)]
        self.next_offset = offsets[-1] + 1
        return RecordBatch.of(self.topic, self.partition, offsets, stamps, values)

    @staticmethod
    def _next_poll(records: list[Message], wanted: int) -> int:
        """How many records to ask for next: about a block, growing from a careful first poll."""
        sample = records[-1].value()
        largest = max(1, BLOCK_BYTES // max(len(sample) if sample else 1, 1))
        return max(1, min(wanted * 4, BLOCK_RECORDS, largest))


class Filling:
    """Records on their way into blocks. However they come, a block is filled up to exactly its limits.

    A block ends after BLOCK_RECORDS records, or before the record whose value would take it past BLOCK_BYTES.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._values: list[bytes | None] = []
        self._bytes = 0

    @property
    def room(self) -> int:
        """How many records to ask for at most."""
        return BLOCK_RECORDS - len(self.messages)

    def add(self, messages: list[Message]) -> None:
        values = list(map(_value, messages))
        self.messages += messages
        self._values += values
        self._bytes += sum(map(len, filter(None, values)))

    def full(self) -> Iterator[tuple[list[Message], list[bytes | None]]]:
        """Takes out the records of each block that is full, with their values."""
        while self._bytes > BLOCK_BYTES or len(self.messages) >= BLOCK_RECORDS:
            yield self._take(self._fitting() if self._bytes > BLOCK_BYTES else BLOCK_RECORDS)

    def rest(self) -> tuple[list[Message], list[bytes | None]]:
        """Takes out what is left: the range has ended."""
        return self._take(len(self.messages))

    def _fitting(self) -> int:
        ends = list(accumulate(len(value) if value else 0 for value in self._values))
        return min(max(bisect_right(ends, BLOCK_BYTES), 1), BLOCK_RECORDS)

    def _take(self, count: int) -> tuple[list[Message], list[bytes | None]]:
        taken = self.messages[:count], self._values[:count]
        self._bytes -= sum(map(len, filter(None, taken[1])))
        del self.messages[:count], self._values[:count]
        return taken


_offset: Callable[[Message], int] = Message.offset  # type: ignore[assignment]
"""Of a record: it always has one; only events may not."""
_value: Callable[[Message], bytes | None] = Message.value


def lost(topic: str, partition: int, start: int, low: int, high: int) -> OffsetsLost:
    """The error that names offsets which Kafka deleted before they were read."""
    if start > high:
        what = (
            f"the group stands at offset {start}, but the topic-partition ends at {high}: it was deleted and made anew"
        )
    else:
        what = f"offsets {start} to {low - 1} were deleted by retention before they were read ({low - start} offsets)"
    return OffsetsLost(
        f"Topic {topic}, topic-partition {partition}: {what}. To go on at {low if start < low else 'its start'}, set "
        f"connect.ems.lost.offsets.policy=CONTINUE or reset the group's offset with {RESET_TOOL}."
    )


def made_anew(topic: str, partition: int, start: int) -> OffsetsLost:
    """The error that says: the group's offset belongs to a topic that is gone, not to the one that is there now."""
    return OffsetsLost(
        f"Topic {topic}, topic-partition {partition}: the group stands at offset {start} of a topic that was deleted "
        f"and made anew; what it held from there on is gone. To go on at the new topic's first record, set "
        f"connect.ems.lost.offsets.policy=CONTINUE or reset the group's offset with {RESET_TOOL}."
    )
