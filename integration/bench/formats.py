"""The same orders in every format that the sink reads, and what a connector file needs for each.

All formats carry the seven fields of `load.pool`; `nested` is a record of about 1 KB with 40 fields.
"""

import base64
import hashlib
import io
import json
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import fastavro
import requests

from integration.bench import load

REGISTRY_URL: Final = "value.converter.schema.registry.url"
CONVERTER: Final = "value.converter"
_TEXT_FIELDS: Final = ("customer", "status", "currency")
_AVRO_TYPES: Final = {"order_id": "long", "amount": "double", "quantity": "int"}
_CONNECT_TYPES: Final = {"order_id": "int64", "amount": "double", "quantity": "int32"}
_JSON_TYPES: Final = {"order_id": "integer", "amount": "number", "quantity": "integer"}
_PROTO_TYPES: Final = {"order_id": "int64", "amount": "double", "quantity": "int32", "updated_at": "int64"}
_FIELDS: Final = ("order_id", *_TEXT_FIELDS[:2], "amount", _TEXT_FIELDS[2], "quantity", "updated_at")
_MILLIS: Final = "updated_at"
Order = dict[str, Any]


@dataclass(frozen=True)
class Format:
    """values: from the registry's URL, so many records. keys: of the connector file, on top of the bench's own."""

    values: Callable[[str, int], Sequence[bytes]]
    keys: Mapping[str, str] = field(default_factory=dict)
    uses_registry: bool = False


def orders(count: int) -> list[Order]:
    """The orders of `load.pool`, as Python values."""
    return [json.loads(value) for value in load.pool(count)]


def plain(url: str, count: int) -> list[bytes]:
    """JSON without a schema."""
    return load.pool(count)


def avro(url: str, count: int) -> list[bytes]:
    """Avro in the wire format; the status is nullable, the time is a timestamp."""
    fields: list[dict[str, Any]] = [{"name": name, "type": _AVRO_TYPES.get(name, "string")} for name in _FIELDS]
    fields[2]["type"] = ["null", "string"]
    fields[-1]["type"] = {"type": "long", "logicalType": "timestamp-millis"}
    text = json.dumps({"type": "record", "name": "Order", "fields": fields})
    schema = fastavro.parse_schema(json.loads(text))
    head = _header(_register(url, "avro-value", "AVRO", text))

    def encode(order: Order) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, {**order, _MILLIS: _millis(order)})
        return head + out.getvalue()

    return [encode(order) for order in orders(count)]


def envelope(url: str, count: int) -> list[bytes]:
    """JSON with Kafka Connect's schema in each record, as JsonConverter writes it."""
    fields: list[dict[str, Any]] = [
        {"type": _CONNECT_TYPES.get(name, "string"), "optional": name == "status", "field": name} for name in _FIELDS
    ]
    fields[-1] = {
        "type": "int64",
        "optional": False,
        "name": "org.apache.kafka.connect.data.Timestamp",
        "version": 1,
        "field": _MILLIS,
    }
    schema = {"type": "struct", "fields": fields, "optional": False, "name": "Order"}
    head = json.dumps({"schema": schema}, separators=(",", ":"))[:-1].encode() + b',"payload":'
    return [head + _dumps({**order, _MILLIS: _millis(order)}) + b"}" for order in orders(count)]


def json_schema(url: str, count: int) -> list[bytes]:
    """JSON Schema in the wire format."""
    properties = {name: {"type": _JSON_TYPES.get(name, "string")} for name in _FIELDS}
    text = json.dumps({"type": "object", "title": "Order", "properties": properties, "required": list(_FIELDS)})
    head = _header(_register(url, "json-value", "JSON", text))
    return [head + _dumps(order) for order in orders(count)]


