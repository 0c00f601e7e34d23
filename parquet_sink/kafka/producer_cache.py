"""Producers kept in this process from micro-batch to micro-batch: a new one has to connect first.

A client keeps what it logs until it is polled, so a thread polls those that nobody uses.
"""

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaException, Producer

from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.options import producer_options
from parquet_sink.kafka.settings import ProducerSettings
from parquet_sink.process.threads import in_thread

MOST_IDLE: Final = 4
"""Producers that wait in one process at most, one for each configuration."""
CLOSE_AFTER_S: Final = 600.0
SWEEP_S: Final = 5.0

log = logging.getLogger(__name__)


@dataclass
class CachedProducer:
    """A producer, and what it logs. idle_since: seconds that never jump."""

    producer: Producer
    key: int
    client_log: ClientLog
    idle_since: float = field(default=0.0)


class ProducerCache:
    """Producers that wait for their next use, by configuration. Whoever takes one owns it until it is put back."""

    def __init__(self) -> None:
        self._waiting: dict[int, CachedProducer] = {}
        self._sweeping = threading.Event()

    def take(self, settings: ProducerSettings) -> CachedProducer | None:
        """The producer that waits for these settings, None when there is none."""
        return self._waiting.pop(_key(settings), None)

    def make(self, settings: ProducerSettings) -> CachedProducer:
        """A new one. Raises InvalidConfiguration."""
        client_log = ClientLog(settings.whose)
        options = producer_options(settings)
        producer = client_options.build(Producer, options, client_log, "producer.override.*")
        return CachedProducer(producer, _key(settings), client_log)

    def put_back(self, one: CachedProducer) -> None:
        """Keeps a producer that has nothing on its way."""
        one.idle_since = time.monotonic()
        if self._waiting.setdefault(one.key, one) is not one:
            self.discard(one)
        while len(self._waiting) > MOST_IDLE:
            self.discard(self._waiting.pop(next(iter(self._waiting))))
        if not self._sweeping.is_set():
            self._sweeping.set()
            threading.Thread(target=self._sweep_for_ever, name="idle-producers", daemon=True).start()

    def discard(self, one: CachedProducer) -> None:
        """Throws a producer away, with whatever is on its way. Its end may take long where brokers are silent."""
        one.producer.purge(blocking=False)
        in_thread(one.producer.close)

    def _sweep_for_ever(self) -> None:
        while True:
            time.sleep(SWEEP_S)
            try:
                self.sweep(time.monotonic())
            except Exception:  # whoever needs the producer will report it
                log.debug("idle producers", exc_info=True)

    def sweep(self, now: float) -> None:
        """Polls producers that wait, and ends those that wait for long."""
        for key in list(self._waiting):
            if (one := self._waiting.pop(key, None)) is None:
                continue
            try:
                one.producer.poll(0)
            except KafkaException:  # it has come to its end
                self.discard(one)
                continue
            if now - one.idle_since >= CLOSE_AFTER_S or self._waiting.setdefault(key, one) is not one:
                self.discard(one)


def _key(settings: ProducerSettings) -> int:
    return client_options.fingerprint(producer_options(settings))


producers: Final = ProducerCache()
"""Those of this process."""
