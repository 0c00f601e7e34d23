"""What Kafka may do to a sink: transactions, lost offsets, topics that go, brokers that go, and a second instance."""

import json
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from integration import scripted_target as script
from integration.conftest import TopicFactory
from integration.faults.front import Front
from integration.harness import Sink, committed, until_ends
from integration.numbered import forgotten, numbered, numbers, offsets
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says

PATIENCE_S = 60.0
"""How long a busy machine may take for what usually takes a moment."""


def delete_records(broker: Broker, topic: str, before: int) -> None:
    """What retention does: records of topic-partition 0 below this offset go."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(PATIENCE_S)


@pytest.fixture
def transactional(broker: Broker) -> Iterator[Producer]:
    """A producer with transactions."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": f"t-{time.time_ns()}",
            "transaction.timeout.ms": 600_000,
            "linger.ms": 0,
        }
    )
    producer.init_transactions(PATIENCE_S)
    yield producer
    producer.purge()


def transaction(producer: Producer, topic: str, count: int, *, commit: bool) -> None:
    """A transaction with so many records, which all reached the broker before it ends."""
    producer.begin_transaction()
    for _, value in numbered(count):
        producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    if commit:
        producer.commit_transaction(PATIENCE_S)
    else:
        producer.abort_transaction(PATIENCE_S)


@pytest.mark.parametrize(
    ("isolation", "expected"),
    [("read_committed", [0, 1, 2, 3, 4, 12, 13, 14]), ("read_uncommitted", [*range(5), *range(6, 11), 12, 13, 14, 16])],
)
def test_aborted_records_and_markers_are_passed(
    sink: Sink, broker: Broker, topic: TopicFactory, transactional: Producer, isolation: str, expected: list[int]
) -> None:
    """Ranges end in gaps of aborted records and markers, and at a marker, and the group reaches lag 0."""
    name = topic()
    for count, commit in ((5, True), (5, False), (3, True), (1, False)):
        transaction(transactional, name, count, commit=commit)
    until_ends(broker, name, [18])
    run = sink.drain(name, {"consumer.override.isolation.level": isolation}, commit_records=4)
    assert run.status is Status.DONE
    assert (offsets(sink), sink.offsets(name)) == (expected, [18])


def test_open_transaction_is_waited_for(
    sink: Sink, broker: Broker, topic: TopicFactory, transactional: Producer
) -> None:
    """Nothing behind the last stable offset is delivered until the transaction ends, and to lack it is a failure."""
    name = topic()
    broker.produce(name, numbered(2))
    transactional.begin_transaction()
    transactional.produce(name, b'{"n": 2}')
    assert transactional.flush(PATIENCE_S) == 0
    broker.produce(name, numbered(2, 3))
    run = sink.drain(name)
    assert (offsets(sink), sink.offsets(name)) == ([0, 1], [2])
    assert (run.status, run.failure.kind) == (Status.FAILED, "TransactionOpen")
    assert_says(run.failure.message, "Not caught up", f"topic {name}", "held back at offset 2", "(3 offsets)")
    transactional.commit_transaction(PATIENCE_S)
    until_ends(broker, name, [6])
    sink.drain(name)
    assert (offsets(sink), sink.offsets(name)) == ([0, 1, 2, 3, 4], [6])


def test_what_an_open_transaction_holds_back_is_lag(
    sink: Sink, broker: Broker, topic: TopicFactory, transactional: Producer
) -> None:
    """A running connector counts it, and goes on once the transaction ends."""
    name = topic()
    transactional.begin_transaction()
    transactional.produce(name, b'{"n": 0}')
    assert transactional.flush(PATIENCE_S) == 0
    broker.produce(name, numbered(7, 1))
    run = sink.start(name)
    run.until(lambda: [(one.lag, one.held_at) for one in run.progress()] == [(8, 0)])
    transactional.commit_transaction(PATIENCE_S)
    run.until(lambda: [(one.lag, one.held_at) for one in run.progress()] == [(0, None)])
    assert (offsets(sink), sink.offsets(name)) == ([*range(8)], [9])


