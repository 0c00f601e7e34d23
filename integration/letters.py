"""What is in a dead-letter topic."""

import uuid
from collections.abc import Iterator
from contextlib import closing

from confluent_kafka import Consumer, Message, TopicPartition

from parquet_sink.addons.devkit.broker import Broker


def letters(broker: Broker, topic: str) -> list[Message]:
    """All that is in the one topic-partition of the topic, in the order in which it was written."""
    return list(each_letter(broker, topic))


def each_letter(broker: Broker, topic: str) -> Iterator[Message]:
    """The same one after the other: a soak has too many to hold at once."""
    options = {"bootstrap.servers": broker.bootstrap_servers, "group.id": uuid.uuid4().hex, "log_level": 0}
    with closing(Consumer({**options, "fetch.message.max.bytes": 8 << 20})) as consumer:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
        consumer.assign([TopicPartition(topic, 0, low)])
        found = low
        while found < high:
            for message in consumer.consume(min(1_000, high - found), 5.0):
                if message.error() is None:
                    found += 1
                    yield message
