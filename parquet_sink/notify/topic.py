"""Notices into a topic: each is acknowledged by all in-sync replicas before its file counts as accepted.

Brokers get them in the binary form of CloudEvents: the notice's JSON as value, attributes as headers `ce_*`. The key is
the topic-partition of the file, so that notices of one are in order.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message

from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client.rights import REFUSED, to_write
from parquet_sink.kafka.producer_cache import CachedProducer, ProducerCache, producers
from parquet_sink.notify.notice import CONTENT_TYPE, Notice
from parquet_sink.notify.settings import NOTIFY_TOPIC, NotifySettings
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict

ATTEMPT_S: Final = 20.0
"""How long one attempt waits for brokers: then the file's next attempt is planned as of any target."""
PROBE_S: Final = 10.0
LOOK_S: Final = 3.0
"""After so long without an acknowledgement it is looked whether the topic is there, within as long."""
_POLL_S: Final = 0.05


@dataclass
class _Delivery:
    """What brokers said of one notice."""

    done: threading.Event = field(default_factory=threading.Event)
    error: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """In whichever thread polls the producer."""
        self.error = error
        self.done.set()


class TopicNotices:
    """Of one connector; threads share it, and with it one producer, kept in the process for the next micro-batch."""

    def __init__(
        self,
        settings: NotifySettings,
        cache: ProducerCache = producers,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        assert settings.topic is not None
        self._settings, self._topic = settings, settings.topic
        self._cache, self._monotonic = cache, monotonic
        self._lock = threading.Lock()
        self._taken: CachedProducer | None = None
        self._users, self._spent = 0, False

    def send(self, notice: Notice, key: str, seconds_left: float) -> Outcome | None:
        """None once brokers have it; else what that is to whoever sends the file."""
        delivery, one = _Delivery(), self._acquire()
        by = self._monotonic() + min(seconds_left, ATTEMPT_S)
        looked_s, error = self._monotonic() + LOOK_S, None
        try:
            one.producer.produce(
                self._topic, notice.data.encode(), key.encode(), headers=_headers(notice), on_delivery=delivery
            )
            while not delivery.done.is_set() and self._monotonic() < by:
                one.producer.poll(_POLL_S)
                if self._monotonic() >= looked_s:  # the client goes on looking for a topic that is not there
                    error, looked_s = self._looked_up(one, LOOK_S), by
                    if error is not None:
                        break
        except (KafkaException, BufferError) as error:
            self._spent = True
            found = error.args[0] if isinstance(error, KafkaException) else None
            return self._failed(found, one)
        finally:
            self._spent = self._spent or not delivery.done.is_set() or delivery.error is not None
            self._release(one)
        return None if delivery.done.is_set() and delivery.error is None else self._failed(delivery.error or error, one)

    def probe(self) -> ProbeResult:
        """Whether the topic is there. Writes nothing."""
        one = self._acquire()
        try:
            error = self._looked_up(one, PROBE_S)
        finally:
            self._release(one)
        if error is None:
            return ProbeResult(Health.OK, "it is there")
        failed = self._failed(error, one)
        return ProbeResult(Health.FAILED, f"{failed.cause}. {failed.cure}.")

    def _looked_up(self, one: CachedProducer, seconds: float) -> KafkaError | None:
        """Why the topic cannot be looked up; None: it is there."""
        try:
            error: KafkaError | None = one.producer.list_topics(self._topic, timeout=seconds).topics[self._topic].error
        except KafkaException as raised:
            self._spent, error = True, raised.args[0]
        return error

    def _acquire(self) -> CachedProducer:
        with self._lock:
            if self._taken is None:
                self._taken, self._spent = self._cache.take(self._settings) or self._cache.make(self._settings), False
            self._users += 1
            return self._taken

    def _release(self, one: CachedProducer) -> None:
        """Whoever is last puts the producer back; one with something on its way, or that failed, is thrown away."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._taken = None
                (self._cache.discard if self._spent else self._cache.put_back)(one)

    def _failed(self, error: KafkaError | None, one: CachedProducer) -> Outcome:
        """Not taken for sure, so the file's next attempt sends it again; what nobody cures by waiting is refused."""
        where = f"{NOTIFY_TOPIC}: topic {self._topic}"
        if error is None:
            cause = one.client_log.cause_of_silence()
            return Outcome(
                Verdict.UNKNOWN, f"{where}: no acknowledgement in time", cause.words or "Look at the brokers"
            )
        said = error.str().rstrip(".")
        if error.code() in REFUSED:
            return Outcome(Verdict.REFUSED, f"{where}: {said}", to_write(self._topic).cure("the connector's user"))
        if error.code() in client_errors.UNKNOWN or error.code() == KafkaError._UNKNOWN_TOPIC:  # noqa: SLF001 - a name
            return Outcome(Verdict.UNKNOWN, f"{where} is not there", f"Make the topic, or correct {NOTIFY_TOPIC}")
        return Outcome(Verdict.UNKNOWN, f"{where}: {said}", "Look at the brokers, and at the topic")


def _headers(notice: Notice) -> list[tuple[str, str | bytes | None]]:
    found = {"content-type": CONTENT_TYPE} | {f"ce_{name}": value for name, value in notice.attributes.items()}
    return [(name, value.encode()) for name, value in found.items()]
