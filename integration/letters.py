"""What is in a dead-letter topic."""

import uuid
from contextlib import closing

from confluent_kafka import Consumer, Message, TopicPartition

from parquet_sink.devkit.broker import Broker


def letters(broker: Broker, topic: str) -> list[Message]:
    """All that is in the one topic-partition of the topic, in the order in which it was written."""
    options = {"bootstrap.servers": broker.bootstrap_servers, "group.id": uuid.uuid4().hex, "log_level": 0}
    with closing(Consumer({**options, "fetch.message.max.bytes": 8 << 20})) as consumer:
        tp = TopicPartition(topic, 0, 0)
        _, high = consumer.get_watermark_offsets(tp, timeout=10)
        consumer.assign([tp])
        found: list[Message] = []
        while len(found) < high:
            found += [message for message in consumer.consume(1_000, 5.0) if message.error() is None]
    return found
