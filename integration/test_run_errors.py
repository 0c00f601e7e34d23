"""Records without a row under every setting: set aside in the dead-letter topic, told, and nothing lost or twice."""

import json
import random
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import Message, Producer

from integration.conftest import TopicFactory
from integration.harness import Sink
from integration.letters import letters
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.kafka.dead_letters import PREFIX
from parquet_sink.model.events import RecordsSetAside
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says

JSON = "org.apache.kafka.connect.json.JsonConverter"
TRANSFORMS = "org.apache.kafka.connect.transforms"


def dead_letter_keys(dead: str, **more: str) -> dict[str, str]:
    """errors.* of a connector file: all is tolerated, and goes to a topic with one replica."""
    return {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
        **more,
    }


def new_topic() -> str:
    """A name that no topic has."""
    return f"dead-{uuid.uuid4().hex[:8]}"


def context(letter: Message) -> dict[str, str]:
    """What its headers tell, by Connect's names."""
    found = letter.headers() or []
    return {name.removeprefix(PREFIX): (value or b"").decode() for name, value in found if name.startswith(PREFIX)}


def places(found: Sequence[Message]) -> list[int]:
    """The offsets that dead letters had."""
    return [int(context(letter)["offset"]) for letter in found]


def test_a_record_may_fail_at_every_stage(sink: Sink, broker: Broker, topic: TopicFactory, producer: Producer) -> None:
    """Value, key, transformation, shape: the others are delivered, and each dead letter says where it failed."""
    name, dead = topic(), new_topic()
    good = json.dumps({"id": 1, "n": "7"}).encode()
    given: list[dict[str, Any]] = [
        {"value": b"\xff\x00", "key": b"{}"},
        {"value": good, "key": b"no JSON"},
        {"value": json.dumps({"id": 1, "n": "seven"}).encode(), "key": b'{"k": 2}'},
        {"value": json.dumps({"n": "7"}).encode(), "key": b'{"k": 3}', "headers": [("own", b"1"), ("own", None)]},
        {"value": good, "key": b'{"k": 4}'},
        {"value": good, "key": b'{"k": 5}', "timestamp": 1_600_000_000_000},
        {"value": b"[]", "key": b'{"k": 6}', "timestamp": 1_600_000_000_001},
    ]
    for one in given:
        producer.produce(name, **one)
    assert producer.flush(30) == 0
    keys = {
        "key.converter": JSON,
        "key.converter.schemas.enable": "false",
        "transforms": "number,key",
        "transforms.number.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.number.spec": "n:int32",
        "transforms.key.type": "org.apache.kafka.connect.transforms.MaskField$Key",
        "transforms.key.fields": "k",
    }
    run = sink.drain(name, {**dead_letter_keys(dead), **keys}, data_primary_key="id")
    assert run.status is Status.DONE, run.failure
    assert [row["kafkaOffset"] for row in sink.rows()] == [5], "the table has one row for each key"
    assert sink.offsets(name) == [7]
    found = letters(broker, dead)
    assert [(context(one)["offset"], context(one)["stage"]) for one in found] == [
        ("0", "VALUE_CONVERTER"),
        ("1", "KEY_CONVERTER"),
        ("2", "TRANSFORMATION"),
        ("3", "TASK_PUT"),
        ("6", "TRANSFORMATION"),
    ]
    failed = [given[0], given[1], given[2], given[3], given[6]]
    assert [(one.key(), one.value()) for one in found] == [(one["key"], one["value"]) for one in failed]
    assert (found[3].headers() or [])[:2] == [("own", b"1"), ("own", None)]
    assert found[4].timestamp()[1] == 1_600_000_000_001
    about = context(found[0])
    assert about["class.name"] == JSON
    assert [context(found[at])["class.name"] for at in (2, 4)] == [f"{TRANSFORMS}.Cast$Value"] * 2
    assert (about["topic"], about["partition"], about["connector.name"], about["task.id"]) == (
        name,
        "0",
        sink.name,
        "0",
    )
    assert about["exception.message"].startswith("the value is not JSON")
    told = [event for event in run.events if isinstance(event, RecordsSetAside)]
    assert sum(event.count for event in told) == 5


