"""Places of sources in a compacted topic, `offset.storage.topic`, as Kafka Connect keeps them, byte for byte.

A reader takes the topic from its beginning to its end, where the last value of a key counts. A writer sends to the
topic-partition to which Java would send a key (`murmur2_random`), so that what Kafka Connect wrote of a place, and what
is written here, lie in one topic-partition, where compaction keeps the later.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from parquet_sink.addons.sources.offsets import connect_form
from parquet_sink.addons.sources.offsets.connect_form import Places
from parquet_sink.errors import BrokerAway, KafkaFailed
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.cluster.compacted_topic import CompactedTopic, CompactedTopics
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.source_records import Place
from parquet_sink.process.threads import in_thread
from parquet_sink.worker_config.offset_storage import OFFSETS, TOPIC, OffsetStorageSettings

SILENT_S: Final = 15.0
"""How long nothing may come while the topic is read, and how long an acknowledgement may take."""
POLL_S: Final = 0.25


class TopicStorage:
    """Implements `OffsetStorage`. name: of the topic. Clients are made when they are first needed."""

    def __init__(self, settings: OffsetStorageSettings, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._name, self._clock = settings, name, clock
        self._kafka = KafkaSettings(group=f"offsets-{name}", client=settings.client)
        self._log = ClientLog(f"offset storage {name}")
        self._partitions: int | None = None
        self._producer: Producer | None = None
        self._refused: list[KafkaError] = []

    def read(self, connector: str) -> Places:
        """From the beginning to the end. The topic is made when it is not there. Raises KafkaFailed."""
        found: Places = {}
        for message in self._messages():
            key = connect_form.parsed_key(_bytes(message.key()))
            if key is None or key[0] != connector:
                continue
            place = connect_form.parsed_value(_bytes(message.value()))
            found.pop(key[1], None)
            if place is not None:
                found[key[1]] = place
        return found

    def write(self, connector: str, changes: Mapping[str, Place | None]) -> None:
        """Raises KafkaFailed unless the brokers acknowledged all of it."""
        self._ensure()
        producer = self._made()
        self._refused.clear()
        try:
            for partition, place in changes.items():
                key, value = connect_form.key(connector, partition), connect_form.value(place)
                producer.produce(self._name, value, key, on_delivery=self._on_delivery)
            waiting = producer.flush(SILENT_S)
        except KafkaException as error:
            raise self._failed(error.args[0], "cannot be written") from None
        if self._refused:
            raise self._failed(self._refused[0], "cannot be written")
        if waiting:
            self._discard()
            raise self._silent()

    def close(self) -> None:
        """Throws away what is on its way; a broker that is silent is not waited for."""
        self._discard()

    def _discard(self) -> None:
        if self._producer is not None:
            self._producer.purge(blocking=False)
            in_thread(self._producer.close)
            self._producer = None

    def _ensure(self) -> int:
        if self._partitions is None:
            kept = self._settings
            wanted = CompactedTopic(
                self._name, OFFSETS, "positions", kept.partitions, kept.replication_factor, kept.topic_settings
            )
            self._partitions = CompactedTopics(self._kafka, self._log).ensure(wanted)
        return self._partitions

    def _made(self) -> Producer:
        if self._producer is None:
            options: dict[str, Any] = {
                **client_options.admin_options(self._kafka),
                "enable.idempotence": True,
                "acks": "all",
                "partitioner": "murmur2_random",
                "linger.ms": "0",
            }
            self._producer = client_options.build(Producer, options, self._log)
        return self._producer

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._refused.append(error)

    def _messages(self) -> Iterator[Message]:
        waiting = set(range(self._ensure()))
        with self._consumer(sorted(waiting)) as consumer:
            heard_s = self._clock()
            while waiting:
                message = consumer.poll(POLL_S)
                if message is None:
                    if self._clock() - heard_s > SILENT_S:
                        raise self._silent()
                    continue
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == client_options.END_OF_PARTITION:
                    waiting.discard(_number(message))
                elif error.code() not in client_errors.PASSING:
                    raise self._failed(error, "cannot be read")
                else:
                    continue
                heard_s = self._clock()

    @contextmanager
    def _consumer(self, partitions: list[int]) -> Iterator[Consumer]:
        options = {
            **client_options.group_options(self._kafka),
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
        consumer: Consumer = client_options.build(Consumer, options, self._log)
        try:
            consumer.assign([TopicPartition(self._name, number, OFFSET_BEGINNING) for number in partitions])
            yield consumer
        finally:
            in_thread(consumer.close)

    def _silent(self) -> KafkaFailed:
        return BrokerAway(
            f"Topic {self._name} [{TOPIC}]: no answer within {SILENT_S:g} s. {self._log.cause_of_silence().words}"
        )

    def _failed(self, error: KafkaError, what: str) -> KafkaFailed:
        cause = self._log.cause_of_silence()
        return client_errors.failure(error, f"Topic {self._name} [{TOPIC}] {what}", cause=cause)


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def _number(message: Message) -> int:
    found = message.partition()
    return -1 if found is None else found
