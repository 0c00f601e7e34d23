"""Writes rejected records to the dead-letter topic, as they were, and has the brokers acknowledge them.

A dead letter has the record's key, value, headers and timestamp (a record without one gets the time of writing). Why it
is there stands in more headers, after its own, by Kafka Connect's names.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message

from parquet_sink.errors import BrokerAway, KafkaFailed, KafkaRefused
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client.causes import UNKNOWN, Cause
from parquet_sink.kafka.client.options import MEMORY, delivery_s
from parquet_sink.kafka.client.rights import REFUSED, to_write
from parquet_sink.kafka.dead_letter_topic import DeadLetterTopic
from parquet_sink.kafka.producer_cache import CachedProducer, ProducerCache, producers
from parquet_sink.kafka.settings import DeadLetterSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import Header
from parquet_sink.model.rejected import TASK, Rejected, Stage, class_name, stage_name

MOST_BYTES: Final = 16 << 20
"""On their way at once, unless a single record is larger: the client keeps a copy of each."""
MOST_RECORDS: Final = 10_000
POLL_EVERY: Final = 100
WAIT_S: Final = 0.1
_NOTHING_COMMITTED: Final = "Nothing from this record on is committed"
_CURES: Final[Mapping[int, str]] = {
    KafkaError.MSG_SIZE_TOO_LARGE: "It is too large, with its headers: raise the topic's max.message.bytes",
    KafkaError.INVALID_RECORD: "Set the topic's cleanup.policy to delete: compacted ones take no record without a key",
    KafkaError.INVALID_TIMESTAMP: "Raise the topic's message.timestamp.before.max.ms, or .after.max.ms",
}
"""What the brokers refuse, and would refuse again."""
REFUSED_S: Final = 4.0
"""After so long without an acknowledgement a broker that does not let us in is not tried any more."""
GRACE_S: Final = 10.0
"""Beyond the time that a dead letter may take: the client promises an answer by then."""

PREFIX: Final = "__connect.errors."
NOT_KEPT: Final = "__parquet_sink.errors.headers.not.kept"
"""A header of our own: of headers with a name that is not UTF-8 the Kafka client can neither read nor write any."""
_WHY_NOT_KEPT: Final = b"a name is not UTF-8"
_EXCEPTION: Final = "parquet_sink.errors.InvalidRecord"
"""Programs that read dead letters know it: it stays when the class moves."""


@dataclass(frozen=True)
class HeaderWriter:
    """connector: its name. context: whether headers say why. classes: what carries out a stage, by its full name."""

    connector: str
    context: bool
    classes: Mapping[Stage, str] = field(default_factory=dict)

    def headers(self, rejected: Rejected) -> list[Header]:
        """The record's own in their order, then ours. All names can be written; all of our values are UTF-8."""
        own = rejected.headers or ()
        kept = [one for one in own if _writable(one[0])]
        if rejected.headers is None or len(kept) < len(own):
            kept.append((NOT_KEPT, _WHY_NOT_KEPT))
        return kept + self._context(rejected) if self.context else kept

    def _context(self, rejected: Rejected) -> list[Header]:
        values = {
            "topic": rejected.topic,
            "partition": str(rejected.partition),
            "offset": str(rejected.offset),
            "connector.name": self.connector,
            "task.id": TASK,
            "stage": stage_name(rejected.stage),
            "class.name": class_name(rejected, self.classes),
            "exception.class.name": _EXCEPTION,
            "exception.message": rejected.reason,
            "exception.stacktrace": f"{_EXCEPTION}: {rejected.reason}",
        }
        return [(PREFIX + name, text.encode("utf-8", "backslashreplace")) for name, text in values.items()]


