"""Records for the golden files: the same ones every time, with a bit of everything, in the form of each converter."""

import base64
import io
import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any, Final

import fastavro
from google.protobuf import message_factory

from parquet_sink.addons.formats.protobuf.compile import compile_schema
from parquet_sink.convert.registry.registered import RegisteredSchema, SchemaKind

CONNECT: Final = "org.apache.kafka.connect"
BEGIN_MS: Final = 1_700_000_000_000
URL: Final = "https://registry.example.com"

_NAMES: Final = ("Ada", "für Ada", "", 'a "quoted" \\ text', "line\nbreak", "é" * 40, "2024-01-31", "12")
_STATUS: Final = ("OPEN", "PAID", "GONE")


def tree(number: int, chance: Random) -> dict[str, Any]:
    """A record without a schema: fields come, go, and change their types."""
    found: dict[str, Any] = {
        "id": number,
        "part": number % 7,
        "Name": chance.choice(_NAMES),
        "amount": chance.choice([number, number + 0.5, -0.1, 1e300]),
        "large": 2**53 + number,
        "ok": chance.random() < 0.5,
        "placed": BEGIN_MS + number * 1_000,
        "text_of_number": str(number * 3),
        "customer": chance.choice(
            [None, {"name": chance.choice(_NAMES), "age": number % 90}, {"name": "Bo", "address": {"City": "Ulm"}}]
        ),
        "tags": chance.choice([[], ["x", "ü"], ["x", None, 1], [1, 2.5], [["deep"], []]]),
        "items": [{"sku": f"s{one}", "qty": one, "note": None} for one in range(chance.randrange(4))],
        "empty": chance.choice([{}, None]),
    }
    if number % 900 > 600:
        found[f"late_{number // 900}"] = chance.choice([number, None])
    if number % 5 == 0:
        del found["text_of_number"], found["empty"]
    if number > 400 and number % 50 == 0:
        found["part"] = chance.choice([None, number % 7])
    return found


def order(number: int, chance: Random) -> dict[str, Any]:
    """A record that fits the schemas below."""
    return {
        "id": number,
        "part": number % 7,
        "note": chance.choice([None, *_NAMES]),
        "Amount": chance.choice([0.1, -1e10, 7.0, 1.5e-9]),
        "status": chance.choice(_STATUS),
        "customer": chance.choice([None, {"name": chance.choice(_NAMES), "age": chance.choice([None, 36])}]),
        "tags": chance.choice([[], ["x"], ["x", "ü"]]),
        "items": [{"sku": f"s{one}", "qty": one} for one in range(chance.randrange(3))],
        "counts": chance.choice([{}, {"k": number}]),
        "raw": bytes([number % 256, 0xFF]),
        "price": Decimal(chance.randrange(-10_000, 10_000)).scaleb(-2),
        "day": chance.randrange(-10, 20_000),
        "at": chance.randrange(86_400_000),
        "placed": BEGIN_MS + number * 1_000 + 7,
        "exactly": (BEGIN_MS + number) * 1_000 + 1,
        "choice": chance.choice([7, "seven"]),
        "ok": chance.random() < 0.5,
        "small": chance.choice([0.5, -3.25]),
        "extra": number % 3,
    }


def _avro_record(name: str, /, **fields: object) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": of} for key, of in fields.items()]}


