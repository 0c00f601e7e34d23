"""What a real broker does to a reader that it does not tell: topics that are deleted, logs that are cut back."""

import time

import pytest

from integration.conftest import TopicFactory
from parquet_sink.config.settings import KafkaSettings
from parquet_sink.errors import TopicGone
from parquet_sink.kafka.broker import Broker
from parquet_sink.kafka.reader import RangeReader


def test_a_topic_that_is_deleted_while_it_is_read(broker: Broker, topic: TopicFactory) -> None:
    """The client says nothing of it; the reader finds out within seconds."""
    name = topic()
    count = 20_000
    broker.produce(name, [(None, b"x" * 1_000)] * count)
    client = {"bootstrap.servers": broker.bootstrap_servers, "queued.max.messages.kbytes": "1024"}
    blocks = RangeReader(KafkaSettings((name,), None, "connect-deleted", client), name, 0, 0, count).blocks()
    next(blocks)
    broker.delete_topic(name)
    begun = time.monotonic()
    with pytest.raises(TopicGone, match=f"Topic {name}, topic-partition 0 was deleted while it was read"):
        list(blocks)
    assert time.monotonic() - begun < 60