@pytest.mark.parametrize("which", ["first", "last", "all", "random"])
def test_whatever_is_bad_nothing_is_lost_or_twice(sink: Sink, broker: Broker, topic: TopicFactory, which: str) -> None:
    """First and last record of a topic-partition, all of them, thousands here and there over several batches."""
    name, dead, count = topic(2), new_topic(), 12_000 if which in ("all", "random") else 100
    bad = {
        "first": {0},
        "last": {count - 1},
        "all": set(range(count)),
        "random": {n for n in range(count) if random.random() < 0.3},
    }[which]
    for partition in range(2):
        broker.produce(name, [(b"%d" % n, b"{" if n in bad else b'{"n":%d}' % n) for n in range(count)], partition)
    run = sink.drain(name, dead_letter_keys(dead), commit_records=5_000)
    assert run.status is Status.DONE, run.failure
    wanted = [(partition, n) for partition in range(2) for n in range(count) if n not in bad]
    assert [(row["kafkaPartition"], row["kafkaOffset"]) for row in sink.rows()] == wanted
    assert sink.offsets(name, 2) == [count, count]
    found = letters(broker, dead)
    at = sorted((int(context(one)["partition"]), int(context(one)["offset"])) for one in found)
    assert at == [(partition, n) for partition in range(2) for n in sorted(bad)]
    assert {(one.key(), one.value()) for one in found} == {(b"%d" % n, b"{") for n in bad}


def test_without_tolerance_the_record_is_kept_and_the_connector_stops(
    sink: Sink, broker: Broker, topic: TopicFactory
) -> None:
    """As in Kafka Connect; everything before is delivered, and the next start meets the same record."""
    name, dead = topic(), new_topic()
    broker.produce(name, [(None, b"{" if n == 7 else b'{"n":%d}' % n) for n in range(10)])
    for life in (1, 2):
        run = sink.drain(name, dead_letter_keys(dead, **{"errors.tolerance": "none"}))
        assert (run.status, run.failure.kind) == (Status.FAILED, "InvalidRecord")
        assert [row["kafkaOffset"] for row in sink.rows()] == list(range(7))
        assert sink.offsets(name) == [7]
        assert places(letters(broker, dead)) == [7] * life


def test_a_dead_letter_topic_that_takes_nothing_stops_the_connector(
    sink: Sink, broker: Broker, topic: TopicFactory
) -> None:
    """Nothing from the record on is committed; once the topic takes it, all goes on and nothing is missing."""
    name, dead = topic(), topic(prefix="dead", config={"max.message.bytes": "1000"})
    broker.produce(name, [(None, b"{" * 5_000 if n == 7 else b'{"n":%d}' % n) for n in range(10)])
    run = sink.drain(name, dead_letter_keys(dead))
    assert (run.status, run.failure.kind) == (Status.FAILED, "KafkaRefused")
    assert_says(run.failure.message, f"Dead-letter topic {dead}", f"topic {name}", "topic-partition 0", "offset 7")
    assert "max.message.bytes" in run.failure.message
    assert sink.offsets(name) in ([None], [0], [7])
    assert letters(broker, dead) == []
    other = new_topic()
    assert sink.drain(name, dead_letter_keys(other)).status is Status.DONE
    assert [row["kafkaOffset"] for row in sink.rows()] == [n for n in range(10) if n != 7]
    assert (sink.offsets(name), places(letters(broker, other))) == ([10], [7])


def test_a_dead_letter_topic_that_cannot_be_made_is_told_at_the_start(
    sink: Sink, broker: Broker, topic: TopicFactory
) -> None:
    """Before any record: three replicas, and one broker."""
    name = topic()
    broker.produce(name, [(None, b'{"n":1}')])
    keys = dead_letter_keys(new_topic(), **{"errors.deadletterqueue.topic.replication.factor": "3"})
    run = sink.drain(name, keys)
    assert (run.status, run.failure.kind) == (Status.FAILED, "KafkaRefused")
    assert "[errors.deadletterqueue.topic.replication.factor]" in run.failure.message
    assert sink.rows() == []