def protobuf(url: str, count: int) -> list[bytes]:
    """Protobuf in the wire format, the first message of its file."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = {"int64": 3, "double": 1, "int32": 5, "string": 9}
    lines, found = [], descriptor_pb2.FileDescriptorProto(name="order.proto", package="bench", syntax="proto3")
    message = found.message_type.add(name="Order")
    for number, name in enumerate(_FIELDS, 1):
        kind = _PROTO_TYPES.get(name, "string")
        lines.append(f"  {kind} {name} = {number};")
        message.field.add(name=name, number=number, type=kinds[kind], label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(found)
    order_class = message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Order"))
    text = 'syntax = "proto3";\npackage bench;\nmessage Order {\n' + "\n".join(lines) + "\n}\n"
    head = _header(_register(url, "protobuf-value", "PROTOBUF", text)) + b"\x00"
    return [head + order_class(**{**o, _MILLIS: _millis(o)}).SerializeToString() for o in orders(count)]


def nested(url: str, count: int) -> list[bytes]:
    """JSON without a schema, about 1 KB, 40 fields at four levels, one of them a list."""
    chance = random.Random(2)
    return [_dumps(_nested(order, chance)) for order in orders(count)]


def _nested(order: Order, chance: random.Random) -> Order:
    def text(size: int) -> str:
        return base64.b32encode(hashlib.sha256(chance.randbytes(8)).digest()).decode()[:size]

    address = {"street": text(18), "city": text(10), "zip": text(5), "country": "DE", "floor": chance.randrange(9)}
    person = {"name": text(16), "mail": text(24), "vip": chance.random() < 0.1, "address": address, "score": 0.5}
    items = [{"sku": text(8), "count": chance.randrange(9), "price": 9.99} for _ in range(2)]
    parcel = {"carrier": text(6), "weight": chance.random(), "express": False, "to": {**address, "note": None}}
    audit = {f"step_{number}": text(14) for number in range(12)}
    return {**order, "person": person, "items": items, "parcel": parcel, "audit": audit, "flags": {"a": True, "b": 1}}


def _dumps(value: Order) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _millis(order: Order) -> int:
    at = datetime.fromisoformat(order[_MILLIS]).astimezone(UTC)
    return int(at.timestamp() * 1000)


def _header(schema_id: int) -> bytes:
    return struct.pack(">bI", 0, schema_id)


def _register(url: str, subject: str, kind: str, text: str) -> int:
    body = {"schema": text, "schemaType": kind}
    answer = requests.post(f"{url}/subjects/{subject}/versions", json=body, timeout=30)
    answer.raise_for_status()
    return int(answer.json()["id"])


_CHUNKS: Final = {
    "connect.ems.flattener.jsonblob.chunks": "2",
    "connect.ems.data.fallback.varchar.length": "200",
    "connect.ems.data.primary.key": "kafkaPartitionOffset",
}


def _hidden(method: str) -> dict[str, str]:
    return {
        "connect.ems.obfuscation.fields": "customer,updated_at",
        "connect.ems.obfuscation.method": method,
        "connect.ems.obfuscation.sha512.salt": "pepper",
        "connect.ems.obfuscation.hmac.key": "a key of thirty-two bytes, at least",
    }


FORMATS: Final[Mapping[str, Format]] = {
    "json": Format(plain),
    "avro": Format(avro, {CONVERTER: "io.confluent.connect.avro.AvroConverter"}, uses_registry=True),
    "json_envelope": Format(envelope, {"value.converter.schemas.enable": "true"}),
    "json_schema": Format(
        json_schema, {CONVERTER: "io.confluent.connect.json.JsonSchemaConverter"}, uses_registry=True
    ),
    "protobuf": Format(protobuf, {CONVERTER: "io.confluent.connect.protobuf.ProtobufConverter"}, uses_registry=True),
    "string": Format(plain, {CONVERTER: "org.apache.kafka.connect.storage.StringConverter", **_CHUNKS}),
    "nested": Format(nested),
    "json_fix": Format(plain, _hidden("fix")),
    "json_sha256": Format(plain, _hidden("sha256")),
    "json_hmac": Format(plain, _hidden("hmac-sha256")),
}
"""By name. The last three obfuscate two columns, one with 20,000 distinct values, one with a value for each record."""
