"""Keys and headers as columns, through the running sink from Kafka to the target."""

import json
import uuid
from collections.abc import Sequence
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from integration.conftest import TopicFactory
from integration.formats.files import uploaded
from integration.formats.records import record
from integration.harness import Sink
from integration.letters import letters
from integration.registry import RegistryServer
from integration.wire import encode_avro
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.kafka.dead_letters import PREFIX
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says

Headers = list[tuple[str, bytes | None]]
CONNECT: Final = "org.apache.kafka.connect."
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


@pytest.mark.parametrize(
    ("converter", "good", "bad", "why", "shown"),
    [
        (f"{CONNECT}json.JsonConverter", b'"t"', b"{", "the value is not JSON", "t"),
        ("integration.own_transforms.Pairs", b"a=1", b"x", "the value has no =", {"a": "1"}),
    ],
)
def test_records_with_a_header_that_cannot_be_decoded_are_dead_letters(
    sink: Sink, broker: Broker, topic: TopicFactory, converter: str, good: bytes, bad: bytes, why: str, shown: object
) -> None:
    """Under any converter: all they had is kept, the stage is named, the others are rows, all are committed."""
    name, dead = topic(), f"dead-{uuid.uuid4().hex[:8]}"
    given: list[Headers] = [[("h", bad if number % 3 == 1 else good), ("other", b"\xff")] for number in range(9)]
    given[4] = [("h", bad), ("h", good)]  # the last one of a name counts, and each of them is decoded
    given[6] = [("h", None)]
    produce(broker, name, [({"id": n}, {"qty": n}, headers) for n, headers in enumerate(given)])
    keys = {
        "header.converter": converter,
        **({"header.converter.schemas.enable": "false"} if "Json" in converter else {}),
        "transforms": "h",
        "transforms.h.type": "HeaderToValue",
        "transforms.h.headers": "h",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    run = sink.drain(name, keys, flattener_enable=False)
    assert (run.status, sink.offsets(name)) == (Status.DONE, [9])
    found = letters(broker, dead)
    headers = [dict(one.headers() or []) for one in found]
    assert [one[f"{PREFIX}offset"] for one in headers] == [b"1", b"4", b"7"]
    assert {(one[f"{PREFIX}stage"], one[f"{PREFIX}class.name"]) for one in headers} == {
        (b"HEADER_CONVERTER", converter.encode())
    }
    for one in headers:
        assert_says(one[f"{PREFIX}exception.message"].decode(), 'header "h"', "cannot be decoded", why)
    assert [(one.key(), one.value()) for one in found] == [(b'{"id": %d}' % n, b'{"qty": %d}' % n) for n in (1, 4, 7)]
    assert [(one.headers() or [])[: len(given[n])] for one, n in zip(found, (1, 4, 7), strict=True)] == [
        given[n] for n in (1, 4, 7)
    ]
    wanted = [(n, None if n == 6 else shown) for n in range(9) if n not in (1, 4, 7)]
    assert [(row["qty"], row["h"]) for row in sink.rows()] == wanted


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
    assert_says(run.failure.message, 'header "trace"', "cannot be decoded", "not JSON")
    assert [(row["qty"], row["trace"], row["tries"]) for row in sink.rows()] == [(1, "t", 1)]


KEY: Final = record("Key", id="int", region=["null", "string"])
NEWER_KEY: Final = record("Key", id="long", region=["null", "string"], shop="string")
VALUE: Final = record("Value", qty="int", name=["null", "string"])


def test_avro_keys_are_cast_changed_and_become_columns(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer
) -> None:
    """Of two versions of their schema in one batch; a null key passes, one of an unknown schema is a dead letter."""
    name, dead = topic(), f"dead-{uuid.uuid4().hex[:8]}"
    older = encode_avro(registry, f"{name}-keys", json.dumps(KEY), [{"id": n, "region": None} for n in (0, 1)])
    newer = encode_avro(
        registry, f"{name}-keys", json.dumps(NEWER_KEY), [{"id": n, "region": "r", "shop": "s"} for n in (2, 3)]
    )
    values = encode_avro(registry, name, json.dumps(VALUE), [{"qty": n, "name": f"n{n}"} for n in range(6)])
    keys = [older[0], newer[0], older[1], newer[1], None, b"\0\0\0\xff\xff\x02\0"]
    broker.produce(name, list(zip(keys, values, strict=True)))
    avro = {"": "io.confluent.connect.avro.AvroConverter", ".schema.registry.url": registry.url}
    steps = {
        "transforms": "text,add,take,one,number,last",
        "transforms.text.type": "Cast$Key",
        "transforms.text.spec": "id:string",
        "transforms.add.type": "KeyToValue",
        "transforms.add.fields": "id,region:area",
        "transforms.take.type": "ValueToKey",
        "transforms.take.fields": "name,qty",
        "transforms.one.type": "ExtractField$Key",
        "transforms.one.field": "qty",
        "transforms.number.type": "Cast$Key",
        "transforms.number.spec": "float64",
        "transforms.last.type": "KeyToValue",
        "transforms.last.key.field": "half",
        **{f"{side}.converter{setting}": text for side in ("key", "value") for setting, text in avro.items()},
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    run = sink.drain(name, steps, embed_kafka_metadata=False)
    assert (run.status, sink.offsets(name)) == (Status.DONE, [6]), run.failure
    (letter,) = letters(broker, dead)
    told = dict(letter.headers() or [])
    assert (letter.key(), told[f"{PREFIX}stage"]) == (keys[5], b"KEY_CONVERTER")
    files = uploaded(sink)
    assert [row for file in files for row in file.rows] == [
        {"qty": 0, "name": "n0", "id": "0", "area": None, "half": 0.0},
        {"qty": 1, "name": "n1", "id": "2", "area": "r", "half": 1.0},
        {"qty": 2, "name": "n2", "id": "1", "area": None, "half": 2.0},
        {"qty": 3, "name": "n3", "id": "3", "area": "r", "half": 3.0},
        {"qty": 4, "name": "n4", "id": None, "area": None, "half": 4.0},
    ]
    types = {"qty": "int32", "name": "string", "id": "string", "area": "string", "half": "double"}
    assert [{name: one.partition(" ")[0] for name, one in file.columns.items()} for file in files] == [types]
