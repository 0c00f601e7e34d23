"""Records that have no row, in every format, each with what the error must say; none may show its content.

The good records of a topic are as `good` writes them; a case is made of one of them, or of nothing at all.
"""

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka.schema_registry.serde import SchemaId

from integration.formats.records import CONNECT, message_class, record
from integration.registry import RegistryServer, Stored
from integration.wire import encode_avro, encode_json, encode_protobuf, framed
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.settings.sink import SinkSettings
from tests.factories import accepted

CANARY: Final = "canary-4711"
_DEEP: Final = 100_000
_WIDE: Final = 2_501
_EVENT: Final = json.dumps(record("Event", id="long", text="string"))
_EVENT_JSON: Final = json.dumps({"properties": {"id": {"type": "integer"}, "text": {"type": "string"}}})
_PROTO: Final = 'syntax = "proto3";\nmessage Event { int64 id = 1; string text = 2; }\n'
_CONNECT_FIELDS: Final[list[dict[str, Any]]] = [{"type": "int32", "field": "id"}, {"type": "string", "field": "text"}]


@dataclass(frozen=True)
class Bad:
    """value: from the registry and a good record. reason: parts of the message."""

    value: Callable[[RegistryServer, bytes], bytes]
    reason: tuple[str, ...]


def met(settings: SinkSettings, values: Sequence[bytes]) -> tuple[int, InvalidRecord]:
    """How many rows come before the invalid record, and what is said of it."""
    shaper = RowBuilder(settings.shape, None, decoder_for(settings.value))
    count = 0
    try:
        for run in accepted(shaper, RecordBatch.of("t", 0, range(len(values)), [0] * len(values), values)):
            count += run.records
    except InvalidRecord as error:
        return count, error
    raise AssertionError("no record is invalid")


def good(kind: str, registry: RegistryServer, topic: str, count: int) -> Sequence[bytes]:
    """So many records with an `id` and a `text`, numbered from 0."""
    rows = [{"id": n, "text": CANARY} for n in range(count)]
    if kind == "avro":
        return encode_avro(registry, topic, _EVENT, rows)
    if kind == "json_schema":
        return encode_json(registry, topic, _EVENT_JSON, rows)
    if kind == "protobuf":
        event = message_class(_PROTO, "Event")
        return encode_protobuf(registry, topic, _PROTO, [event(**row) for row in rows])
    return [_written(kind, row) for row in rows]


def _written(kind: str, row: dict[str, Any]) -> bytes:
    """A record of a kind that needs no registry."""
    if kind == "json":
        return json.dumps(row).encode()
    if kind == "json_envelope":
        return _enveloped(_CONNECT_FIELDS, row)
    if kind == "xml":
        return f'<e id="{row["id"]}"><text>{CANARY}</text></e>'.encode()
    return str(row["id"]).encode() if kind == "string" else int(row["id"]).to_bytes(8)


def _enveloped(fields: Sequence[dict[str, Any]], payload: object) -> bytes:
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()


def _as(value: bytes, *reason: str) -> Bad:
    return Bad(lambda registry, good: value, reason)


def _payload(change: Callable[[bytes], bytes], *reason: str) -> Bad:
    """The good record, changed behind its schema id."""
    return Bad(lambda registry, good: good[:5] + change(good[5:]), reason)


def _schema(kind: str, text: str, payload: bytes, *reason: str) -> Bad:
    """A payload under a schema of its own."""

    def value(registry: RegistryServer, good: bytes) -> bytes:
        schema_id = len(registry.registered.schemas) + 1
        registry.registered.schemas[schema_id] = Stored(kind, text)  # past the checks of a registry
        return framed(payload, SchemaId(kind, schema_id, message_indexes=[0] if kind == "PROTOBUF" else None))

    return Bad(value, reason)


def _in_record(name: str, of: object) -> str:
    return json.dumps(record(name, x=of))


def _nested_avro(levels: int) -> str:
    made: object = "string"
    for level in range(levels):
        made = record(f"R{level}", x=made)
    return json.dumps(made)


def _nested_json(levels: int) -> str:
    made: dict[str, object] = {"type": "string"}
    for _ in range(levels):
        made = {"type": "object", "properties": {"x": made}}
    return json.dumps(made)


def _nested_connect(levels: int) -> bytes:
    made: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        made = {"type": "struct", "fields": [{**made, "field": "x"}]}
    return json.dumps({"schema": made, "payload": {}}).encode()


def _doubling_avro() -> str:
    """Forty named records that each hold the one before twice."""
    made = record("R0", x="string")
    for level in range(1, 40):
        made = record(f"R{level}", a=made, b=f"R{level - 1}")
    return json.dumps(made)


def _doubling_json() -> str:
    held = {f"d{n}": {"properties": {key: {"$ref": f"#/definitions/d{n + 1}"} for key in "ab"}} for n in range(40)}
    return json.dumps({"$ref": "#/definitions/d0", "definitions": {**held, "d40": {"type": "string"}}})