LATEST = {"consumer.override.auto.offset.reset": "latest"}


def test_with_latest_what_comes_while_stopped_is_delivered(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """A new topic-partition, a new topic of the pattern, and one that was made anew are read as a whole."""
    name = topic()
    other, late, pattern = f"{name}-b", f"{name}-c", {**LATEST, "topics.regex": f"{name}.*"}
    broker.create_topic(other)
    broker.produce(name, numbered(3))

    def drain() -> None:
        properties = {**sink.properties(""), **pattern}
        del properties["topics"]
        assert sink.make(properties, until_caught_up=True).start().until_ended().status is Status.DONE

    drain()
    assert offsets(sink) == []
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for future in admin.create_partitions([NewPartitions(name, 2)]).values():
        future.result(PATIENCE_S)
    for future in admin.delete_topics([other]).values():
        future.result(PATIENCE_S)
    forgotten(sink, other)
    broker.create_topic(other)
    broker.create_topic(late)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number, (where, partition) in enumerate([(name, 1), (name, 1), (other, 0), (late, 0), (late, 0)]):
        producer.produce(where, json.dumps({"n": number}).encode(), partition=partition)
    assert producer.flush(PATIENCE_S) == 0
    drain()
    assert sorted(numbers(sink.rows())) == [0, 1, 2, 3, 4]


def test_with_latest_the_only_topic_is_made_anew_while_stopped(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Kafka has forgotten the group altogether, and its records are delivered all the same."""
    name = topic()
    broker.produce(name, numbered(3))
    sink.drain(name, LATEST)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for future in admin.delete_topics([name]).values():
        future.result(PATIENCE_S)
    forgotten(sink, name)
    broker.create_topic(name)
    broker.produce(name, numbered(5, 3))
    assert sink.drain(name, LATEST).status is Status.DONE
    assert numbers(sink.rows()) == [3, 4, 5, 6, 7]


def test_a_group_that_brokers_forgot(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """With `latest` it stops and says where it had got, or goes on there; with `earliest` it begins anew."""
    name = topic()
    broker.produce(name, numbered(5))
    sink.drain(name)
    broker.consumer_groups("--group", sink.group, "--delete")
    broker.produce(name, numbered(2, 5))
    run = sink.drain(name, LATEST)
    assert (run.status, run.failure.kind) == (Status.FAILED, "OffsetsLost")
    assert_says(run.failure.message, f"Topic {name}", sink.group, "below offset 5", "To go on at 5", "--to-offset 5")
    assert sink.drain(name, LATEST, lost_offsets_policy="CONTINUE").status is Status.DONE
    assert (numbers(sink.rows()), sink.offsets(name)) == ([*range(7)], [7])
    broker.consumer_groups("--group", sink.group, "--delete")
    assert sink.drain(name).status is Status.DONE
    assert sorted({row["n"] for row in sink.rows()}) == [*range(7)]


def test_offsets_lost_while_stopped(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Records that retention took before they were read stop the connector by name, or are passed if that is set."""
    name = topic()
    broker.produce(name, numbered(5))
    sink.drain(name)
    broker.produce(name, numbered(10, 5))
    delete_records(broker, name, 8)
    run = sink.drain(name)
    assert (run.status, run.failure.kind, sink.offsets(name)) == (Status.FAILED, "OffsetsLost", [5])
    for part in (f"Topic {name}, topic-partition 0", "offsets 5 to 7 were deleted", "lost.offsets.policy=CONTINUE"):
        assert part in run.failure.message
    assert run.losses == []
    run = sink.drain(name, lost_offsets_policy="CONTINUE")
    assert (run.status, run.losses) == (Status.DONE, [(5, 8, "retention")])
    assert (offsets(sink), sink.offsets(name)) == ([*range(5), *range(8, 15)], [15])


@pytest.mark.parametrize("policy", ["STOP", "CONTINUE"])
def test_retention_overtakes_the_reader(sink: Sink, broker: Broker, topic: TopicFactory, policy: str) -> None:
    """The same while the connector waits for records to become due, which is when the eleventh comes."""
    name = topic()
    run = sink.start(name, commit_records=11, commit_interval_ms=600_000, lost_offsets_policy=policy)
    run.until(lambda: run.looked)
    broker.produce(name, numbered(10))
    delete_records(broker, name, 8)
    broker.produce(name, numbered(1, 10))
    if policy == "STOP":
        run.until_ended()
        assert (run.status, run.failure.kind, sink.offsets(name)) == (Status.FAILED, "OffsetsLost", [0])
        assert_says(run.failure.message, f"Topic {name}", "topic-partition 0", "offsets 0 to 7", "were deleted")
    else:
        run.until_records(3).stop()
        assert (run.status, offsets(sink), sink.offsets(name)) == (Status.DONE, [8, 9, 10], [11])
        assert run.losses == [(0, 8, "retention")]


@pytest.mark.parametrize("first", [30, 50, 70])
def test_retention_takes_the_beginning_of_a_range_that_was_delivered_in_part(
    sink: Sink, broker: Broker, topic: TopicFactory, first: int
) -> None:
    """What was delivered is in no other file; where undelivered records are gone the connector stops and names them."""
    name = topic()
    broker.produce(name, numbered(100))
    flush = {"commit_records": 50}
    port, refused = int(sink.target.url.rpartition(":")[2]), script.answer(403)
    with Front(port, [None, refused]) as front:
        sink.drain(name, endpoint=front.endpoint, **flush)
        assert sink.offsets(name) == [50]
        delete_records(broker, name, first)
        run = sink.drain(name, endpoint=front.endpoint, **flush)
    left = range(50, 100) if first <= 50 else range(0)
    assert run.status is (Status.DONE if left else Status.FAILED)
    assert sorted(offsets(sink)) == [*range(50), *left]
    assert sink.offsets(name) == [100 if left else 50]


def test_topic_made_anew_while_stopped_is_read_from_its_first_record(
    sink: Sink, broker: Broker, topic: TopicFactory
) -> None:
    """Kafka forgets a group's offsets with the topic, so nothing of the new one is passed over."""
    name = topic()
    broker.produce(name, numbered(10))
    sink.drain(name)
    broker.delete_topic(name)
    forgotten(sink, name)
    broker.create_topic(name)
    broker.produce(name, numbered(12, 100))
    assert sink.drain(name).status is Status.DONE
    assert [row["n"] for row in sink.rows() if row["n"] >= 100] == list(range(100, 112))
    assert sink.offsets(name) == [12]


@pytest.mark.parametrize("policy", ["STOP", "CONTINUE"])
@pytest.mark.parametrize("offset", [4, 10])
def test_offset_of_a_topic_made_anew_while_stopped(
    sink: Sink, broker: Broker, topic: TopicFactory, policy: str, offset: int
) -> None:
    """Where the old topic's offset is still there it is named as lost, unless an operator says that it counts."""
    name = topic()
    broker.produce(name, numbered(10))
    sink.drain(name)
    ((_, signed),) = committed(broker, sink.group, name)
    broker.delete_topic(name)
    forgotten(sink, name)
    broker.create_topic(name)
    broker.produce(name, numbered(12, 100))
    commit(broker, sink.group, TopicPartition(name, 0, offset, signed))
    run = sink.drain(name, lost_offsets_policy=policy)
    if policy == "STOP":
        assert (run.status, run.failure.kind, sink.offsets(name)) == (Status.FAILED, "OffsetsLost", [offset])
        assert_says(run.failure.message, f"at offset {offset}", "was deleted and recreated")
        broker.consumer_groups(
            "--group", sink.group, "--topic", name, "--reset-offsets", "--to-current", "--execute"
        )  # fmt: skip
        assert sink.drain(name).status is Status.DONE
        assert [row["n"] for row in sink.rows() if row["n"] >= 100] == list(range(100 + offset, 112))
    else:
        assert (run.status, sink.offsets(name)) == (Status.DONE, [12])
        assert run.losses == [(offset, offset, "recreated")]
        assert sorted(row["n"] for row in sink.rows()) == [*range(10), *range(100, 112)]


def commit(broker: Broker, group: str, offset: TopicPartition) -> None:
    """Commits an offset with its metadata, as a group's tool might."""
    client = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "log_level": 0})
    try:
        client.commit(offsets=[offset], asynchronous=False)
    finally:
        client.close()


