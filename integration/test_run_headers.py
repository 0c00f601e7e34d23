"""Keys and headers as columns, through the running sink from Kafka to the target."""

import json
from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka import Producer

from integration.conftest import TopicFactory
from integration.harness import Sink
from parquet_sink.devkit.broker import Broker
from parquet_sink.runtime.status import Status

Headers = list[tuple[str, bytes | None]]
STEPS: Final = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "transforms": "only,key,headers",
    "transforms.only.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.only.predicate": "traced",
    "transforms.only.negate": "true",
    "predicates": "traced",
    "predicates.traced.type": "org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
    "predicates.traced.name": "trace",
    "transforms.key.type": "parquet_sink.KeyToValue",
    "transforms.key.fields": "id,region:area",
    "transforms.headers.type": "HeaderToValue",
    "transforms.headers.headers": "trace,attempt:tries",
}


def produce(broker: Broker, topic: str, records: Sequence[tuple[Any, Any, Headers]]) -> None:
    """Records of key, value and headers, to topic-partition 0."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for key, value, headers in records:
        producer.produce(topic, json.dumps(value), json.dumps(key), 0, headers=headers)
    assert producer.flush(30) == 0


def test_keys_and_headers_become_columns(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """A predicate looks at names of headers, key and headers become columns of their own types, the rest is dropped."""
    name = topic()
    records = [
        (
            {"id": number, "region": "north" if number % 2 else None},
            {"qty": number},
            [("attempt", b"0"), ("attempt", b"%d" % number), *([("trace", b"t-%d" % number)] if number % 3 else [])],
        )
        for number in range(30)
    ]
    produce(broker, name, records)
    run = sink.drain(name, STEPS)
    assert (run.status, sink.offsets(name)) == (Status.DONE, [30])
    rows = [{key: value for key, value in row.items() if not key.startswith("kafka")} for row in sink.rows()]
    assert rows == [
        {"qty": n, "id": n, "area": "north" if n % 2 else None, "trace": f"t-{n}", "tries": n}
        for n in range(30)
        if n % 3
    ]


def test_a_header_that_cannot_be_decoded_makes_its_record_invalid(
    sink: Sink, broker: Broker, topic: TopicFactory
) -> None:
    """The connector stops at it and names the header; rows before it are there; headers nobody asks for are free."""
    name = topic()
    good: Headers = [("trace", b'"t"'), ("attempt", b"1"), ("other", b"{")]
    bad: Headers = [("trace", b"{"), ("attempt", b"1")]
    produce(broker, name, [({"id": 1}, {"qty": 1}, good), ({"id": 2}, {"qty": 2}, bad)])
    json_headers = {
        "header.converter": "org.apache.kafka.connect.json.JsonConverter",
        "header.converter.schemas.enable": "false",
    }
    run = sink.drain(name, {**STEPS, **json_headers})
    assert (run.status, run.failure.kind, sink.offsets(name)) == (Status.FAILED, "InvalidRecord", [1])
    assert 'header "trace" cannot be decoded: the value is not JSON' in run.failure.message
    assert [(row["qty"], row["trace"], row["tries"]) for row in sink.rows()] == [(1, "t", 1)]
