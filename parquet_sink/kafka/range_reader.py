"""Reads one range of one topic-partition as batches of records, to its very end and not beyond.

A range [start, end) is done when a record at or past `end` was seen, or the broker says that the topic-partition ends
there; never by counting, because transaction markers, aborted records and compaction leave gaps.
"""

import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from parquet_sink.errors import InvalidRecord, KafkaFailed, TopicGone
from parquet_sink.kafka import leader_epochs, native
from parquet_sink.kafka.batch_builder import BatchBuilder, message_offset, next_poll
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.renewal import Renewal
from parquet_sink.kafka.client.rights import to_read, to_see_group
from parquet_sink.kafka.consumer_cache import CachedConsumer, Position, consumers
from parquet_sink.kafka.damaged_batches import DamagedBatch
from parquet_sink.kafka.leader_epochs import is_truncation, offsets_deleted
from parquet_sink.kafka.native_batches import NativeBuilder
from parquet_sink.kafka.ranges_ahead import RangesAhead, is_damage, until_damage
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.ranges import LossCause, LostOffsets
from parquet_sink.model.records import VALUES_ONLY, RecordBatch, RecordParts, Unread
from parquet_sink.process.memory import give_back_at_times
from parquet_sink.process.threads import in_thread

log = logging.getLogger(__name__)

ASK_AFTER_S: Final = 5.0
"""After so long without a record, and each time as long again, a reader asks whether its topic is there."""
TIMEOUT_S: Final = 5.0
FIRST_POLL_RECORDS: Final = 1_000
POLL_S: Final = 0.1
MAIN_EVENTS: Final = 100
"""Taken at once of what is not a record, where records are read in C."""
SILENCE_S: Final = 120.0
"""A range whose next record does not come for so long, although the broker promised it, fails."""