def _doubling_proto() -> str:
    messages = "".join(f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}\n" for n in range(40))
    return f'syntax = "proto3";\n{messages}message M40 {{ string x = 1; }}\n'


_LAUGHS: Final = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
_BOMB: Final = f'<!DOCTYPE e [<!ENTITY l0 "{CANARY}">{_LAUGHS}]><e id="1"><text>&l9;</text></e>'
_OUTSIDE: Final = '<!DOCTYPE e [<!ENTITY x SYSTEM "file:///etc/passwd">]><e id="1"><text>&x;</text></e>'
_GZIPPED: Final = gzip.compress(b'{"id": 1, "text": "canary-4711"}')
_DEEP_JSON: Final = b'{"x":' * _DEEP + b"1" + b"}" * _DEEP

_WIRE: Final = {
    "magic": Bad(lambda registry, good: b"\x01" + good[1:], ("begins with 0x01",)),
    "gzip": _as(_GZIPPED, "begins with 0x1f8b", "gzip"),
    "plain JSON": _as(b'{"id": 1, "text": "canary-4711"}', "looks like JSON", "without a schema id"),
    "empty": _as(b"", "the value is empty"),
    "short": _as(b"\x00\x00\x00", "3 bytes", "too few"),
    "unknown id": Bad(lambda registry, good: b"\x00\x00\x00\x27\x0f" + good[5:], ("schema id 9999", "not registered")),
}
_AVRO: Final = {
    **_WIRE,
    "truncated": _payload(lambda datum: datum[:-3], "is cut off"),
    "trailing": _payload(lambda datum: datum + CANARY.encode(), "11 bytes more"),
    "no datum": _payload(lambda datum: b"", "is cut off"),
    "other kind": _schema("JSON", "{}", b"{}", "registered as JSON", "reads AVRO"),
    "no schema": _schema("AVRO", '{"type": "nonsense"}', b"", "it cannot be used"),
    "other schema": _schema("AVRO", _in_record("A", "boolean"), b"\x0e", "field x", "a boolean", "neither 0 nor 1"),
    "not UTF-8": _schema("AVRO", _in_record("B", "string"), b"\x04\xff\xfe", "field x", "not UTF-8"),
    "endless text": _schema("AVRO", _in_record("C", "string"), b"\xfe\xff\xff\xff\x7f", "field x", "is cut off"),
    "endless list": _schema(
        "AVRO", _in_record("D", {"type": "array", "items": "null"}), b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00", "x"
    ),
    "recursive": _schema(
        "AVRO", json.dumps(record("Node", next=["null", "Node"])), b"\x00", "type Node", "contains itself"
    ),
    "deep schema": _schema("AVRO", _nested_avro(101), b"\x00", "100 levels"),
    "wide schema": _schema(
        "AVRO",
        json.dumps(record("W", **{f"f{n}": "boolean" for n in range(_WIDE)})),
        b"\x00" * _WIDE,
        "2500 columns",
    ),
    "bottomless schema": _schema(
        "AVRO", '{"type":"array","items":' * 5_000 + '"int"' + "}" * 5_000, b"\x00", "it cannot be used"
    ),
    "no record": _schema("AVRO", '"long"', b"\x02", "not a record but"),
}
_RECURSIVE_PROTO: Final = 'syntax = "proto3";\nmessage Node { Node next = 1; }\n'
_PROTOBUF: Final = {
    **_WIRE,
    "truncated": _payload(lambda message: message[:-3], "not a Protobuf message", "Event"),
    "trailing": _payload(lambda message: message + b"\xff\xff", "not a Protobuf message", "Event"),
    "other kind": _schema("AVRO", '"long"', b"\x00", "registered as AVRO", "reads PROTOBUF"),
    "no schema": _schema("PROTOBUF", "message {", b"", "Protobuf schema", "not compile"),
    "no such message": Bad(lambda registry, good: good[:5] + b"\x02\x08" + good[6:], ("no message", "indexes 4")),
    "not UTF-8": Bad(lambda registry, good: good[:6] + b"\x12\x02\xff\xfe", ("not a Protobuf message", "Event")),
    "doubling schema": _schema("PROTOBUF", _doubling_proto(), b"", "more than 5,000 fields"),
    "recursive": _schema("PROTOBUF", _RECURSIVE_PROTO, b"\n\x00", "message Node", "recursive"),
}
_JSON_SCHEMA: Final = {
    **_WIRE,
    "truncated": _payload(lambda document: document[:-3], "not JSON"),
    "trailing": _payload(lambda document: document + CANARY.encode(), "not JSON"),
    "zipped": _payload(gzip.compress, "not JSON"),
    "not UTF-8": _payload(lambda document: b'{"id": 1, "text": "\xff\xfe"}', "not JSON"),
    "text for a number": _payload(
        lambda document: b'{"id": "canary-4711"}', "field id is text", "a whole number (int64)"
    ),
    "deep": _payload(lambda document: _DEEP_JSON, "depth limit exceeded"),
    "other kind": _schema("AVRO", '"long"', b"\x00", "registered as AVRO", "reads JSON"),
    "no schema": _schema("JSON", '{"type": 7}', b"{}", "the JSON Schema", "a type that"),
    "deep schema": _schema("JSON", _nested_json(101), b"{}", "100 levels"),
    "doubling schema": _schema("JSON", _doubling_json(), b"{}", "more than 2,500 fields"),
    "bottomless schema": _schema("JSON", _nested_json(300), b"{}", "100 levels"),
    "wide schema": _schema(
        "JSON", json.dumps({"properties": {f"f{n}": {"type": "string"} for n in range(_WIDE)}}), b"{}", "2,500"
    ),
    "no record": _schema("JSON", '{"type": "integer"}', b"1", "not a record but"),
}
_ENVELOPE: Final = {
    "no envelope": _as(b'{"id": 1, "text": "canary-4711"}', "not an envelope"),
    "gzip": _as(_GZIPPED, "not JSON"),
    "empty": _as(b"", "empty"),
    "truncated": Bad(lambda registry, good: good[:-3], ("not JSON",)),
    "trailing": Bad(lambda registry, good: good + CANARY.encode(), ("not JSON",)),
    "not UTF-8": Bad(lambda registry, good: good.replace(CANARY.encode(), b"\xff\xfe"), ("not JSON",)),
    "text for a number": _as(_enveloped(_CONNECT_FIELDS, {"id": CANARY, "text": ""}), "field id is text"),
    "too large": _as(_enveloped(_CONNECT_FIELDS, {"id": 2**31, "text": ""}), "field id is beyond", "int32"),
    "missing": _as(_enveloped(_CONNECT_FIELDS, {"text": CANARY}), "field id is missing"),
    "no type": _as(_enveloped([{"type": "int7", "field": "id"}], {"id": 1}), "Connect does not know"),
    "deep": _as(b'{"schema": null, "payload": ' + _DEEP_JSON + b"}", "depth limit exceeded"),
    "deep schema": _as(_nested_connect(101), "the schema", "deeper than 100 levels"),
    "wide schema": _as(
        _enveloped([{"type": "int32", "optional": True, "field": f"f{n}"} for n in range(_WIDE)], {}), "2,500"
    ),
    "no record": _as(json.dumps({"schema": {"type": "int32"}, "payload": 1}).encode(), "not a record but"),
    "bad decimal": _as(
        _enveloped(
            [{"type": "bytes", "name": f"{CONNECT}.data.Decimal", "parameters": {"scale": "2"}, "field": "d"}],
            {"d": CANARY},
        ),
        "field d is not base64",
    ),
}
_XML: Final = {
    "billion laughs": _as(_BOMB.encode(), "a document type", "not allowed"),
    "external entity": _as(_OUTSIDE.encode(), "a document type", "not allowed"),
    "unknown entity": _as(b'<e id="1">&nbsp;</e>', "not XML"),
    "truncated": Bad(lambda registry, good: good[:-3], ("not XML",)),
    "trailing": Bad(lambda registry, good: good + CANARY.encode(), ("not XML",)),
    "not UTF-8": Bad(lambda registry, good: good.replace(CANARY.encode(), b"\xff\xfe"), ("not XML",)),
    "JSON": _as(b'{"id": 1, "text": "canary-4711"}', "not XML"),
    "gzip": _as(_GZIPPED, "not XML"),
    "empty": _as(b"", "the value is empty"),
    "deep": _as(b"<e>" * _DEEP + b"</e>" * _DEEP, "nested deeper than 100 levels"),
    "wide": _as(b"<e>" + b"".join(b"<f%d>1</f%d>" % (n, n) for n in range(_WIDE)) + b"</e>", "2,501 columns"),
    "only text": _as(b"<e>canary-4711</e>", "neither attributes nor child elements"),
}
_STRING: Final = {
    "not UTF-8": _as(b"canary-4711\xff", "UTF-8"),
    "too long": _as(CANARY.encode() * 3, "text has 33 bytes"),
}
_LONG: Final = {"not eight bytes": _as(b"\x00\x01", "has 2 bytes", "value.converter=LongConverter", "asks for 8")}
_PLAIN: Final = {
    "gzip": _as(_GZIPPED, "not JSON"),
    "deep": _as(_DEEP_JSON, "not JSON"),
    "deep list": _as(b'{"x":' + b"[" * _DEEP + b"]" * _DEEP + b"}", "not JSON"),
    "wide": _as(json.dumps({f"f{n}": n for n in range(_WIDE)}).encode(), "2,501 columns"),
}
BAD: Final[dict[str, dict[str, Bad]]] = {
    "json": _PLAIN,
    "avro": _AVRO,
    "protobuf": _PROTOBUF,
    "json_schema": _JSON_SCHEMA,
    "json_envelope": _ENVELOPE,
    "xml": _XML,
    "string": _STRING,
    "long": _LONG,
}
