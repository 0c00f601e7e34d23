"""Cases at random for Debezium's ExtractNewRecordState: change events of a table, and what else its connectors send."""

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final

from integration.transforms.cases import Case, Header, Record, Step

TYPE: Final = "io.debezium.transforms.ExtractNewRecordState"
_HEADER: Final = "drop"
_LISTS: Final = (b'["name","qty"]', b'["name"]', b'["id"]', b"[]", b"text", b'["__op","tags"]', b'["none"]', None)
_FIELDS: Final = (
    *("op", "ts_ms", "ts_us", "lsn", "table", "source.ts_ms", "source.db:database", "transaction.id", "total_order"),
    *("id", "source.nothing", "extra", "source.extra", "op:name", "nothing.at", "source", "version:v"),
)
_MODES: Final = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")

Json = dict[str, Any]


def _field(field: str, type_: str, *, optional: bool = True, **more: Any) -> Json:
    return {"field": field, "type": type_, "optional": optional, **more}


def _row_schema(rng: Random) -> list[Json]:
    fields = [_field("id", "int64", optional=False), _field("name", "string"), _field("qty", "int32")]
    more = (
        _field("price", "double"),
        _field("topic", "string"),
        _field("tags", "array", items={"type": "string", "optional": True}),
        _field("address", "struct", fields=[_field("city", "string"), _field("zip", "int32", optional=False)]),
        _field("at", "int64", name="org.apache.kafka.connect.data.Timestamp", version=1),
        _field("__deleted", "string"),
    )
    return fields + rng.sample(more, rng.randrange(4))


def _value(rng: Random, field: Mapping[str, Any]) -> Any:
    if field["optional"] and rng.random() < 0.2:
        return None
    if field["type"] == "struct":
        return {one["field"]: _value(rng, one) for one in field["fields"]}
    choices: Mapping[str, tuple[Any, ...]] = {
        "int32": (0, 1, -7),
        "int64": (0, 5, 2**40),
        "double": (0.5, 12.25),
        "string": ("", "a", "orders-2", " ", "ünï"),
        "array": ([], ["a"], ["a", "b"]),
    }
    return rng.choice(choices[field["type"]])


def _envelope(rng: Random, row: list[Json]) -> tuple[list[Json], list[Json]]:
    source = [
        _field("version", "string", optional=False),
        _field("ts_ms", "int64", optional=False),
        _field("db", "string", optional=False),
        _field("table", "string"),
        _field("lsn", "int64"),
    ]
    transaction = [_field("id", "string", optional=False), _field("total_order", "int64", optional=False)]
    fields = [
        _field("before", "struct", fields=row, name="s.public.orders.Value"),
        _field("after", "struct", fields=row, name="s.public.orders.Value"),
        _field("source", "struct", optional=False, fields=source, name="io.debezium.connector.postgresql.Source"),
        _field("op", "string", optional=False),
        _field("ts_ms", "int64"),
        _field("ts_us", "int64"),
        *([_field("transaction", "struct", fields=transaction, name="event.block")] * (rng.random() < 0.8)),
        *([_field("extra", "string")] * (rng.random() < 0.4)),
    ]
    return fields, source


def _event(rng: Random, fields: list[Json]) -> Json:
    op = rng.choice("ccuuddrt")
    found = {one["field"]: _value(rng, one) for one in fields}
    before, after = fields[0], fields[1]
    state = {**before, "optional": False}
    found["op"] = op
    found["after"] = None if op in "dt" else _value(rng, {**after, "optional": False})
    found["before"] = _value(rng, state) if op == "d" or (op == "u" and rng.random() < 0.6) else None
    if op == "d" and rng.random() < 0.1:
        found["before"] = None
    return found


