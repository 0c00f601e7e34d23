"""Records and registries that are not as they should be: nothing lost, nothing committed past, and a clear error.

Each case is told twice: its message by the decoder and shaper that a worker uses, and its effect by one connector for
each format, which meets all cases at once, each in a topic-partition of its own.
"""

import json
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from integration.conftest import TopicFactory
from integration.formats.bad import BAD, CANARY, good, met
from integration.formats.files import only, uploaded
from integration.formats.records import FORMATS, record
from integration.harness import Run, Sink, settings_of
from integration.registry import RegistryServer, Trouble
from integration.wire import encode_avro
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says

CHUNKED: Final = ("string", "long")
CHUNKS: Final = {"flattener_jsonblob_chunks": 3, "data_fallback_varchar_length": 5}
QUICK: Final = {"value.converter.max.retries": "0"}
IMPATIENT: Final = {"connect.ems.restart.max": "0"}
"""A connector whose query is not started again."""
EAGER: Final = {"connect.ems.restart.interval.ms": "100"}


def keys_of(kind: str, registry: RegistryServer) -> dict[str, str]:
    """What a connector file says to read this kind."""
    return FORMATS["envelope" if kind == "json_envelope" else kind].properties(registry)


def shape_of(kind: str) -> dict[str, Any]:
    """Values without fields need chunks."""
    return CHUNKS if kind in CHUNKED else {}


@pytest.mark.parametrize("kind", BAD)
def test_invalid_records_are_named_by_place_and_reason(
    sink: Sink, producer: Producer, topic: TopicFactory, registry: RegistryServer, kind: str
) -> None:
    """Each stops its topic-partition at its offset, nothing of it is shown, and no other topic-partition is held up."""
    cases = BAD[kind]
    name = topic(len(cases) + 1)
    first, second, third = good(kind, registry, name, 3)
    bad = [case.value(registry, third) for case in cases.values()]
    properties = {**sink.properties(name, **shape_of(kind)), **keys_of(kind, registry), "tasks.max": "2"}
    settings = settings_of(properties, sink.broker.bootstrap_servers)
    reasons = []
    for case, value in zip(cases, bad, strict=True):
        count, error = met(settings, [first, second, value, third])
        assert (case, count, error.offset) == (case, 2, 2)
        assert_says(error.reason, *cases[case].reason)
        assert CANARY not in str(error), case
        assert len(str(error)) < 1_000, case
        reasons.append(error.reason)
    for partition, values in enumerate([*((first, second, value, third) for value in bad), (first,) * 4]):
        for value in values:
            producer.produce(name, value, partition=partition)
    assert producer.flush(20) == 0
    run = sink.make(properties, until_caught_up=True).start().until_ended()
    assert (run.status, run.failure.kind) == (Status.FAILED, "InvalidRecord")
    told = [f"topic {name}, topic-partition {at}, offset 2: {reason}. " for at, reason in enumerate(reasons)]
    assert any(run.failure.message.startswith(one) for one in told)
    assert CANARY not in run.failure.message
    assert sink.offsets(name, len(cases) + 1) == [*([2] * len(cases)), 4]
    places = sorted(row["kafkaPartitionOffset"] for file in uploaded(sink) for row in file.rows)
    ends = [2] * len(cases) + [4]
    assert places == sorted(f"{at}_{offset}" for at, end in enumerate(ends) for offset in range(end))


def refused(run: Run) -> str:
    """The error of a connector that the registry stopped."""
    assert run.status is Status.FAILED
    assert run.failure.kind in ("RegistryFailed", "RegistryAway")
    return run.failure.message


EVENT: Final = json.dumps(record("Event", id="long"))
NEWER: Final = json.dumps(record("Event", id="long", more="string"))


def test_nobody_answers_then_somebody_does(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer
) -> None:
    """A registry that is down, then one that refuses us, stop the connector by name; nothing is sent or committed."""
    name, nowhere = topic(), f"http://127.0.0.1:{free_port()}"
    values = encode_avro(registry, name, EVENT, [{"id": n} for n in range(3)])
    broker.produce(name, [(None, value) for value in values])
    avro = {**keys_of("avro", registry), **IMPATIENT}
    said = refused(sink.drain(name, {**avro, **QUICK, "value.converter.schema.registry.url": nowhere}))
    assert_says(said, "not give schema id 1", f"{nowhere}: ", "Connection refused")
    with RegistryServer(authorization="Bearer right") as closed:
        wrong = {"value.converter.bearer.auth.token": CANARY, "value.converter.schema.registry.url": closed.url}
        run = sink.drain(name, {**avro, **wrong})
    said = refused(run)
    assert_says(said, f"{closed.url}: answered 401", "Correct basic.auth.user.info", "bearer.auth.token")
    assert CANARY not in said
    assert (run.failure.kind, run.receipts, sink.offsets(name)) == ("RegistryFailed", [], [0])
    assert sink.drain(name, avro).status is Status.DONE
    assert [row["id"] for row in only(sink).rows] == [0, 1, 2]
    assert sink.offsets(name) == [3]


def test_registry_that_fails_in_mid_range(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer
) -> None:
    """A file that was begun is thrown away, and nothing is committed; the next run delivers every record once."""
    name = topic()
    older = encode_avro(registry, name, EVENT, [{"id": n} for n in range(12_000)])
    newer = encode_avro(registry, name, NEWER, [{"id": n, "more": "x"} for n in range(12_000, 12_100)])
    broker.produce(name, [(None, value) for value in (*older, *newer)])
    avro = {**keys_of("avro", registry), **QUICK, **IMPATIENT}
    registry.trouble(Trouble(answers=False), Trouble(500))
    said = refused(sink.drain(name, avro))
    assert_says(said, "not give schema id 2", f"{registry.url}: answered 500")
    assert sink.offsets(name) == [0]
    assert uploaded(sink) == []
    assert sink.drain(name, avro).status is Status.DONE
    rows = [row for file in uploaded(sink) for row in file.rows]
    assert [row["id"] for row in rows] == list(range(12_100))
    assert [row.get("more") for row in rows[-101:]] == [None, *["x"] * 100]
    assert sink.offsets(name) == [12_100]


@pytest.mark.parametrize("keys", [{}, QUICK])
def test_registry_that_is_away_for_a_while(
    sink: Sink,
    broker: Broker,
    topic: TopicFactory,
    registry: RegistryServer,
    keys: dict[str, str],
) -> None:
    """It is asked again, by the same query or by the next one, and nobody notices."""
    name = topic()
    broker.produce(name, [(None, value) for value in encode_avro(registry, name, EVENT, [{"id": 1}])])
    registry.trouble(Trouble(503), Trouble(cut=True))
    assert sink.drain(name, {**keys_of("avro", registry), **keys, **EAGER}).status is Status.DONE
    assert [row["id"] for row in only(sink).rows] == [1]
    assert sink.offsets(name) == [1]
