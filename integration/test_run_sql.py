"""Queries over records, through the running sink from Kafka to the target."""

import json
from itertools import pairwise
from typing import Final

from integration.conftest import TopicFactory
from integration.harness import Run, Sink
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says

EXAMPLE: Final = "SELECT order_id, amount * 1.19 AS gross FROM records WHERE status <> 'test'"
DLQ: Final = "errors.deadletterqueue.topic.name"


def asked(sink: Sink, name: str, query: str, **more: str) -> Run:
    """A connector with one query, run until all is delivered."""
    return sink.drain(name, {"transforms": "q", "transforms.q.type": "sql", "transforms.q.query": query, **more})


def orders(count: int) -> list[tuple[None, bytes]]:
    """Plain JSON; each tenth is a test."""
    made = [{"order_id": n, "amount": n / 4, "status": "paid" if n % 10 else "test"} for n in range(count)]
    return [(None, json.dumps(one).encode()) for one in made]


def test_the_example(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Each record that the query leaves is there once, as the query has it, with its own offset; all is committed."""
    name = topic(2)
    for partition in range(2):
        broker.produce(name, orders(3_000), partition)
    run = asked(sink, name, EXAMPLE)
    assert (run.status, sink.offsets(name, 2)) == (Status.DONE, [3_000, 3_000])
    found = [(row["kafkaPartition"], row["kafkaOffset"], row["order_id"], row["gross"]) for row in sink.rows()]
    assert found == [(partition, n, n, n / 4 * 1.19) for partition in range(2) for n in range(3_000) if n % 10]


def test_several_rows_of_a_record(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Rows of one record stand together, in order, in one file; a record without a list has none and is passed."""
    name = topic()
    made = [{"id": n, "items": [{"sku": f"s{n}-{at}"} for at in range(n % 4)]} for n in range(200)]
    broker.produce(name, [(None, json.dumps(one).encode()) for one in made])
    run = asked(
        sink,
        name,
        "SELECT id, unnest(items).sku AS sku, _offset AS place FROM records",
        **{"connect.ems.commit.records": "30"},
    )
    assert (run.status, sink.offsets(name)) == (Status.DONE, [200])
    wanted = [(n, f"s{n}-{at}", n) for n in range(200) for at in range(n % 4)]
    assert [(row["kafkaOffset"], row["sku"], row["place"]) for row in sink.rows()] == wanted
    assert len(run.accepted) > 3
    spans = [(one.first_offset, one.last_offset) for one in run.accepted]
    assert all(one[1] < other[0] for one, other in pairwise(spans))


def test_nothing_is_left(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """A filter that drops everything makes no file, and the offsets advance."""
    name = topic()
    broker.produce(name, orders(500))
    run = asked(sink, name, "SELECT * FROM records WHERE amount < 0")
    assert (run.status, run.accepted, sink.rows(), sink.offsets(name)) == (Status.DONE, [], [], [500])


def test_a_cast_that_fails(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """It stops the connector at that record; where invalid records are set aside it alone is, and its neighbours go."""
    name, letters = topic(), f"letters-{sink.name}"
    values = [{"id": n, "amount": "none" if n == 57 else str(n)} for n in range(100)]
    broker.produce(name, [(None, json.dumps(one).encode()) for one in values])
    query = "SELECT id, amount::INTEGER AS amount FROM records"
    run = asked(sink, name, query)
    assert (run.status, run.failure.kind) == (Status.FAILED, "InvalidRecord")
    assert_says(run.failure.message, f"topic {name}, topic-partition 0, offset 57: ", "column amount")
    assert_says(run.failure.message, "cannot be computed", "CAST(amount AS INTEGER)")
    assert sink.offsets(name) == [57]
    replicas = {"errors.deadletterqueue.topic.replication.factor": "1"}
    run = asked(sink, name, query, **{"errors.tolerance": "all", DLQ: letters, **replicas})
    assert (run.status, sink.offsets(name)) == (Status.DONE, [100])
    assert [row["amount"] for row in sink.rows()] == [n for n in range(100) if n != 57]