_AVRO: Final = _avro_record(
    "Order",
    id="long",
    part="int",
    note=["null", "string"],
    Amount="double",
    status={"type": "enum", "name": "Status", "symbols": list(_STATUS)},
    customer=["null", _avro_record("Customer", name="string", age=["null", "int"])],
    tags={"type": "array", "items": "string"},
    items={"type": "array", "items": _avro_record("Item", sku="string", qty="int")},
    counts={"type": "map", "values": "int"},
    raw="bytes",
    price={"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    day={"type": "int", "logicalType": "date"},
    at={"type": "int", "logicalType": "time-millis"},
    placed={"type": "long", "logicalType": "timestamp-millis"},
    exactly={"type": "long", "logicalType": "timestamp-micros"},
    choice=["string", "int"],
    ok="boolean",
    small="float",
    alone=["long"],
)
_AVRO_2: Final = {**_AVRO, "fields": [one for one in _AVRO["fields"] if one["name"] != "small"]}  # type: ignore[attr-defined]
_AVRO_2["fields"].append({"name": "extra", "type": "long"})
_AVRO_KEY: Final = _avro_record("Key", id="long", part="int")
_PROTO: Final = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Status { OPEN = 0; PAID = 1; GONE = 2; }
message Order {
  message Customer { string name = 1; optional int32 age = 2; }
  message Item { string sku = 1; int32 qty = 2; }
  int64 id = 1; int32 part = 2; optional string note = 3; double Amount = 4; Status status = 5; Customer customer = 6;
  repeated string tags = 7; repeated Item items = 8; map<string, int32> counts = 9; bytes raw = 10;
  uint32 unsigned = 11; google.protobuf.Timestamp placed = 12;
  oneof choice { string text = 13; int32 number = 14; } bool ok = 15;
  float small = 16; google.protobuf.StringValue wrapped = 17;
}
message Key { int64 id = 1; int32 part = 2; }
"""
_PROTO_2: Final = """
syntax = "proto2";
message Order { required int64 id = 1; optional int32 part = 2 [default = 5]; optional string note = 3; }
"""
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}
_OR_NULL: Final = {"type": "null"}


def _indexed(**fields: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a JSON Schema, in this order."""
    return {name: {**one, "connect.index": index} for index, (name, one) in enumerate(fields.items())}


_JSON: Final = {
    "type": "object",
    "title": "Order",
    "required": ["id"],
    "properties": _indexed(
        id=_NUMBER,
        part=_NUMBER,
        note={"oneOf": [_OR_NULL, _TEXT]},
        Amount={"type": "number"},
        status={"enum": list(_STATUS)},
        customer={"oneOf": [_OR_NULL, {"$ref": "#/definitions/Customer"}]},
        tags={"type": "array", "items": _TEXT},
        items={"type": "array", "items": {"type": "object", "properties": _indexed(sku=_TEXT, qty=_NUMBER)}},
        counts={"type": "object", "connect.type": "map", "additionalProperties": _NUMBER},
        price={
            "type": "number",
            "title": f"{CONNECT}.data.Decimal",
            "connect.type": "bytes",
            "connect.parameters": {"scale": "2", "connect.decimal.precision": "9"},
        },
        day={"type": "integer", "title": f"{CONNECT}.data.Date", "connect.type": "int32"},
        choice={"oneOf": [_TEXT, _NUMBER]},
        ok={"type": "boolean"},
    ),
    "definitions": {
        "Customer": {"type": "object", "properties": _indexed(name=_TEXT, age={"oneOf": [_OR_NULL, _NUMBER]})}
    },
}
_JSON_KEY: Final = {"type": "object", "properties": _indexed(id=_NUMBER, part=_NUMBER)}


def _connect(of: str, name: str = "", **more: object) -> dict[str, object]:
    return {"type": of, **({"name": f"{CONNECT}.data.{name}", "version": 1} if name else {}), **more}


def _struct(name: str, /, **fields: dict[str, object]) -> dict[str, object]:
    return {"type": "struct", "name": name, "fields": [{**of, "field": key} for key, of in fields.items()]}


_ITEM: Final = _struct("Item", sku=_connect("string"), qty=_connect("int32"))
_CUSTOMER: Final = _struct("Customer", name=_connect("string"), age=_connect("int32", optional=True))
_CONNECT: Final[dict[str, dict[str, object]]] = {
    "id": _connect("int64"),
    "part": _connect("int32"),
    "note": _connect("string", optional=True),
    "Amount": _connect("double"),
    "status": _connect("string", default="OPEN", optional=True),
    "customer": {**_CUSTOMER, "optional": True},
    "tags": _connect("array", items=_connect("string")),
    "items": _connect("array", items=_ITEM),
    "counts": _connect("map", keys=_connect("string"), values=_connect("int32")),
    "raw": _connect("bytes"),
    "price": _connect("bytes", "Decimal", parameters={"scale": "2", "connect.decimal.precision": "9"}),
    "day": _connect("int32", "Date"),
    "at": _connect("int32", "Time"),
    "placed": _connect("int64", "Timestamp"),
    "ok": _connect("boolean"),
    "small": _connect("float"),
    "tiny": _connect("int8"),
}

SCHEMAS: Final[Mapping[int, tuple[SchemaKind, object]]] = {
    1: ("AVRO", _AVRO),
    2: ("AVRO", _AVRO_2),
    3: ("AVRO", _AVRO_KEY),
    4: ("PROTOBUF", _PROTO),
    5: ("PROTOBUF", _PROTO_2),
    6: ("JSON", _JSON),
    7: ("JSON", _JSON_KEY),
}


@cache
def registered(schema_id: int) -> RegisteredSchema:
    """A schema as the registry has it. Raises KeyError."""
    kind, found = SCHEMAS[schema_id]
    return RegisteredSchema(schema_id, kind, found if isinstance(found, str) else json.dumps(found))


def _framed(schema_id: int, payload: bytes, indexes: bytes = b"") -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + indexes + payload


@cache
def _parsed(schema_id: int) -> Any:
    return fastavro.parse_schema(SCHEMAS[schema_id][1])


def _avro(schema_id: int, row: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _parsed(schema_id), {**row, "alone": row["id"]})
    return _framed(schema_id, out.getvalue())


@cache
def _message(schema_id: int, name: str) -> Any:
    pool = compile_schema(registered(schema_id)).pool
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def _protobuf(number: int, row: Mapping[str, Any]) -> bytes:
    if number % 400 > 380:
        old = _message(5, "Order")(id=number, note=row["note"])
        return _framed(5, old.SerializeToString(deterministic=True), b"\0")
    same = ("id", "part", "note", "Amount", "customer", "tags", "items", "counts", "raw", "ok", "small")
    found = _message(4, "Order")(**{name: row[name] for name in same if row[name] is not None})
    found.status, found.unsigned = _STATUS.index(row["status"]), 2**32 - 1 - number
    found.placed.FromMilliseconds(row["placed"])
    setattr(found, "number" if row["choice"] == 7 else "text", row["choice"])
    if row["note"]:
        found.wrapped.value = row["note"]
    return _framed(4, found.SerializeToString(deterministic=True), b"\0")


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """As a JSON document has it."""
    return {**row, "price": float(row["price"]), "raw": base64.b64encode(row["raw"]).decode(), "tiny": row["part"]}


def _enveloped(number: int, row: Mapping[str, Any]) -> bytes:
    names = [name for name in _CONNECT if name != "small"] if number % 400 > 380 else list(_CONNECT)
    unscaled = int(row["price"].scaleb(2))
    price = base64.b64encode(unscaled.to_bytes(4, "big", signed=True)).decode()
    payload = {**_plain(row), "price": price, "status": None if number % 9 == 0 else row["status"]}
    schema = {"type": "struct", "name": "Order", "fields": [{**_CONNECT[name], "field": name} for name in names]}
    return json.dumps({"schema": schema, "payload": {name: payload[name] for name in names}}).encode()


def _xml(number: int, row: Mapping[str, Any]) -> bytes:
    tags = "".join(f"<tag>{one}</tag>" for one in row["tags"])
    note = "" if row["note"] is None else f"<note>{row['note'].replace(chr(10), ' ').replace('&', '')}</note>"
    return f'<order id="{number}"><part>{row["part"]}</part>{note}{tags}<none/></order>'.encode()


def _event(number: int, chance: Random) -> dict[str, Any]:
    """A change event of Debezium."""
    op = chance.choice("crudtu")
    row = {"id": number % 50, "name": chance.choice(_NAMES), "route": chance.choice(["orders-2", None])}
    return {
        "before": row if op == "d" else None,
        "after": {**row, "amount": number / 4} if op in "cru" else None,
        "source": {"ts_ms": BEGIN_MS + number, "lsn": number, "table": "orders"},
        "op": op,
        "ts_ms": BEGIN_MS + number + 1,
        "transaction": {"id": f"{number // 10}", "total_order": number} if number % 2 else None,
    }


def _packed(form: str, value: Callable[[int], Any]) -> Callable[[int, Random], bytes]:
    return lambda number, chance: struct.pack(form, value(number))


def _typed(write: Callable[[int, Mapping[str, Any]], bytes]) -> Callable[[int, Random], bytes]:
    return lambda number, chance: write(number, order(number, chance))


VALUES: Final[Mapping[str, Callable[[int, Random], bytes]]] = {
    "json": lambda number, chance: json.dumps(tree(number, chance), ensure_ascii=number % 2 == 0).encode(),
    "mixed": lambda number, chance: json.dumps(
        {"id": number, "a": chance.choice([1, 2**60, 0.5, "text", True, None, [1], {"b": 1}])}
    ).encode(),
    "envelope": _typed(_enveloped),
    "avro": _typed(lambda number, row: _avro(2 if number % 400 > 380 else 1, row)),
    "protobuf": _typed(_protobuf),
    "json_schema": _typed(lambda number, row: _framed(6, json.dumps(_plain(row)).encode())),
    "xml": _typed(_xml),
    "string": lambda number, chance: chance.choice(_NAMES).encode() + b"%d" % number,
    "latin": lambda number, chance: f"é{number}".encode("latin-1"),
    "bytes": lambda number, chance: bytes([number % 256, 0xFF]),
    "csv": lambda number, chance: f"{number},{chance.choice(['x', ''])}".encode(),
    "boolean": lambda number, chance: bytes([number % 2]),
    "short": _packed(">h", lambda number: number - 500),
    "integer": _packed(">i", lambda number: -number),
    "long": _packed(">q", lambda number: 2**40 + number),
    "float": _packed(">f", lambda number: number / 4),
    "double": _packed(">d", lambda number: number / 10),
    "events": lambda number, chance: json.dumps(_event(number, chance)).encode(),
}
"""By format, what a producer writes of a record with a number."""

KEYS: Final[Mapping[str, Callable[[int], bytes]]] = {
    "json": lambda number: json.dumps({"id": number, "part": number % 7}).encode(),
    "envelope": lambda number: json.dumps(
        {"schema": _struct("Key", id=_connect("int64"), part=_connect("int32")), "payload": {"id": number, "part": 1}}
    ).encode(),
    "avro": lambda number: _avro(3, {"id": number, "part": number % 7}),
    "protobuf": lambda number: _framed(4, _message(4, "Key")(id=number, part=1).SerializeToString(), b"\2\2"),
    "json_schema": lambda number: _framed(7, json.dumps({"id": number, "part": 2}).encode()),
    "string": lambda number: f"k{number}".encode(),
    "long": lambda number: struct.pack(">q", number),
}
_BAD: Final = (b"", b"{", b"[1, 2]", b'"text"', b'{"a": 1} {"a": 2}', b"\xff\xfe", b"\0\0\0\x27\x0fx", b"\x1f\x8b\x08")
_HEADERS: Final = (b"12", b"true", b"2024-01-31", b"null", b"[1, 2]", b"text", None, b"0.1", b"\xff")


@dataclass(frozen=True)
class Record:
    """What Kafka has at one offset."""

    offset: int
    timestamp: int
    value: bytes | None
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] | None


