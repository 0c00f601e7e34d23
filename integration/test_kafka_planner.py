"""What the planner asks of a real broker: commits of many offsets, topic-partitions that are away."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from integration.harness import Sink
from parquet_sink.config.settings import KafkaSettings
from parquet_sink.handoff import Instance
from parquet_sink.kafka.broker import Broker, free_port
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


def beside(first: Broker, folder: Path) -> Broker:
    """A second broker of the cluster that the first one leads, not started yet."""
    (folder / "data").mkdir(parents=True)
    known = (first.data_dir / "data" / "meta.properties").read_text()
    (folder / "data" / "meta.properties").write_text(
        re.sub(r"(node\.id=|directory\.id=).*\n", "", known) + "node.id=2\n"
    )
    voters = re.search(r"controller\.quorum\.voters=(.*)", (first.data_dir / "server.properties").read_text())
    assert voters is not None
    port = free_port()
    own = {
        "process.roles": "broker",
        "node.id": "2",
        "controller.quorum.voters": voters[1],
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
    }
    return Broker(port=port, data_dir=folder, properties=own)


def test_a_topic_partition_without_a_leader_holds_up_no_other(
    strict: Broker, sink: Sink, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """While the broker that leads one is gone, the other is delivered, also by a new start; then so is this one."""
    second = beside(strict, tmp_path / "second")
    second.start()
    try:
        admin = AdminClient({"bootstrap.servers": strict.bootstrap_servers})
        admin.create_topics([NewTopic("halves", 2, replica_assignment=[[1], [2]])])["halves"].result(30)
        for partition in (0, 1):
            strict.produce("halves", [(None, b'{"id": 1}')] * 5, partition)
        run = sink.make(sink.properties("halves"), broker=strict).start().until_records(10)
        strict.produce("halves", [(None, b'{"id": 2}')] * 5, 1)
        run.until_records(15)
        second.kill()
        strict.produce("halves", [(None, b'{"id": 3}')] * 5, 0)
        run.until_records(20)
        run.until(lambda: any(watch.away for watch in run.watches()))
        run.stop()
        again = sink.make(sink.properties("halves"), broker=strict).start()
        strict.produce("halves", [(None, b'{"id": 4}')] * 5, 0)
        again.until_records(5)
        assert [(watch.partition, watch.away) for watch in again.watches()] == [(0, False), (1, True)]
        second.start()
        strict.produce("halves", [(None, b'{"id": 5}')] * 5, 1)
        again.until_records(10)
        again.until(lambda: not any(watch.away for watch in again.watches()))
        again.stop()
        assert [(row["kafkaPartition"], row["kafkaOffset"]) for row in sink.rows()] == [
            (partition, offset) for partition in (0, 1) for offset in range(15)
        ]
    finally:
        second.close()