@pytest.mark.parametrize("policy", ["STOP", "CONTINUE"])
@pytest.mark.parametrize("count", [3, 10, 20])
def test_topic_made_anew_while_running_is_not_passed_over(
    sink: Sink, broker: Broker, topic: TopicFactory, count: int, policy: str
) -> None:
    """The connector delivers every record of the new topic, or stops, says what happened, and delivers them later."""
    name = topic()
    broker.produce(name, numbered(10))
    more = {"consumer.override.metadata.max.age.ms": "500"}
    run = sink.start(name, more, commit_interval_ms=4_000, lost_offsets_policy=policy).until_records(10)
    broker.delete_topic(name)
    broker.create_topic(name)
    broker.produce(name, numbered(count, 100))
    run.until(lambda: new_rows(sink) >= count or run.status is not Status.RUNNING, 120).stop()
    if run.status is Status.FAILED:
        assert run.failure.kind in ("OffsetsLost", "KafkaFailed")
        assert name in run.failure.message
        assert sink.drain(name, lost_offsets_policy="CONTINUE").status is Status.DONE
    assert {row["n"] for row in sink.rows() if row["n"] >= 100} == set(range(100, 100 + count))
    assert sink.offsets(name) == [count]


@pytest.mark.parametrize("away_s", [0.0, 3.0])
def test_topic_of_a_pattern_that_goes_and_comes_back(
    sink: Sink, broker: Broker, topic: TopicFactory, away_s: float
) -> None:
    """Whether its absence was seen or not, the new topic is read from its first record, and the others go on."""
    name, other = topic(), topic()
    broker.produce(name, numbered(10))
    properties = {**sink.properties("", lost_offsets_policy="CONTINUE"), "topics.regex": f"{name}|{other}"}
    del properties["topics"]
    run = sink.make({**properties, "consumer.override.metadata.max.age.ms": "500"}).start().until_records(10)
    broker.delete_topic(name)
    time.sleep(away_s)
    broker.create_topic(name)
    broker.produce(name, numbered(20, 100))
    broker.produce(other, numbered(5, 50))
    run.until(lambda: new_rows(sink) >= 20 and sink.offsets(other) == [5], 120)
    run.until(lambda: sink.offsets(name) == [20]).stop()
    assert run.status is Status.DONE
    assert {row["n"] for row in sink.rows()} == {*range(10), *range(50, 55), *range(100, 120)}


