"""Change events of Debezium on real parts: from the broker through the running sink to the target's table."""

import json
from typing import Any, Final

import pytest

from integration.conftest import TopicFactory
from integration.formats.records import FORMATS
from integration.harness import Sink
from integration.registry import RegistryServer
from integration.transforms.debezium import TYPE
from integration.wire import encode_avro
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.worker.loop.status import Status

UNWRAP: Final = {
    "transforms": "unwrap",
    "transforms.unwrap.type": TYPE,
    "transforms.unwrap.add.fields": "op,source.ts_ms",
}
JSON: Final = {
    f"{side}.converter{name}": text
    for side in ("key", "value")
    for name, text in (("", "org.apache.kafka.connect.json.JsonConverter"), (".schemas.enable", "false"))
}
ROW: Final = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": ["null", "string"]}],
}
ENVELOPE: Final = {
    "type": "record",
    "name": "Envelope",
    "namespace": "s.public.people",
    "fields": [
        {"name": "before", "type": ["null", ROW]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": [{"name": "ts_ms", "type": "long"}]}},
        {"name": "op", "type": "string"},
    ],
}
KEY: Final = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}


def changes() -> list[tuple[int, dict[str, Any] | None]]:
    """Keys and change events of 40 rows, a third of which is deleted, with the tombstones behind; one comes again."""
    found: list[tuple[int, dict[str, Any] | None]] = []

    def event(op: str, number: int, before: str | None, after: str | None) -> None:
        states = [None if name is None else {"id": number, "name": name} for name in (before, after)]
        source = {"ts_ms": len(found)}
        found.append((number, {"before": states[0], "after": states[1], "source": source, "op": op}))

    for number in range(40):
        event("r" if number % 2 else "c", number, None, f"n{number}")
    for number in range(0, 40, 4):
        event("u", number, f"n{number}", f"m{number}")
    for number in range(0, 40, 3):
        event("d", number, f"n{number}", None)
        found.append((number, None))
    event("c", 3, None, "again")
    return found


def table() -> list[tuple[int, str]]:
    """What the table holds in the end."""
    rows = {number: f"m{number}" if number % 4 == 0 else f"n{number}" for number in range(40) if number % 3}
    return sorted({**rows, 3: "again"}.items())


@pytest.mark.parametrize("form", ["json", "avro"])
def test_a_table_is_what_its_changes_made_of_it(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer, form: str
) -> None:
    """Inserted and updated rows are there, also one that came again; deleted ones are gone; all is committed."""
    name, found = topic(), changes()
    if form == "avro":
        values = encode_avro(registry, name, json.dumps(ENVELOPE), [event for _, event in found if event is not None])
        keys = encode_avro(registry, f"{name}-key", json.dumps(KEY), [{"id": number} for number, _ in found])
        converters = FORMATS["avro"].properties(registry) | FORMATS["avro"].properties(registry, "key")
    else:
        values = [json.dumps(event).encode() for _, event in found if event is not None]
        keys = [json.dumps({"id": number}).encode() for number, _ in found]
        converters = JSON
    left = iter(values)
    events = [None if event is None else next(left) for _, event in found]
    broker.produce(name, list(zip(keys, events, strict=True)))
    run = sink.drain(name, {**converters, **UNWRAP}, data_primary_key="id", tombstones="row", commit_records=20)
    assert run.status is Status.DONE, run.failure
    assert sorted((row["id"], row["name"]) for row in sink.rows()) == table()
    tombstones = sum(event is None for event in events)
    assert sum(receipt.rows for receipt in run.accepted) == len(found) - tombstones
    assert sink.offsets(name) == [len(found)]
    (again,) = [row for row in sink.rows() if row["id"] == 3]
    assert (again["__op"], again["__source_ts_ms"], again["__deleted"]) == ("c", len(found) - 1, False)
