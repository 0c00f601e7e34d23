"""What the planner asks of a real broker: commits of many offsets, topic-partitions that are away."""

from collections.abc import Iterator

import pytest

from parquet_sink.config.settings import KafkaSettings
from parquet_sink.handoff import Instance
from parquet_sink.kafka.broker import Broker
from parquet_sink.kafka.offsets import GroupOffsets


@pytest.fixture(scope="module")
def strict() -> Iterator[Broker]:
    """A broker that takes messages of 100 kB at most."""
    with Broker(properties={"message.max.bytes": "100000", "log.index.size.max.bytes": "4096"}) as started:
        yield started


def kafka(broker: Broker, *topics: str) -> KafkaSettings:
    """Settings of a connector with these topics."""
    return KafkaSettings(topics, None, "connect-planner", {"bootstrap.servers": broker.bootstrap_servers})


def test_a_thousand_offsets_are_committed_whatever_the_brokers_limit(strict: Broker) -> None:
    """A commit of all offsets, with what stands beside them, is larger than a message may be; it arrives."""
    strict.create_topic("many", 1_000)
    wanted = {("many", partition): 0 for partition in range(1_000)}
    group = GroupOffsets(kafka(strict, "many"), Instance.new())
    try:
        group.take_over(wanted)
        assert {key: found.offset for key, found in group.read(list(wanted)).items()} == wanted
    finally:
        group.close()
