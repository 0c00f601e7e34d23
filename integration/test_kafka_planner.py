"""What the planner asks of a real broker: commits of many offsets, topic-partitions that are unavailable."""

import random
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from integration.brokerless import Brokerless
from integration.conftest import TopicFactory
from integration.harness import Sink, until_ends
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.errors import BrokerAway
from parquet_sink.kafka.client import renewal
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.cluster import cluster
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.group.client import GroupClient
from parquet_sink.kafka.group.offsets import GroupOffsets
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.planner.first_timestamps import FirstTimestamps
from parquet_sink.planner.idle_turns import IDLE_AFTER


@pytest.fixture(scope="module")
def door() -> Iterator[Brokerless]:
    """A door to the strict broker."""
    with Brokerless() as opened:
        yield opened


@pytest.fixture(scope="module")
def strict(door: Brokerless) -> Iterator[Broker]:
    """A broker that takes messages of 100 kB at most."""
    with door.broker({"message.max.bytes": "100000", "log.index.size.max.bytes": "4096"}) as started:
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
        group.claim(wanted)
        assert {key: found.offset for key, found in group.read(list(wanted)).items()} == wanted
    finally:
        group.close()


@pytest.mark.in_turn
def test_clients_that_forgot_all_brokers_are_replaced(
    strict: Broker, door: Brokerless, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that names none for a second, as after a pause, is asked again; some clients would never do so."""
    monkeypatch.setattr(renewal, "RENEW_S", 2.0)
    strict.create_topic("hidden", 200)
    through = KafkaSettings(("hidden",), None, "hidden", {"bootstrap.servers": door.address})
    keys = [("hidden", partition) for partition in range(200)]
    pairs = [(KafkaCluster(through), GroupClient(through)) for _ in range(24)]

    def ask(pair: tuple[KafkaCluster, GroupClient]) -> bool:
        with suppress(BrokerAway):
            cluster, group = pair
            group.committed(keys)
            return len(cluster.topic_ids(["hidden"])) == 1 and len(cluster.end_offsets(keys)) == 200
        return False

    def until_all(pool: ThreadPoolExecutor, answer: bool) -> None:
        deadline = time.monotonic() + 60
        while set(pool.map(ask, pairs)) != {answer}:
            assert time.monotonic() < deadline

    with ThreadPoolExecutor(len(pairs)) as pool:
        until_all(pool, answer=True)
        door.hidden.set()
        until_all(pool, answer=False)
        door.hidden.clear()
        until_all(pool, answer=True)
    assert door.hid >= len(pairs)
    for _, group in pairs:
        group.close()


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_the_quick_ends_are_the_high_watermarks(
    broker: Broker, topic: TopicFactory, monkeypatch: pytest.MonkeyPatch, isolation: Literal["read_committed"]
) -> None:
    """As the careful request tells them, whatever may be read beside an open transaction; without those not there."""
    monkeypatch.setattr(cluster, "ASKED", 3)
    monkeypatch.setattr(cluster, "ASKED_QUICKLY", 3)
    name = topic(8)
    keys = [(name, partition) for partition in range(8)]
    broker.produce(name, [(None, b"x")] * 5, 1)
    broker.produce(name, [(None, b"x")] * 7, 7)
    asked = KafkaCluster(replace(kafka(broker, name), isolation_level=isolation))
    open_now = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name, "log_level": 0})
    open_now.init_transactions(30)
    open_now.begin_transaction()
    open_now.produce(name, b"open", partition=7)
    assert open_now.flush(30) == 0
    assert asked.quick_ends(keys) == asked.high_watermarks(keys)
    assert asked.quick_ends(keys) == dict.fromkeys(keys, 0) | {(name, 1): 5, (name, 7): 8}
    open_now.commit_transaction(30)
    until_ends(broker, name, [0, 5, 0, 0, 0, 0, 0, 9])
    assert asked.quick_ends(keys)[name, 7] == 9
    assert set(asked.quick_ends([*keys, ("absent", 0)])) <= set(keys)
    assert asked.quick_ends(keys)[name, 7] == 9


@pytest.mark.in_turn(seconds=55)
def test_what_is_idle_among_very_many_is_delivered(sink: Sink, topic: TopicFactory) -> None:
    """A record that comes to one of 1,200 idle topic-partitions, and one in a topic-partition that is made then."""
    name = topic(1_200)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:  # a busy broker makes so many in a minute
        with suppress(KafkaException):
            until_ends(sink.broker, name, [0] * 1_200)
            break
    sink.broker.produce(name, [(None, b'{"id": 1}')], 0)
    run = sink.start(name, commit_interval_ms=2_000).until_records(1)
    idle = time.monotonic() + 2 * IDLE_AFTER * 0.5
    run.until(lambda: time.monotonic() > idle)
    sink.broker.produce(name, [(None, b'{"id": 2}')], 1_100)
    run.until_records(2)
    admin = AdminClient({"bootstrap.servers": sink.broker.bootstrap_servers})
    admin.create_partitions([NewPartitions(name, 1_201)])[name].result(30)
    sink.broker.produce(name, [(None, b'{"id": 3}')], 1_200)
    run.until_records(3)
    assert [receipt.partition for receipt in run.accepted] == [0, 1_100, 1_200]


def test_what_waits_is_as_old_as_its_first_record(broker: Broker, topic: TopicFactory, producer: Producer) -> None:
    """Behind transactions and gaps, in many topic-partitions at once; the future is now, and what is gone is absent."""
    name, deleted = topic(200, prefix="times"), topic(prefix="deleted", config={"cleanup.policy": "delete"})
    for partition in range(200):
        producer.produce(name, b"x" * 5_000, partition=partition, timestamp=1_000_000 + partition)
        producer.produce(name, b"later", partition=partition, timestamp=2_000_000)
    producer.produce(deleted, b"gone")
    producer.produce(deleted, b"there")
    assert producer.flush(30) == 0
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for done in admin.delete_records([TopicPartition(deleted, 0, 1)]).values():
        done.result(30)
    transactional = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name, "log_level": 0})
    transactional.init_transactions(30)
    transactional.begin_transaction()
    transactional.produce(name, b"aborted", partition=0, timestamp=1)
    assert transactional.flush(30) == 0
    transactional.abort_transaction(30)
    transactional.begin_transaction()
    transactional.produce(name, b"committed", partition=0, timestamp=3_000_000)
    transactional.produce(name, b"future", partition=1, timestamp=9_000_000)
    transactional.commit_transaction(30)
    until_ends(broker, name, [6, 4])
    times = FirstTimestamps(kafka(broker, name), ClientLog())
    starts = {(name, partition): 0 for partition in range(200)}
    first = times.read(starts, 5_000_000, 30.0)
    assert first == {(name, partition): 1_000_000 + partition for partition in range(200)}
    rest = times.read({(name, 0): 2, (name, 1): 2, (name, 2): 1, (name, 3): 2, (deleted, 0): 0}, 5_000_000)
    assert rest == {(name, 0): 3_000_000, (name, 1): 5_000_000, (name, 2): 2_000_000, (name, 3): 5_000_000}


def test_a_broker_that_is_away_tells_no_ages() -> None:
    """The read ends in time, and nothing counts as young."""
    times = FirstTimestamps(
        KafkaSettings(("t",), None, "g", {"bootstrap.servers": f"127.0.0.1:{free_port()}"}), ClientLog()
    )
    assert times.read({("t", 0): 0}, 1, 1.0) == {}


def test_sizes_of_values_are_read(broker: Broker, topic: TopicFactory) -> None:
    """The mean of the first that come from an offset on; None where a marker is all that came."""
    name = topic(3)
    broker.produce(name, [(b"key", b"x" * 500), (None, None)] * 3, 0)
    broker.produce(name, [(None, b"x" * 900_000)], 1)
    transactional = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name, "log_level": 0})
    transactional.init_transactions(30)
    transactional.begin_transaction()
    transactional.produce(name, b"1234567", partition=2)
    transactional.commit_transaction(30)
    until_ends(broker, name, [6, 1, 2])
    reads = FirstTimestamps(kafka(broker, name), ClientLog())
    starts = {(name, 0): 0, (name, 1): 0, (name, 2): 0}
    assert reads.value_bytes(starts) == {(name, 0): 250.0, (name, 1): 900_000.0, (name, 2): 7.0}
    assert reads.value_bytes({(name, 2): 1}) == {(name, 2): None}


def test_a_new_connector_flushes_by_size(sink: Sink, topic: TopicFactory) -> None:
    """Before any file taught what records become, and again when they have grown; not after an interval.

    What is less than a file waits, which is the end of what came while earlier records were looked at.
    """
    name = topic()
    hourly = {"commit_interval_ms": 3_600_000, "commit_size_bytes": 1_000_000}
    run = sink.start(name, **hourly).until(lambda: True)
    run.until(lambda: run.looked)
    noise = random.Random(name)
    sink.broker.produce(name, [(None, b'{"t": "%s"}' % noise.randbytes(260).hex().encode()) for _ in range(8_000)])
    run.until_records(8_000 - 2_000)
    assert {receipt.reason for receipt in run.accepted} == {"size"}
    sink.broker.produce(name, [(None, b'{"t": "%s"}' % noise.randbytes(26_000).hex().encode()) for _ in range(60)])
    run.until_records(8_060 - 20)
    assert {receipt.reason for receipt in run.accepted} == {"size"}


def test_a_restart_makes_no_small_files(sink: Sink, topic: TopicFactory, producer: Producer) -> None:
    """What a first run left waits out its interval; a record that is old already is delivered at once."""
    name = topic(3)
    ten_minutes = {"commit_interval_ms": 600_000}
    first = sink.start(name, **ten_minutes).until(lambda: True)
    first.until(lambda: first.looked)
    for partition in (0, 1):
        sink.broker.produce(name, [(None, b'{"id": 1}')] * 5, partition)
    first.until(lambda: sum(one.lag for one in first.progress()) == 10)
    first.stop()
    hour_ago = int(time.time() * 1000) - 3_600_000
    producer.produce(name, b'{"id": 2}', partition=2, timestamp=hour_ago)
    assert producer.flush(30) == 0
    again = sink.start(name, **ten_minutes).until_records(1)
    ticks = time.monotonic() + 5
    again.until(lambda: time.monotonic() > ticks)
    assert [(receipt.partition, receipt.records) for receipt in [*first.accepted, *again.accepted]] == [(2, 1)]
    assert sum(one.lag for one in again.progress()) == 10


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


@pytest.mark.in_turn
def test_the_quick_ends_follow_the_leaders(strict: Broker, tmp_path: Path) -> None:
    """Of a broker that ends they are not known; those that it led are known again once they have another leader."""
    second = beside(strict, tmp_path / "second-of-quick")
    second.start()
    try:
        strict.create_topic("both", replicas=[[1, 2], [2, 1]])
        strict.create_topic("alone", replicas=[[2]])
        asked, keys = KafkaCluster(kafka(strict, "both")), [("both", 0), ("both", 1), ("alone", 0)]

        def until(keys: list[PartitionKey]) -> None:
            deadline = time.monotonic() + 60
            while asked.quick_ends(keys) != dict.fromkeys(keys, 0):
                assert time.monotonic() < deadline

        until(keys)
        second.stop()
        until(keys[:2])
        assert ("alone", 0) not in asked.quick_ends(keys)
        second.start()
        until(keys)
    finally:
        second.close()


def test_a_topic_partition_without_a_leader_holds_up_no_other(
    strict: Broker, sink: Sink, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """While the broker that leads one is gone, the other is delivered, also by a new start; then so is this one."""
    second = beside(strict, tmp_path / "second")
    second.start()
    try:
        strict.create_topic("halves", replicas=[[1], [2]])
        for partition in (0, 1):
            strict.produce("halves", [(None, b'{"id": 1}')] * 5, partition)
        run = sink.make(sink.properties("halves"), broker=strict).start().until_records(10)
        strict.produce("halves", [(None, b'{"id": 2}')] * 5, 1)
        run.until_records(15)
        second.kill()
        strict.produce("halves", [(None, b'{"id": 3}')] * 5, 0)
        run.until_records(20)
        run.until(lambda: any(one.away for one in run.progress()))
        run.stop()
        again = sink.make(sink.properties("halves"), broker=strict).start()
        strict.produce("halves", [(None, b'{"id": 4}')] * 5, 0)
        again.until_records(5)
        assert [(one.partition, one.away) for one in again.progress()] == [(0, False), (1, True)]
        second.start()
        strict.produce("halves", [(None, b'{"id": 5}')] * 5, 1)
        again.until_records(10)
        again.until(lambda: not any(one.away for one in again.progress()))
        again.stop()
        assert [(row["kafkaPartition"], row["kafkaOffset"]) for row in sink.rows()] == [
            (partition, offset) for partition in (0, 1) for offset in range(15)
        ]
    finally:
        second.close()