def _others(rng: Random) -> tuple[str, list[Json], Json]:
    """What is no change event: the name of its schema, fields, and one."""
    at = _field("ts_ms", "int64", optional=False)
    source = _field("source", "struct", optional=False, fields=[_field("db", "string")])
    op = _field("op", "string", optional=False)
    return rng.choice(
        (
            ("io.debezium.connector.common.Heartbeat", [at], {"ts_ms": 5}),
            (
                "io.debezium.connector.mysql.SchemaChangeValue",
                [source, at, _field("ddl", "string")],
                {"source": {"db": "d"}, "ts_ms": 5, "ddl": "CREATE TABLE t"},
            ),
            (
                "io.debezium.connector.common.TransactionMetadataValue",
                [_field("status", "string", optional=False), _field("id", "string", optional=False), at],
                {"status": "BEGIN", "id": "7", "ts_ms": 5},
            ),
            (
                "io.debezium.connector.postgresql.MessageValue",
                [op, at, source, _field("message", "string")],
                {"op": "m", "ts_ms": 5, "source": {"db": None}, "message": "x"},
            ),
            ("orders", [_field("id", "int64"), op], {"id": 5, "op": "c"}),
        )
    )


def _record(rng: Random, fields: list[Json]) -> tuple[Json, Json] | None:
    """Schema and value; None: a tombstone."""
    which = rng.random()
    if which < 0.15:
        return None
    if which < 0.3:
        name, own, value = _others(rng)
        return {"type": "struct", "optional": False, "name": name, "fields": own}, value
    schema = {"type": "struct", "optional": False, "name": "s.public.orders.Envelope", "fields": fields}
    return schema, _event(rng, fields)


def _keys(rng: Random, *, old: bool) -> dict[str, str]:
    keys: dict[str, str] = {}
    if old and rng.random() < 0.8:
        keys["drop.tombstones"] = rng.choice(("true", "false"))
    if old and (rng.random() < 0.8 or not keys):
        keys["delete.handling.mode"] = rng.choice(("drop", "none", "rewrite"))
    if not old and rng.random() < 0.8:
        keys["delete.tombstone.handling.mode"] = rng.choice(_MODES)
    for name in ("add.fields", "add.headers"):
        if rng.random() < 0.6:
            keys[name] = ",".join(rng.sample(_FIELDS, rng.randrange(1, 4)))
        if rng.random() < 0.2:
            keys[f"{name}.prefix"] = rng.choice(("", "x_"))
    if rng.random() < 0.3:
        keys["route.by.field"] = rng.choice(("name", "topic", "topic", "id", "nothing"))
    if rng.random() < 0.5:
        keys["drop.fields.header.name"] = _HEADER
        keys["drop.fields.from.key"] = rng.choice(("true", "false"))
        keys["drop.fields.keep.schema.compatible"] = rng.choice(("true", "false"))
    return keys


def _headers(rng: Random) -> tuple[Header, ...]:
    return tuple((_HEADER, rng.choice(_LISTS)) for _ in range(rng.choice((0, 1, 1, 2))))


def pairs(seed: int, *, old: bool) -> Iterator[tuple[Case, Case]]:
    """The same records with their schemas and without, and no end of them. old: keys of Debezium before 3.2."""
    rng = Random(seed)
    key = [_field("id", "int64", optional=False), _field("name", "string")]
    key_schema = {"type": "struct", "optional": False, "name": "s.public.orders.Key", "fields": key}
    while True:
        fields, _ = _envelope(rng, _row_schema(rng))
        steps = (Step(TYPE, _keys(rng, old=old)),)
        typed, plain = [], []
        for number in range(rng.choice((1, 5, 20))):
            found, headers = _record(rng, fields), _headers(rng)
            own = {"id": number, "name": "n"}
            schema_value = None if found is None else json.dumps(dict(zip(("schema", "payload"), found, strict=True)))
            value = None if found is None else json.dumps(found[1])
            for into, one, of_key in (
                (typed, schema_value, {"schema": key_schema, "payload": own}),
                (plain, value, own),
            ):
                into.append(Record(json.dumps(of_key).encode(), None if one is None else one.encode(), headers))
        yield Case(steps, tuple(typed), True, True), Case(steps, tuple(plain))
