"""Other people's readers, and a few lines of Python for the shape, give the same rows as ours: random schemas, values.

Avro is read with fastavro, Protobuf with the library's own JSON, JSON Schema with Python's json; what follows is a
plain walk over each value, which knows nothing of Arrow.
"""

import base64
import io
import json
import random
import string
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import json_format, message_factory

from parquet_sink.addons.formats.avro import decoder as avro_decoder
from parquet_sink.addons.formats.json_schema import decoder as json_schema
from parquet_sink.addons.formats.protobuf import decoder as protobuf_decoder
from parquet_sink.addons.formats.protobuf.compile import compile_schema
from parquet_sink.convert.decoded import Decoder
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.settings import ShapeSettings
from tests.factories import accepted

FLAT = ShapeSettings(embed_metadata=False)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXTS = ("", "x", "é\0", "𝄞", 'a"\\\n', "null")
Row = dict[str, object]


def rows_of(decoder: Decoder, values: list[bytes], settings: ShapeSettings = FLAT) -> list[Row]:
    """The rows of some values, times as numbers; nulls left out."""
    block = RecordBatch.of("t", 0, range(len(values)), [0] * len(values), values)
    rows: list[Row] = []
    for run in accepted(RowBuilder(settings, None, decoder), block):
        columns = {name: as_numbers(run.rows[name]).to_pylist() for name in run.rows.column_names}
        rows += [{name: columns[name][at] for name in columns} for at in range(run.rows.num_rows)]
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates, times and timestamps as Connect's numbers."""
    if pa.types.is_date32(column.type) or pa.types.is_time32(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def flattened(value: dict[str, Any], prefix: str = "") -> Row:
    """The columns of a record: objects opened, lists and maps as JSON, nulls left out."""
    row: Row = {}
    for name, below in value.items():
        if isinstance(below, Obj):
            row |= flattened(below, f"{prefix}{name}_")
        elif isinstance(below, list | dict):
            row[prefix + name] = json.dumps(written(below), separators=(",", ":"), ensure_ascii=False)
        elif below is not None:
            row[prefix + name] = below
    return row


class Obj(dict[str, Any]):
    """A record, as against a map."""


def written(value: Any) -> Any:
    """A value inside a list or a map as JsonConverter writes it."""
    if isinstance(value, dict):
        return {name: written(below) for name, below in value.items()}
    if isinstance(value, list):
        return [written(below) for below in value]
    if isinstance(value, Decimal):
        return float(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def same(found: Row, expected: Row) -> bool:
    """Whether two rows are equal, JSON texts compared by what they say where numbers may be written otherwise."""
    return found.keys() == expected.keys() and all(alike(found[name], expected[name]) for name in expected)


def alike(found: object, expected: object) -> bool:
    """Whether two values are equal, to the last bit and the sign of a zero."""
    if isinstance(expected, str) and expected[:1] in {"[", "{"} and found != expected:
        return isinstance(found, str) and repr(json.loads(found)) == repr(json.loads(expected))
    return repr(found) == repr(expected)


class Avro:
    """Random schemas, values for fastavro, and what a row shows of them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._names = 0

    def record(self, level: int) -> tuple[dict[str, Any], Callable[[], tuple[Any, Any]]]:
        """A schema, and what draws a value as fastavro takes it and as a row has it."""
        self._names += 1
        name = f"R{self._names}"
        parts = {string.ascii_lowercase[at]: self.any(level + 1) for at in range(self.rng.randrange(1, 6))}
        fields = [{"name": field, "type": type_} for field, (type_, _) in parts.items()]

        def draw() -> tuple[Any, Any]:
            drawn = {name: make() for name, (_, make) in parts.items()}
            return {name: one for name, (one, _) in drawn.items()}, Obj({name: one for name, (_, one) in drawn.items()})

        return {"type": "record", "name": name, "fields": fields}, draw

    def any(self, level: int) -> tuple[Any, Callable[[], tuple[Any, Any]]]:
        kinds = [self.plain, self.plain, self.plain, self.optional]
        kinds += [self.array, self.map, self.record] if level < 4 else []
        return self.rng.choice(kinds)(level)

    def optional(self, level: int) -> tuple[Any, Callable[[], tuple[Any, Any]]]:
        type_, draw = self.plain(level) if self.rng.random() < 0.7 else self.record(level + 1)
        return ["null", type_], lambda: (None, None) if self.rng.random() < 0.3 else draw()

    def array(self, level: int) -> tuple[Any, Callable[[], tuple[Any, Any]]]:
        type_, draw = self.any(level + 1)

        def many() -> tuple[Any, Any]:
            drawn = [draw() for _ in range(self.rng.randrange(4))]
            return [one for one, _ in drawn], [one for _, one in drawn]

        return {"type": "array", "items": type_}, many

    def map(self, level: int) -> tuple[Any, Callable[[], tuple[Any, Any]]]:
        type_, draw = self.any(level + 1)

        def some() -> tuple[Any, Any]:
            drawn = {key: draw() for key in self.rng.sample(TEXTS, self.rng.randrange(4))}
            return {key: one for key, (one, _) in drawn.items()}, {key: one for key, (_, one) in drawn.items()}

        return {"type": "map", "values": type_}, some

    def plain(self, _: int) -> tuple[Any, Callable[[], tuple[Any, Any]]]:
        rng = self.rng
        days, millis = rng.randrange(-700_000, 2_900_000), rng.randrange(86_400_000)
        cents = Decimal(rng.randrange(-(10**8), 10**8)).scaleb(-2)
        moment = rng.randrange(-(10**13), 10**13)
        at_noon = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)
        choices: list[tuple[Any, Any, Any]] = [
            ("boolean", True, True),
            ("int", -(2**31), -(2**31)),
            ("long", 2**63 - 1, 2**63 - 1),
            ("double", 0.1, 0.1),
            ("double", -1.5e300, -1.5e300),
            ("float", 0.5, 0.5),
            *(("string", text, text) for text in TEXTS[:5]),
            ("bytes", b"\xff\x00", b"\xff\x00"),
            ({"type": "int", "logicalType": "date"}, date(1970, 1, 1) + timedelta(days=days), days),
            ({"type": "int", "logicalType": "time-millis"}, time.fromisoformat(at_noon.time().isoformat()), millis),
            ({"type": "long", "logicalType": "timestamp-millis"}, EPOCH + timedelta(milliseconds=moment), moment),
            ({"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}, cents, cents),
        ]
        type_ = rng.choice(choices)[0]
        values = [(given, shown) for other, given, shown in choices if other == type_]
        return type_, lambda: rng.choice(values)


@pytest.mark.parametrize("seed", range(40))
def test_avro_as_fastavro_reads_it(seed: int) -> None:
    """Records of random schemas, written and read by fastavro, are the rows that a walk over them gives."""
    text, draw = Avro(random.Random(seed)).record(0)
    schema = fastavro.parse_schema(text)
    values, expected = [], []
    for _ in range(40):
        given, shown = draw()
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, given)
        assert repr(fastavro.schemaless_reader(io.BytesIO(out.getvalue()), schema, None)) == repr(given)
        values.append(out.getvalue())
        expected.append(flattened(shown))
    decoder = avro_decoder.decoder(RegisteredSchema(1, "AVRO", json.dumps(text)), ConverterSettings(kind="avro"))
    found = rows_of(decoder, values)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert same(one, other), (one, other)


class JsonSchema:
    """Random JSON Schemas with values."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def record(self, level: int) -> tuple[dict[str, Any], Callable[[], Any]]:
        parts = {string.ascii_lowercase[at]: self.any(level + 1) for at in range(self.rng.randrange(1, 6))}
        schema = {"type": "object", "properties": {name: type_ for name, (type_, _) in parts.items()}}
        kept = set(self.rng.sample(sorted(parts), self.rng.randrange(len(parts) + 1)))
        schema["required"] = sorted(kept)

        def draw() -> Any:
            return Obj({name: make() for name, (_, make) in parts.items() if name in kept or self.rng.random() < 0.7})

        return schema, draw

    def any(self, level: int) -> tuple[dict[str, Any], Callable[[], Any]]:
        rng = self.rng
        if level < 4 and rng.random() < 0.4:
            type_, draw = self.any(level + 1)
            kind = rng.randrange(4)
            if kind == 0:
                return {"type": "array", "items": type_}, lambda: [draw() for _ in range(rng.randrange(4))]
            if kind == 1:
                schema = {"type": "object", "additionalProperties": type_}
                return schema, lambda: {key: draw() for key in rng.sample(TEXTS, rng.randrange(4))}
            return self.record(level + 1)
        kinds: list[tuple[dict[str, Any], Callable[[], Any]]] = [
            ({"type": "integer"}, lambda: rng.choice([0, -1, 2**63 - 1, -(2**63), rng.randrange(10**6)])),
            ({"type": "number"}, lambda: rng.choice([0.1, -1.5e300, 5e-324, 1e22, rng.random()])),
            ({"type": "boolean"}, lambda: rng.random() < 0.5),
            ({"type": "string"}, lambda: rng.choice(TEXTS)),
            ({"oneOf": [{"type": "null"}, {"type": "string"}]}, lambda: rng.choice([None, *TEXTS])),
        ]
        return rng.choice(kinds)


def filled(schema: dict[str, Any], value: Any) -> Any:
    """The value with null for each property that it lacks: inside lists, a row of objects has them all."""
    if isinstance(value, list):
        return [filled(schema["items"], one) for one in value]
    if "properties" in schema and isinstance(value, dict):
        return Obj({name: filled(below, value.get(name)) for name, below in schema["properties"].items()})
    if isinstance(value, dict):
        return {key: filled(schema["additionalProperties"], one) for key, one in value.items()}
    return value


@pytest.mark.parametrize("seed", range(40))
def test_json_schema_as_python_reads_it(seed: int) -> None:
    """Values of random schemas are the rows that a walk over what Python's json reads gives."""
    schema, draw = JsonSchema(random.Random(seed)).record(0)
    drawn = [draw() for _ in range(100)]
    values = [json.dumps(value).encode() for value in drawn if value]
    expected = [flattened(filled(schema, value)) for value in drawn if value]
    decoder = json_schema.decoder(
        RegisteredSchema(1, "JSON", json.dumps(schema)), ConverterSettings(kind="json_schema")
    )
    found = rows_of(decoder, values)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert same(one, other), (one, other)


PROTO = """syntax = "proto3"; import "google/protobuf/wrappers.proto"; message R { int32 a = 1; sint64 b = 2;
fixed64 c = 3; double e = 5; bool f = 6; string g = 7; bytes h = 8; E i = 9; S j = 10; repeated sint32 k = 11;
repeated string l = 12; repeated S m = 13; map<string, S> n = 14; oneof p { int32 q = 16; S r = 17; }
optional string s = 18; google.protobuf.StringValue u = 20; uint32 v = 21; repeated E w = 22;
google.protobuf.Int64Value y = 24; } message S { int64 z = 1; repeated bool x = 2; T t = 3; }
message T { string o = 1; } enum E { A = 0; B = 1; C = -5; }"""


def fill_message(rng: random.Random, message: Any) -> None:
    """Random fields of an R."""

    def some(*values: Any) -> Any:
        return rng.choice(values)

    for name, value in {
        "a": some(0, -1, 2**31 - 1),
        "b": some(0, -(2**63)),
        "c": some(0, 2**63 - 1),
        "e": some(0.0, 0.1, -1e300),
        "f": some(True, False),
        "g": some(*TEXTS),
        "h": some(b"", b"\xff"),
        "i": some(0, 1, -5),
        "s": some(*TEXTS),
        "v": some(0, 2**32 - 1),
        "q": some(0, 7),
    }.items():
        if rng.random() < 0.6:
            setattr(message, name, value)
    for wrapper, value in ((message.u, some(*TEXTS)), (message.y, some(0, -(2**63)))):
        if rng.random() < 0.5:
            wrapper.value = value
    message.k.extend(some([], [1, -1], [-(2**31)]))
    message.l.extend(some([], list(TEXTS)))
    message.w.extend(some([], [0, 1, -5]))
    inner = [message.j, message.r] if rng.random() < 0.5 else []
    inner += [message.m.add() for _ in range(rng.randrange(3))] + [message.n[key] for key in rng.sample(TEXTS, 2)]
    for one in inner:
        one.SetInParent()
        one.z = some(0, 5)
        one.x.extend(some([], [True, False]))
        if rng.random() < 0.5:
            one.t.o = some(*TEXTS)


def shown(field: dict[str, Any]) -> Obj:
    """An S as Protobuf's own JSON has it, with what that leaves out."""
    below = Obj(o=field["t"].get("o", "")) if "t" in field else None
    return Obj(z=int(field.get("z", 0)), x=field.get("x", []), t=below)


def row_of_message(message: Any) -> Row:
    """The row of an R, from Protobuf's own JSON."""
    read = json_format.MessageToDict(message, preserving_proto_field_name=True)
    get = read.get
    chosen = Obj(q=get("q"), r=shown(read["r"]) if "r" in read else None) if "q" in read or "r" in read else None
    record = {
        "p_0": chosen,
        "a": get("a", 0),
        "b": int(get("b", 0)),
        "c": int(get("c", 0)),
        "e": float(get("e", 0)),
        "f": get("f", False),
        "g": get("g", ""),
        "h": base64.b64decode(get("h", "")),
        "i": get("i", "A"),
        "j": shown(read["j"]) if "j" in read else None,
        "k": get("k", []),
        "l": get("l", []),
        "m": [shown(one) for one in get("m", [])],
        "n": {key: shown(one) for key, one in sorted(get("n", {}).items())},
        "s": get("s"),
        "u": get("u"),
        "v": get("v", 0),
        "w": get("w", []),
        "y": int(read["y"]) if "y" in read else None,
    }
    return flattened(record)


@pytest.mark.parametrize("seed", range(5))
def test_protobuf_as_its_own_json_has_it(seed: int) -> None:
    """Random messages are the rows that a walk over the library's own JSON of them gives."""
    rng = random.Random(seed)
    schema = RegisteredSchema(1, "PROTOBUF", PROTO)
    pool = compile_schema(schema).pool
    make = message_factory.GetMessageClass(pool.FindMessageTypeByName("R"))
    messages = [make() for _ in range(200)]
    for message in messages:
        fill_message(rng, message)
    decoder = protobuf_decoder.decoder(schema, ConverterSettings(kind="protobuf"))
    found = rows_of(decoder, [b"\0" + message.SerializeToString() for message in messages])
    for one, message in zip(found, messages, strict=True):
        assert same(one, row_of_message(message)), (one, row_of_message(message))