def test_topics_of_a_pattern_are_deleted(
    sink: Sink, broker: Broker, topic: TopicFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """However many topics of a pattern go, the query of the others goes on, and the log names each topic once."""
    prefix = f"gone-{sink.name}"
    names = [topic(prefix=prefix) for _ in range(7)]
    for name in names:
        broker.produce(name, numbered(2))
    properties = {**sink.properties(""), "topics.regex": f"{prefix}.*", "consumer.override.metadata.max.age.ms": "500"}
    del properties["topics"]
    run = sink.make(properties).start().until_records(14)
    for deleted, name in enumerate(names[1:], 1):
        broker.delete_topic(name)
        broker.produce(names[0], numbered(1, 1 + deleted))
        run.until(lambda deleted=deleted: sink.offsets(names[0]) == [2 + deleted])  # type: ignore[misc]
    run.stop()
    assert run.status is Status.DONE
    assert "Starting again" not in caplog.text
    assert sorted(row["n"] for row in sink.rows()) == sorted([0, 1] * 7 + list(range(2, 8)))


def new_rows(sink: Sink) -> int:
    """How many records of the topic that was made anew have arrived."""
    return len({row["n"] for row in sink.rows() if row["n"] >= 100})


def test_unknown_topic_is_named(sink: Sink) -> None:
    """A topic that does not exist ends the connector with its name and the cure."""
    run = sink.start("no-such-topic").until_ended()
    assert (run.status, run.failure.kind) == (Status.FAILED, "TopicGone")
    for part in ("Topic no-such-topic does not exist", sink.broker.bootstrap_servers, "correct [topics]"):
        assert part in run.failure.message


def test_broker_that_is_not_there_at_the_start(sink: Sink) -> None:
    """After default.api.timeout.ms the connector ends and names the address and the key."""
    address = f"127.0.0.1:{free_port()}"
    properties = {
        **sink.properties("orders"),
        "consumer.override.bootstrap.servers": address,
        "consumer.override.default.api.timeout.ms": "1000",
    }
    run = sink.make(properties).start().until_ended()
    assert (run.status, run.failure.kind) == (Status.FAILED, "KafkaFailed")
    assert f"no answer from {address}" in run.failure.message
    assert "bootstrap.servers" in run.failure.message


def test_broker_gone_for_a_while(sink: Sink) -> None:
    """A broker that is killed and comes back costs time and nothing else: no failure, nothing lost or sent twice."""
    with Broker() as own:
        own.create_topic("orders")
        own.produce("orders", numbered(5))
        run = sink.make(sink.properties("orders"), broker=own).start().until_records(5)
        own.kill()
        gone = time.monotonic()
        run.until(lambda: time.monotonic() - gone > 3)
        own.start()
        own.produce("orders", numbered(5, 5))
        run.until_records(10).stop()
        assert (run.status, offsets(sink)) == (Status.DONE, list(range(10)))
        assert committed(own, sink.group, "orders")[0][0] == 10


def test_second_instance_on_this_machine_is_refused(sink: Sink, topic: TopicFactory) -> None:
    """The same connector with the same tmp.dir cannot start twice; the first one goes on."""
    name = topic()
    first = sink.start(name).until(lambda: sink.offsets(name) == [0])
    second = sink.start(name)
    assert (second.status, second.failure.kind) == (Status.FAILED, "AnotherInstance")
    assert_says(second.failure.message, f"Connector {sink.name}", "already running", "(process ")
    assert first.stop().status is Status.DONE


def test_second_instance_elsewhere_takes_over(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Of two instances of a group that share no folder the older stops and names the newer one; all rows arrive."""
    name = topic()
    broker.produce(name, numbered(5))
    older = sink.start(name).until_records(5)
    properties = {**sink.properties(name), "name": f"{sink.name}-elsewhere"}
    newer = sink.make({**properties, "consumer.override.group.id": sink.group}).start()
    older.until_ended()
    newer.look()
    assert (older.status, older.failure.kind) == (Status.FAILED, "AnotherInstance")
    for part in (f"Group {sink.group}", f"topic {name}, topic-partition 0", "committed by instance "):
        assert part in older.failure.message
    broker.produce(name, numbered(5, 5))
    newer.until(lambda: sink.offsets(name) == [10]).stop()
    assert newer.status is Status.DONE
    assert sorted(set(offsets(sink))) == list(range(10))


def test_offsets_moved_while_running_stop_the_connector(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """An operator's reset under a running connector is not overwritten: it stops and says so."""
    name = topic()
    broker.produce(name, numbered(5))
    run = sink.start(name).until_records(5).until(lambda: sink.offsets(name) == [5])
    broker.consumer_groups("--reset-offsets", "--group", sink.group, "--topic", name, "--to-offset", "2", "--execute")
    run.until_ended()
    assert (run.status, run.failure.kind, sink.offsets(name)) == (Status.FAILED, "AnotherInstance", [2])
    assert_says(run.failure.message, sink.group, "committed by", "an operator")
