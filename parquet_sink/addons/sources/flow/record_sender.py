"""Sends records to any topics, in order, and has the brokers acknowledge them.

The producer is idempotent: what the client sends again by itself is not twice in the topic.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message

from parquet_sink.errors import BrokerAway, KafkaFailed, KafkaRefused
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client.causes import UNKNOWN, Cause
from parquet_sink.kafka.client.options import delivery_s
from parquet_sink.kafka.client.rights import REFUSED, to_write
from parquet_sink.kafka.producer_cache import CachedProducer, ProducerCache, producers
from parquet_sink.kafka.settings import ProducerSettings
from parquet_sink.model.partitions import PartitionKey

MOST_BYTES: Final = 16 << 20
"""On their way at once, unless a single record is larger: the client keeps a copy of each."""
MOST_RECORDS: Final = 20_000
POLL_EVERY: Final = 100
WAIT_S: Final = 0.1
UNREACHABLE_S: Final = 5.0
"""After so long without any acknowledgement, from brokers of which the client says that it cannot reach them, a task
ends: the driver waits for them, where a stop is heard.
"""
GRACE_S: Final = 10.0
"""Beyond the time that a record may take: the client promises an answer by then."""
_ANY: Final = -1
_NOTHING_STORED: Final = "No position behind it is stored"


@dataclass(frozen=True)
class Outgoing:
    """One record as bytes. partition: None leaves it to the key, else to chance. timestamp_ms: 0 is now."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int = 0

    @property
    def size(self) -> int:
        """In bytes, as far as it is the record's own."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


@dataclass
class Delivered:
    """What brokers acknowledged in one topic-partition: how many records, and their first and last offset there."""

    count: int
    first: int
    last: int


class RecordSender:
    """Of one Spark task. What is sent is acknowledged when `flush` returns. delivered: what is acknowledged so far."""

    def __init__(
        self,
        settings: ProducerSettings,
        *,
        cache: ProducerCache = producers,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._cache, self._clock = settings, cache, clock
        self._limit_s = delivery_s(settings) + GRACE_S
        self._taken: CachedProducer | None = None
        self._on_way = self._bytes = self._puts = 0
        self._heard_s = 0.0
        self._failed: KafkaFailed | None = None
        self.delivered: dict[PartitionKey, Delivered] = {}

    def send(self, record: Outgoing) -> None:
        """Raises KafkaFailed when it, or one before it, cannot be sent."""
        size = record.size
        self._puts += 1
        if self._puts % POLL_EVERY == 0:
            self._serve(0)
        self._wait(lambda: self._bytes + size <= MOST_BYTES and self._on_way < MOST_RECORDS)
        self._produce(record, size)
        self._on_way += 1
        self._bytes += size

    def flush(self) -> None:
        """Raises KafkaFailed when a record was not acknowledged."""
        self._wait(lambda: False, flush=True)

    def close(self) -> None:
        """Keeps the producer for the next task, unless something failed or is still on its way."""
        if self._taken is not None:
            (self._cache.discard if self._failed or self._on_way else self._cache.put_back)(self._taken)
            self._taken = None

    def _producer(self) -> CachedProducer:
        if self._taken is None:
            self._taken = self._cache.take(self._settings) or self._cache.make(self._settings)
        return self._taken

    def _produce(self, record: Outgoing, size: int) -> None:
        begun = self._clock()
        while True:
            try:
                self._producer().producer.produce(
                    record.topic,
                    record.value,
                    record.key,
                    on_delivery=partial(self._on_delivery, record.topic, size),
                    timestamp=record.timestamp_ms,
                    headers=list(record.headers),
                    partition=_ANY if record.partition is None else record.partition,
                )
            except BufferError:
                self._serve(WAIT_S)
                if self._clock() - begun > self._limit_s:
                    raise self._give_up(self._unacknowledged()) from None
            except KafkaException as error:
                raise self._give_up(self._failure(error.args[0], record.topic)) from None
            else:
                return

    def _serve(self, seconds: float, *, flush: bool = False) -> None:
        """Lets the producer work. Raises KafkaFailed when it has come to its end, or a record failed."""
        if self._taken is not None:
            try:
                (self._taken.producer.flush if flush else self._taken.producer.poll)(seconds)
            except KafkaException as error:
                raise self._give_up(self._failure(error.args[0])) from None
        if self._failed is not None:
            raise self._failed

    def _wait(self, done: Callable[[], bool], *, flush: bool = False) -> None:
        """Until so, or until nothing is on its way. flush: what waits for company is sent now."""
        self._heard_s = self._clock()
        while self._on_way and not done():
            self._serve(WAIT_S, flush=flush)
            silent = self._clock() - self._heard_s
            if self._on_way and silent > UNREACHABLE_S and (cause := self._cause).words:
                let_in = client_errors.not_let_in("The broker", cause) if cause.lasting else self._unacknowledged()
                raise self._give_up(let_in)
            if self._on_way and silent > self._limit_s:
                raise self._give_up(self._unacknowledged())
        if self._failed is not None:
            raise self._failed

    def _on_delivery(self, topic: str, size: int, error: KafkaError | None, message: Message) -> None:
        """In whichever call polls the producer."""
        self._on_way -= 1
        self._bytes -= size
        self._heard_s = self._clock()
        if error is None:
            self._note((topic, message.partition() or 0), message.offset() or 0)
        elif self._failed is None:
            self._failed = self._failure(error, topic)

    def _note(self, key: PartitionKey, offset: int) -> None:
        found = self.delivered.setdefault(key, Delivered(0, offset, offset))
        found.count += 1
        found.first, found.last = min(found.first, offset), max(found.last, offset)

    def _give_up(self, failure: KafkaFailed) -> KafkaFailed:
        self._failed = failure
        return failure

    def _failure(self, error: KafkaError, topic: str = "") -> KafkaFailed:
        what, said = f"Topic {topic}" if topic else "The producer", error.str().rstrip(".")
        if error.code() in {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}:
            return KafkaRefused(
                f"{what}: {said}. Raise max.message.bytes of the topic (message.max.bytes of the brokers), and "
                f"[producer.override.max.request.size] with it; then start again. {_NOTHING_STORED}."
            )
        if error.code() == KafkaError.INVALID_RECORD:
            return KafkaRefused(
                f"{what}: {said}. A compacted topic takes no record without a key: set its cleanup.policy to delete, "
                f"give records a key, or name another topic. {_NOTHING_STORED}."
            )
        if error.code() in REFUSED:
            return KafkaRefused(f"{what}: {said}. {to_write(topic).cure('the user of [producer.override.*]')}.")
        if error.code() in client_errors.UNKNOWN:
            return KafkaRefused(f"{what} does not exist, and the brokers make none. Create it, or correct [topic].")
        return client_errors.failure(error, what, cause=self._cause, ending=_NOTHING_STORED)

    def _unacknowledged(self) -> BrokerAway:
        waited = self._clock() - self._heard_s
        return BrokerAway(f"No acknowledgement within {waited:.0f} s. {self._cause.words} {_NOTHING_STORED}.")

    @property
    def _cause(self) -> Cause:
        """Why brokers cannot be reached, if the client says so."""
        return UNKNOWN if self._taken is None else self._taken.client_log.cause_of_silence()