@dataclass(frozen=True)
class Stream:
    """Records of one topic-partition. bad: one of so many cannot be decoded; 0: none. tombstones: likewise."""

    format: str = "json"
    key: str = "json"
    count: int = 700
    bad: int = 0
    tombstones: int = 40
    seed: int = 7
    first: int = 0
    text_headers: bool = True

    def blocks(self) -> Iterator[Sequence[Record]]:
        """All records, with gaps between offsets, in blocks cut at random."""
        cut = Random(self.seed + 1)
        records = _records(self)
        at = 0
        while at < len(records):
            size = cut.choice([1, 2, 50, 400, 1_000])
            yield records[at : at + size]
            at += size


@cache
def _records(stream: Stream) -> Sequence[Record]:
    chance = Random(stream.seed)
    return [_record(stream, number, chance) for number in range(1, stream.count + 1)]


def _record(stream: Stream, number: int, chance: Random) -> Record:
    value: bytes | None = VALUES[stream.format](number, chance)
    if stream.bad and number % stream.bad == 3:
        value = _BAD[number // stream.bad % len(_BAD)]
    elif stream.tombstones and number % stream.tombstones == 5:
        value = None
    key = None if number % 111 == 0 else KEYS[stream.key](number)
    choices = _HEADERS[: 6 if stream.text_headers else None]
    headers = [("kind", chance.choice(choices)), *([("again", b"1"), ("again", b"x")] if number % 3 == 0 else [])]
    offset = stream.first + number + number // 100
    return Record(offset, BEGIN_MS + number * 10 if number % 60 else 0, value, key, tuple(headers[: number % 4]))