def require_values(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """Yield the batches. Raise InvalidRecord for records that cannot be processed."""
    for batch in batches:
        if (unread := batch.unread) is not None:
            place = batch.topic, batch.partition, batch.offsets[0].as_py()
            raise InvalidRecord(*place, unread.reason, may_pass=False, next_offset=unread.next_offset)
        yield batch


class ReaderChecks:
    """For the reader of one range, which begins at `start`. kafka: says whether a loss stops the connector."""

    def __init__(self, kafka: KafkaSettings, topic: str, partition: int, start: int) -> None:
        self._kafka, self._topic, self._partition, self._start = kafka, topic, partition, start
        self._asked = 0
        self._renewal = Renewal()

    def on_silence(self, consumer: Consumer, silent_s: float) -> bool:
        """To be called when no record came for so long; the client reports no topic that is gone. Raises TopicGone.

        True when the consumer gets no answer, and is to be replaced.
        """
        due, asked = int(silent_s / ASK_AFTER_S), self._asked
        self._asked = due
        if due <= asked:
            return False
        self._renewal.asked()
        try:
            consumer.get_watermark_offsets(TopicPartition(self._topic, self._partition), timeout=TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() in client_errors.UNKNOWN:
                raise TopicGone(
                    f"Topic {self._topic}, topic-partition {self._partition} was deleted while it was read."
                ).at((self._topic, self._partition)) from None
            return self._renewal.is_due(error.args[0].code())
        self._renewal.answered()
        return False

    def on_truncation(self, message: str, received: int) -> int | None:
        """The client's message says that the log is another one below `received`. Returns when reading goes on there.

        Gives where the log was cut back to, None when that is unknown. Raises OffsetsLost if what was delivered
        differs and that is not accepted, and KafkaFailed if only what was read of this range does: then it is read
        again from its start.
        """
        cut = leader_epochs.truncation_offset(message, received)
        if cut is None:
            log.warning(
                "Topic %s, topic-partition %d: it is unknown whether the log was cut back below %d. %s Going on.",
                self._topic, self._partition, received, message,
            )  # fmt: skip
            return None
        below = min(received, self._start)
        error = leader_epochs.log_truncated(self._kafka, self._topic, self._partition, below, cut)
        if cut >= self._start:
            raise KafkaFailed(
                f"Topic {self._topic}, topic-partition {self._partition}: the log was cut back to {cut} while it was "
                f"read."
            ).at((self._topic, self._partition))
        if self._kafka.lost_offsets == "STOP":
            raise error
        log.warning("%s Going on at %d.", error, received)
        return cut


class RangeReader:
    """Iterates the batches of one range, which are a function of its start, its records, and `parts` alone.

    `next_offset` is the offset after the last batch so far. `lost`: what was passed over. topic_id: of the topic that
    the range belongs to; "" when not known. accepted: offsets below were delivered by an earlier attempt, so it is no
    loss when they are gone. epoch: the leader epoch of what is before the start, so that the leader is asked whether
    the log is the same; -1: not. parts: what of a record is read beside its value; keys and headers that nobody asks
    for cost nothing. ahead: what may have fetched the range beforehand.
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
        parts: RecordParts = VALUES_ONLY,
        ahead: RangesAhead | None = None,
    ) -> None:
        self._kafka, self.topic, self.partition, self.end, self._topic_id = kafka, topic, partition, end, topic_id
        self.next_offset = self._received = start
        self.lost: list[LostOffsets] = []
        self._accepted, self._epoch, self._parts, self._ahead = accepted, epoch, parts, ahead
        self._checks = ReaderChecks(kafka, topic, partition, max(start, accepted))
        self._beyond, self._in_c = False, native.is_used()
        self._damage: DamagedBatch | None = None
        self._read_again_at = -1

    def batches(self) -> Iterator[RecordBatch]:
        """Raises OffsetsLost when Kafka no longer has the start and the settings do not accept that; KafkaFailed.

        When it raises, records that do not fill a batch are not given: the range is read again from its start.
        """
        if self._in_c and self._ahead is not None:
            yield from self._read_ahead(self._ahead)
        if self._received < self.end:
            yield from self._read_alone()
        self.next_offset = max(self.next_offset, self.end)
        give_back_at_times()

    def _read_ahead(self, ahead: RangesAhead) -> Iterator[RecordBatch]:
        """What was fetched beforehand; `_received` tells how far that is."""
        if not ahead.begin(self.topic, self.partition, self._received, self.end):
            return
        builder = ahead.builder(self.topic, self.partition, self._parts)
        while (reading := ahead.read(builder, self.end)) is not None:
            batch = builder.take() if reading.full else builder.rest() if reading.at_end else None
            if batch is not None:
                self.next_offset = self._received = batch.next_offset
                yield batch
            if reading.at_end:
                self._received = self.end
                return

    def _read_alone(self) -> Iterator[RecordBatch]:
        cached = self._acquire()
        try:
            for batch in self._read_around_damage(cached):
                self.next_offset = batch.next_offset
                yield batch
        except GeneratorExit:
            self._beyond = True
            self._release(cached)
            raise
        self._release(cached)

    def _read_around_damage(self, cached: CachedConsumer) -> Iterator[RecordBatch]:
        """Yield batches, with one that has no value in the place of each that cannot be read."""
        while self._received < self.end:
            yield from self._read_in_c(cached) if self._in_c else self._read_by_client(cached)
            if self._damage is None:
                return
            limit, self._beyond = str(cached.options["receive.message.max.bytes"]), True
            yield self._pass_over(self._damage, limit)
            self._damage = None
            self._replace(cached)

    def _pass_over(self, damage: DamagedBatch, limit: str) -> RecordBatch:
        """Return what stands for a damaged batch, as far as it is in the range. limit: see `DamagedBatch.describe`."""
        first, self._received = self._received, damage.find_end(self._kafka, self._received, self.end)
        reason = damage.describe(first, self._received, limit)
        log.warning("Topic %s, topic-partition %d: %s.", self.topic, self.partition, reason)
        batch = RecordBatch.of(self.topic, self.partition, [first], [0], [None])
        return replace(batch, unread=Unread(reason, self._received))

    def _on_damage(self, cached: CachedConsumer, error: KafkaError, offset: int) -> bool:
        """Read once more what may have been damaged on its way; then the batches before it are all that is given."""
        self._received = max(self._received, offset)
        if self._received >= self.end:
            return True
        if self._read_again_at != offset:
            self._read_again_at = offset
            self._replace(cached)
            return False
        self._damage = DamagedBatch(self.topic, self.partition, offset, error.str())
        return True

    def _read_by_client(self, cached: CachedConsumer) -> Iterator[RecordBatch]:
        builder, finished = BatchBuilder(self.topic, self.partition, self._parts, self._kafka.record_max_bytes), False
        asked, last_heard = FIRST_POLL_RECORDS, time.monotonic()
        while not finished:
            messages = cached.consumer.consume(min(asked, builder.room, self.end - self._received), POLL_S)
            if not messages:
                self._hear_nothing(cached, last_heard)
                continue
            records, finished = self._without_events(cached, messages)
            if records:
                asked = next_poll(records, asked)
                builder.add(records)
                yield from builder.full()
            last_heard = time.monotonic()  # only now: while a task waits for the target Kafka is not silent
        if (rest := builder.rest()) is not None:
            yield rest

    def _read_in_c(self, cached: CachedConsumer) -> Iterator[RecordBatch]:
        builder, finished = NativeBuilder(self.topic, self.partition, self._parts, self._kafka.record_max_bytes), False
        last_heard = time.monotonic()
        while not finished:
            reading = cached.native_queue.read(builder, self.end, POLL_S)
            self._received = max(self._received, builder.received)
            finished = reading.at_end
            if reading.full:
                yield builder.take()
            if reading.event is not None:
                finished |= self._on_event(cached, *reading.event)
            finished |= self._serve(cached)
            if reading.heard:
                last_heard = time.monotonic()
            else:
                self._hear_nothing(cached, last_heard)
        if (rest := builder.rest()) is not None:
            yield rest

    def _serve(self, cached: CachedConsumer) -> bool:
        """Lets the client serve its main queue: log lines, callbacks, events that are of no topic-partition."""
        finished = False
        for message in cached.consumer.consume(MAIN_EVENTS, 0):
            error = message.error()
            if error is None:  # a record where none is to come: what is in C's queue would have a gap
                self._assign(cached)
            else:
                finished |= self._on_event(cached, error, message.offset() or 0)
        return finished

    def _acquire(self) -> CachedConsumer:
        """A consumer at the start; with an epoch a new one, since one that knows the leader does not ask it."""
        cached = consumers.take(self._kafka, fresh=self._epoch >= 0, in_c=self._in_c)
        if cached.position != Position(self.topic, self._topic_id, self.partition, self._received):
            self._assign(cached, self._epoch)
        return cached

    def _hear_nothing(self, cached: CachedConsumer, last_heard: float) -> None:
        if self._is_deaf(cached.consumer, last_heard):
            self._replace(cached)

    def _replace(self, cached: CachedConsumer) -> None:
        """Take another consumer in the place of one that gets no answer, whose end may take long."""
        old = replace(cached)
        in_thread(old.close)
        new = consumers.take(self._kafka, fresh=True, in_c=self._in_c)
        cached.consumer, cached.options, cached.queue = new.consumer, new.options, None
        self._assign(cached)

    def _assign(self, cached: CachedConsumer, epoch: int = -1) -> None:
        cached.assign(self.topic, self.partition, self._received, epoch, in_c=self._in_c)

    def _release(self, cached: CachedConsumer) -> None:
        """Keeps the consumer for the next range. Records past the end that it gave us are read again: they are few."""
        cached.position = Position(self.topic, self._topic_id, self.partition, self.end)
        if self._beyond:
            cached.unassign()
        consumers.put_back(cached)

    def _without_events(self, cached: CachedConsumer, messages: list[Message]) -> tuple[list[Message], bool]:
        """The records below the end, and whether the range is done."""
        messages = list(until_damage(messages))
        records = [m for m in messages if m.error() is None] if any(map(Message.error, messages)) else messages
        finished = False
        if records:
            last = message_offset(records[-1])
            self._received, finished = last + 1, last >= self.end - 1
            if last >= self.end:
                self._beyond = True
                records = [m for m in records if message_offset(m) < self.end]
        if len(records) < len(messages):
            for message in messages:
                if (error := message.error()) is not None:
                    finished |= self._on_event(cached, error, message.offset() or 0)
        return records, finished

    def _on_event(self, cached: CachedConsumer, error: KafkaError, offset: int) -> bool:
        """An event between records. True when the topic-partition ends at or past the end of the range.

        "End of the topic-partition" comes once: a reader that used it up for one range looks the next one up again.
        """
        code = error.code()
        if code == client_options.END_OF_PARTITION:
            self._beyond |= offset > self.end  # the next range, which goes up to there, gets no such event
            return offset >= self.end
        if is_damage(error):
            return self._on_damage(cached, error, offset)
        if is_truncation(code, error.str()):
            cut = self._checks.on_truncation(error.str(), self._received)
            self.lost += [] if cut is None else [LostOffsets(cut, self._received, LossCause.TRUNCATED)]
            self._assign(cached)
            return False
        if code in client_options.OUT_OF_RANGE:
            return self._on_retention(cached)
        if error.retriable() or code in client_errors.PASSING:
            return False
        raise client_errors.failure(
            error,
            f"Topic {self.topic}, topic-partition {self.partition}, offset {self._received}",
            needs=(to_read(self.topic), to_see_group(self._kafka.group)),
        ).at((self.topic, self.partition))

    def _on_retention(self, cached: CachedConsumer) -> bool:
        """Retention deleted the next offset: stop, or go on behind the gap when the settings accept the loss.

        Nothing follows an offset past the end: the group's offsets must be looked up again (KafkaFailed).
        """
        tp = TopicPartition(self.topic, self.partition)
        low, high = cached.consumer.get_watermark_offsets(tp, timeout=15.0)
        gone = max(self._received, min(self._accepted, low))  # what was delivered before is no loss
        if gone < low or self._received > high:
            self._accept_loss(gone, low, high)
        self._received = self.next_offset = max(low, self._received)
        if self._received >= self.end:
            self._beyond = True
            return True
        self._assign(cached)
        return False

    def _accept_loss(self, gone: int, low: int, high: int) -> None:
        """Raises OffsetsLost or KafkaFailed, unless the settings accept the loss of offsets [gone, low)."""
        error = offsets_deleted(self._kafka, self.topic, self.partition, gone, low, high)
        lost = LostOffsets(gone, min(max(low, gone), self.end), LossCause.RETENTION)
        if self._kafka.lost_offsets == "STOP":
            raise error
        if gone > high:
            raise KafkaFailed(str(error)).at(error.topic_partition)
        self.lost.append(lost)
        log.warning("%s Going on at %d.", error, lost.end)

    def _is_deaf(self, consumer: Consumer, last_heard: float) -> bool:
        """Whether the consumer is to be replaced. Raises KafkaFailed when no record came for SILENCE_S."""
        silent_s = time.monotonic() - last_heard
        deaf = self._checks.on_silence(consumer, silent_s)
        if silent_s > SILENCE_S:
            raise KafkaFailed(
                f"Topic {self.topic}, topic-partition {self.partition}: no record came for {SILENCE_S:.0f} s after "
                f"offset {self._received}, although the range goes to {self.end}. Check the broker."
            ).at((self.topic, self.partition))
        return deaf