class DeadLetters:
    """A `DivertStore` of one Spark task. What is put is sent at once, and acknowledged when `flush` returns."""

    def __init__(
        self,
        settings: DeadLetterSettings,
        headers: HeaderWriter,
        *,
        cache: ProducerCache = producers,
        ensure_topic: Callable[[DeadLetterSettings], None] = lambda settings: DeadLetterTopic(settings).ensure(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._headers, self._cache = settings, headers, cache
        self._ensure_topic, self._clock = ensure_topic, clock
        self._limit_s = delivery_s(settings) + GRACE_S
        self._taken: CachedProducer | None = None
        self._on_way: Counter[PartitionKey] = Counter()
        self._bytes = self._puts = 0
        self._failed: dict[PartitionKey, KafkaFailed] = {}
        self._ended: KafkaFailed | None = None

    def put(self, rejected: Rejected) -> None:
        """Raises KafkaFailed for a record that cannot be sent, or when one of its topic-partition failed before."""
        one, key = self._producer(), (rejected.topic, rejected.partition)
        self._puts += 1
        if self._puts % POLL_EVERY == 0:
            self._serve(one, 0)
        headers = self._headers.headers(rejected)
        size = len(rejected.key or b"") + len(rejected.value or b"") + _size(headers)
        self._wait(lambda: self._bytes + size <= MOST_BYTES and self._on_way.total() < MOST_RECORDS)
        self._raise_ended()
        self._raise_failed(key)
        self._send(one, rejected, headers, partial(self._on_delivery, rejected.offset, key, size))
        self._on_way[key] += 1
        self._bytes += size

    def flush(self, planned: PlannedRange) -> None:
        """Raises KafkaFailed when a record of the range was not acknowledged."""
        key = (planned.topic, planned.partition)
        self._wait(lambda: not self._on_way[key], flush=True)
        self._raise_failed(key)

    def close(self) -> None:
        """Keeps the producer for the next task, unless something failed or is still on its way."""
        if self._taken is None:
            return
        spent = self._ended or self._failed or self._on_way.total()
        (self._cache.discard if spent else self._cache.put_back)(self._taken)
        self._taken = None

    def _producer(self) -> CachedProducer:
        """A new one only once the topic is there: brokers might make one by themselves, of another kind."""
        if self._taken is None:
            self._taken = self._cache.take(self._settings)
        if self._taken is None:
            self._ensure_topic(self._settings)
            self._taken = self._cache.make(self._settings)
        return self._taken

    def _send(
        self,
        one: CachedProducer,
        rejected: Rejected,
        headers: Sequence[Header],
        on_delivery: Callable[[KafkaError | None, Message], None],
    ) -> None:
        deadline, key = self._clock() + self._limit_s, (rejected.topic, rejected.partition)
        while True:
            try:
                one.producer.produce(
                    self._settings.topic,
                    rejected.value,
                    rejected.key,
                    on_delivery=on_delivery,
                    timestamp=max(rejected.timestamp_ms, 0),
                    headers=list(headers),
                )
            except BufferError:
                if not len(one.producer):
                    raise self._larger_than_memory(rejected) from None
                self._serve(one, WAIT_S)
                if self._clock() > deadline:
                    raise self._unacknowledged() from None
            except KafkaException as error:
                raise self._failure(error.args[0], _about(key, rejected.offset)).at(key) from None
            else:
                return

    def _serve(self, one: CachedProducer, seconds: float, *, flush: bool = False) -> None:
        """Lets the producer work. Raises KafkaFailed when it has come to its end: nothing is sent by it any more."""
        try:
            (one.producer.flush if flush else one.producer.poll)(seconds)
        except KafkaException as error:
            self._ended = self._failure(error.args[0])
            raise self._ended from None

    def _wait(self, done: Callable[[], bool], *, flush: bool = False) -> None:
        """Until so, or until nothing is on its way. flush: what waits for company is sent now."""
        begun = self._clock()
        while self._taken is not None and self._on_way.total() and not done():
            self._raise_ended()
            self._serve(self._taken, WAIT_S, flush=flush)
            waited = self._clock() - begun
            if waited > REFUSED_S and (cause := self._cause).lasting:
                raise client_errors.not_let_in(f"Dead-letter topic {self._settings.topic}: the broker", cause)
            if waited > self._limit_s:
                raise self._unacknowledged()

    def _on_delivery(self, offset: int, key: PartitionKey, size: int, error: KafkaError | None, _: Message) -> None:
        """In whichever call polls the producer."""
        self._on_way[key] -= 1
        self._bytes -= size
        if error is not None and key not in self._failed:
            self._failed[key] = self._ended or self._failure(error, _about(key, offset)).at(key)

    def _raise_ended(self) -> None:
        if self._ended is not None:
            raise self._ended

    def _raise_failed(self, key: PartitionKey) -> None:
        if key in self._failed:
            raise self._failed[key]

    def _failure(self, error: KafkaError, about: str = "") -> KafkaFailed:
        """about: which record could not be sent, where it is about one."""
        what = f"Dead-letter topic {self._settings.topic}{about}"
        right = to_write(self._settings.topic)
        lacks = right.cure("the user of [producer.override.*]") if error.code() in REFUSED else None
        if lacks and error.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED:
            lacks = f"{lacks} (before Kafka 2.8 also IdempotentWrite on the cluster)"
        if cure := lacks or _CURES.get(error.code()):
            return KafkaRefused(f"{what}: {error.str().rstrip('.')}. {cure}, then start again. {_NOTHING_COMMITTED}.")
        if error.code() in client_errors.UNKNOWN:
            return KafkaFailed(f"{what}: the topic is not there any more; it is created again. {_NOTHING_COMMITTED}.")
        return client_errors.failure(error, what, cause=self._cause, ending=_NOTHING_COMMITTED)

    def _larger_than_memory(self, rejected: Rejected) -> KafkaRefused:
        return KafkaRefused(
            f"Dead-letter topic {self._settings.topic}: the record of topic {rejected.topic}, topic-partition "
            f"{rejected.partition}, offset {rejected.offset} is larger than [producer.override.{MEMORY}]; raise it. "
            f"{_NOTHING_COMMITTED}."
        ).at((rejected.topic, rejected.partition))

    def _unacknowledged(self) -> BrokerAway:
        return BrokerAway(
            f"Dead-letter topic {self._settings.topic}: no acknowledgement within {self._limit_s:.0f} s. "
            f"{self._cause.words}"
        )

    @property
    def _cause(self) -> Cause:
        """Why brokers cannot be reached, if the client says so."""
        return UNKNOWN if self._taken is None else self._taken.client_log.cause_of_silence()


def _about(key: PartitionKey, offset: int) -> str:
    return f", for topic {key[0]}, topic-partition {key[1]}, offset {offset}"


def _size(headers: Sequence[Header]) -> int:
    """Bytes of names and values."""
    return sum(len(name) + len(value or b"") for name, value in headers)


def _writable(name: str) -> bool:
    """The client ends the process for a name with a surrogate."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
