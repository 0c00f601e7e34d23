"""Consumers kept in this process from range to range: a new one costs 0.2 s.

Nobody polls a consumer between two ranges, and one that is assigned to something can only be polled for its records. So
a thread takes those that wait for long off their topic-partition, which ends their fetching, and polls them then, which
empties what they log.
"""

import logging
import threading
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.native_batches import NativeQueue
from parquet_sink.kafka.settings import KafkaSettings

MOST_IDLE: Final = 6
"""Consumers that wait in one process at most, one for each configuration and way of reading.

Each holds connections and up to 1 MiB. A worker may be killed at any time: a cache must be bounded, and may be lost."""
UNASSIGN_AFTER_S: Final = 10.0
"""What a consumer fetched ahead is forgotten when it waits for so long."""
SWEEP_S: Final = 5.0
CHECK_S: Final = 60.0
"""After which a consumer's options are compared with those of today: a store of certificates may have been renewed."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Position:
    """The next record that a consumer would give. topic_id: "" when it is not known.

    With the id, because what a consumer has fetched ahead may be of a topic that is gone.
    """

    topic: str
    topic_id: str
    partition: int
    offset: int


@dataclass
class CachedConsumer:
    """A consumer, and where it stands; position: None when that is not known. idle_since: seconds that never jump.

    queue: of the topic-partition that it is assigned to, where records are read in C. options: what it was made with,
    secrets revealed. checked_at: when they were last known to be right; seconds that never jump.
    """

    consumer: Consumer
    key: Hashable
    position: Position | None = None
    idle_since: float = 0.0
    queue: NativeQueue | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    checked_at: float = 0.0

    @property
    def native_queue(self) -> NativeQueue:
        """Of a consumer that was assigned to be read in C."""
        assert self.queue is not None
        return self.queue

    def assign(self, topic: str, partition: int, offset: int, epoch: int = -1, *, in_c: bool) -> None:
        """To one topic-partition, from an offset on. in_c: its records are read by `queue`, not by the consumer."""
        if self.queue is not None and (self.queue.topic, self.queue.partition) == (topic, partition):
            self.queue.forget()
        else:
            self._end_queue()
            self.queue = NativeQueue(self.consumer, topic, partition) if in_c else None
        self.consumer.assign([TopicPartition(topic, partition, offset, leader_epoch=epoch)])

    def unassign(self) -> None:
        self._end_queue()
        self.consumer.unassign()
        self.position = None

    def close(self) -> None:
        self._end_queue()
        self.consumer.close()

    def _end_queue(self) -> None:
        if self.queue is not None:
            self.queue.close()
        self.queue = None


class ConsumerCache:
    """Consumers that wait for their next range, by configuration. Whoever takes one owns it until it is put back."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, CachedConsumer] = {}
        self._sweeping = threading.Event()

    def take(
        self, kafka: KafkaSettings, *, fresh: bool = False, in_c: bool = False, several: bool = False
    ) -> CachedConsumer:
        """The consumer for these settings, or a new one. fresh: a new one, whatever waits.

        in_c: its records are read in C, so that those of topic-partitions it ever had no longer come by itself.
        several: of several topic-partitions at once, each with a queue of its own.
        """
        key, now = cache_key(kafka, several=several, in_c=in_c), time.monotonic()
        found = self._waiting.pop(key, None)
        if found is not None and not fresh and now - found.checked_at < CHECK_S:
            return found
        options = client_options.reader_options(kafka, several=several)
        if found is not None:
            if not fresh and found.options == options:
                found.checked_at = now
                return found
            found.close()
        while len(self._waiting) >= MOST_IDLE:
            self._waiting.pop(next(iter(self._waiting))).close()
        return CachedConsumer(client_options.build(Consumer, options), key, options=options, checked_at=now)

    def put_back(self, one: CachedConsumer) -> None:
        """Keeps a consumer for the next range."""
        one.idle_since = time.monotonic()
        self._waiting[one.key] = one
        if not self._sweeping.is_set():
            self._sweeping.set()
            threading.Thread(target=self._sweep_for_ever, name="idle-consumers", daemon=True).start()

    def _sweep_for_ever(self) -> None:
        while True:
            time.sleep(SWEEP_S)
            try:
                self.sweep(time.monotonic())
            except Exception:  # whoever needs the consumer will report it
                log.debug("idle consumers", exc_info=True)

    def sweep(self, now: float) -> None:
        """Takes consumers that wait for long off their topic-partition, and polls them."""
        for key in list(self._waiting):
            if (one := self._waiting.pop(key, None)) is None:
                continue
            if now - one.idle_since >= UNASSIGN_AFTER_S:
                if one.position is not None:
                    one.unassign()
                one.consumer.poll(0)
            if self._waiting.setdefault(key, one) is not one:  # another was made meanwhile
                one.close()


def cache_key(kafka: KafkaSettings, *, several: bool, in_c: bool) -> Hashable:
    """What `reader_options` makes options of, and how records are read: much cheaper than the options themselves."""
    return kafka.group, kafka.isolation_level, frozenset(kafka.client.items()), several, in_c


consumers: Final = ConsumerCache()
"""Those of this process."""
