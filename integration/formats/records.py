"""One record with a bit of everything in every format, as producers write it, and what its converter is called."""

import base64
import datetime as dt
import json
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from integration.registry import RegistryServer
from integration.wire import encode_avro, encode_json, encode_protobuf

CONNECT: Final = "org.apache.kafka.connect"
JSON: Final = f"{CONNECT}.json.JsonConverter"
AVRO: Final = "io.confluent.connect.avro.AvroConverter"
PROTOBUF: Final = "io.confluent.connect.protobuf.ProtobufConverter"
JSON_SCHEMA: Final = "io.confluent.connect.json.JsonSchemaConverter"
XML: Final = "com.celonis.kafka.connect.ems.converter.XmlConverter"
STRING: Final = f"{CONNECT}.storage.StringConverter"
BYTES: Final = f"{CONNECT}.converters.ByteArrayConverter"
LONG: Final = f"{CONNECT}.converters.LongConverter"

WHEN: Final = dt.datetime(1969, 12, 31, 23, 59, 59, 250_000, dt.UTC)
DAY: Final = dt.date(1969, 12, 30)
AT: Final = dt.time(13, 5, 0, 1_000)
PRICE: Final = Decimal("-12.50")
Values = Callable[[RegistryServer, str], Sequence[bytes]]


@dataclass(frozen=True)
class Format:
    """values: the records of a topic, their schemas put into the registry. uses_registry: its converter needs one."""

    converter: str
    values: Values
    keys: Mapping[str, str] = field(default_factory=dict)
    uses_registry: bool = False

    def properties(self, registry: RegistryServer, side: str = "value") -> dict[str, str]:
        """What a connector or worker file says to have this converter for one side."""
        own = {f"{side}.converter": self.converter, **{f"{side}.converter.{k}": v for k, v in self.keys.items()}}
        return own | ({f"{side}.converter.schema.registry.url": registry.url} if self.uses_registry else {})


def record(name: str, /, **fields: object) -> dict[str, object]:
    """A record of an Avro schema."""
    return {"type": "record", "name": name, "fields": [{"name": key, "type": of} for key, of in fields.items()]}


CUSTOMER: Final = record("Customer", name="string", age=["null", "int"])
ORDER_AVRO: Final = record(
    "Order",
    id="long",
    note=["null", "string"],
    Amount="double",
    status={"type": "enum", "name": "Status", "symbols": ["OPEN", "PAID"]},
    customer=["null", CUSTOMER],
    tags={"type": "array", "items": "string"},
    counts={"type": "map", "values": "int"},
    raw="bytes",
    code={"type": "fixed", "name": "Code", "size": 2},
    price={"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    day={"type": "int", "logicalType": "date"},
    at={"type": "int", "logicalType": "time-millis"},
    placed={"type": "long", "logicalType": "timestamp-millis"},
    exactly={"type": "long", "logicalType": "timestamp-micros"},
    choice=["string", "int"],
    ok="boolean",
    small="float",
)


def avro(registry: RegistryServer, topic: str) -> list[bytes]:
    """Two records by Confluent's AvroSerializer."""
    full = {
        "id": 2**53 + 1,
        "note": "für Ada",
        "Amount": 0.1,
        "status": "PAID",
        "tags": ["x", "ü"],
        "counts": {"k": 1},
        "customer": {"name": "Ada", "age": 36},
        "raw": b"\x00\xff",
        "code": b"ab",
        "price": PRICE,
        "day": DAY,
        "at": AT,
        "placed": WHEN,
        "exactly": WHEN,
        "choice": 7,
        "ok": True,
        "small": 0.5,
    }
    bare = {**full, "id": -1, "note": None, "customer": None, "tags": [], "counts": {}, "choice": "seven"}
    return encode_avro(registry, topic, json.dumps(ORDER_AVRO), [full, bare])


ORDER_PROTO: Final = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
enum Status { OPEN = 0; PAID = 1; }
message Unused { string a = 1; }
message Order {
  message Customer { string name = 1; optional int32 age = 2; }
  int64 id = 1;
  optional string note = 2;
  double Amount = 3;
  Status status = 4;
  Customer customer = 5;
  repeated string tags = 6;
  map<string, int32> counts = 7;
  bytes raw = 8;
  uint32 unsigned = 9;
  google.protobuf.Timestamp placed = 10;
  oneof choice { string text = 11; int32 number = 12; }
  bool ok = 13;
  float small = 14;
}
"""


@cache
def message_class(text: str, name: str) -> Any:
    """The class of a message of a .proto file, by protoc."""
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "m.proto").write_text(text)
        known = Path(protoc.__file__).parent / "_proto"
        options = [f"-I{folder}", f"-I{known}", f"--descriptor_set_out={folder}/out", "--include_imports"]
        assert protoc.main([sys.executable, *options, "m.proto"]) == 0
        files = descriptor_pb2.FileDescriptorSet.FromString((Path(folder) / "out").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def protobuf(registry: RegistryServer, topic: str) -> list[bytes]:
    """Two messages, of the second type of their file."""
    order = message_class(ORDER_PROTO, "shop.Order")
    full = order(
        id=2**53 + 1,
        note="für Ada",
        Amount=0.1,
        status=1,
        tags=["x", "ü"],
        counts={"k": 1},
        customer={"name": "Ada", "age": 36},
        raw=b"\x00\xff",
        unsigned=2**32 - 1,
        number=7,
        ok=True,
        small=0.5,
    )
    full.placed.FromDatetime(WHEN)
    return encode_protobuf(registry, topic, ORDER_PROTO, [full, order(text="seven")])


ORDER_JSON: Final = {
    "type": "object",
    "title": "Order",
    "properties": {
        "id": {"type": "integer", "connect.index": 0},
        "note": {"oneOf": [{"type": "null"}, {"type": "string"}], "connect.index": 1},
        "Amount": {"type": "number", "connect.index": 2},
        "status": {"enum": ["OPEN", "PAID"], "connect.index": 3},
        "customer": {
            "oneOf": [{"type": "null"}, {"$ref": "#/definitions/Customer"}],
            "connect.index": 4,
        },
        "tags": {"type": "array", "items": {"type": "string"}, "connect.index": 5},
        "counts": {
            "type": "object",
            "connect.type": "map",
            "additionalProperties": {"type": "integer", "connect.type": "int32"},
            "connect.index": 6,
        },
        "price": {
            "type": "number",
            "title": f"{CONNECT}.data.Decimal",
            "connect.type": "bytes",
            "connect.parameters": {"scale": "2", "connect.decimal.precision": "9"},
            "connect.index": 7,
        },
        "day": {"type": "integer", "title": f"{CONNECT}.data.Date", "connect.type": "int32", "connect.index": 8},
        "ok": {"type": "boolean", "connect.index": 9},
        "tiny": {"type": "integer", "connect.type": "int8", "connect.index": 10},
    },
    "definitions": {
        "Customer": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "connect.index": 0},
                "age": {
                    "oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int32"}],
                    "connect.index": 1,
                },
            },
        }
    },
}


def json_schema(registry: RegistryServer, topic: str) -> list[bytes]:
    """Two documents in Confluent's framing."""
    full = {
        "id": 2**53 + 1,
        "note": "für Ada",
        "Amount": 1,
        "status": "PAID",
        "customer": {"name": "Ada", "age": 36},
        "tags": ["x", "ü"],
        "counts": {"k": 1},
        "price": -12.5,
        "day": -2,
        "ok": True,
        "tiny": -128,
    }
    bare = {**full, "id": -1, "note": None, "customer": None, "tags": [], "counts": {}, "more": "not in the schema"}
    return encode_json(registry, topic, json.dumps(ORDER_JSON), [full, bare])


def _connect(of: str, name: str = "", **more: object) -> dict[str, object]:
    return {"type": of, **({"name": f"{CONNECT}.data.{name}"} if name else {}), **more}


ORDER_CONNECT: Final[dict[str, dict[str, object]]] = {
    "id": _connect("int64"),
    "note": _connect("string", optional=True),
    "Amount": _connect("double"),
    "status": _connect("string", default="OPEN"),
    "customer": _connect(
        "struct",
        optional=True,
        fields=[_connect("string", field="name"), _connect("int32", optional=True, field="age")],
    ),
    "tags": _connect("array", items=_connect("string")),
    "counts": _connect("map", keys=_connect("string"), values=_connect("int32")),
    "raw": _connect("bytes"),
    "price": _connect("bytes", "Decimal", parameters={"scale": "2", "connect.decimal.precision": "9"}),
    "day": _connect("int32", "Date"),
    "at": _connect("int32", "Time"),
    "placed": _connect("int64", "Timestamp"),
    "ok": _connect("boolean"),
    "small": _connect("float"),
    "tiny": _connect("int8"),
    "short": _connect("int16"),
}


def envelope(registry: RegistryServer, topic: str) -> list[bytes]:
    """Two records as Connect's JsonConverter writes them."""
    fields = [{**schema, "field": name} for name, schema in ORDER_CONNECT.items()]
    schema = {"type": "struct", "name": "Order", "fields": fields}
    full = {
        "id": 2**53 + 1,
        "note": "für Ada",
        "Amount": 0.1,
        "status": "PAID",
        "tags": ["x", "ü"],
        "counts": {"k": 1},
        "customer": {"name": "Ada", "age": 36},
        "raw": base64.b64encode(b"\x00\xff").decode(),
        "day": -2,
        "price": base64.b64encode((-1250).to_bytes(2, "big", signed=True)).decode(),
        "placed": -750,
        "ok": True,
        "at": 47_100_001,
        "small": 0.5,
        "tiny": -128,
        "short": 32_767,
    }
    bare = {**full, "id": -1, "note": None, "customer": None, "tags": [], "counts": {}, "status": None}
    return [json.dumps({"schema": schema, "payload": payload}).encode() for payload in (full, bare)]


def plain(registry: RegistryServer, topic: str) -> list[bytes]:
    """JSON without a schema."""
    full = {"id": 2**53 + 1, "Amount": 0.1, "customer": {"name": "Ada", "age": 36}, "tags": ["x", "ü", 1, None]}
    return [json.dumps(one).encode() for one in (full, {"id": -1, "customer": None, "ok": True})]


def xml(registry: RegistryServer, topic: str) -> list[bytes]:
    """XML documents."""
    full = '<order id="7"><customer><name>Ada &amp; Co</name></customer><tag>x</tag><tag>ü</tag><none/></order>'
    return [full.encode(), b'<?xml version="1.0"?><order id="8"><!-- nothing --><tag>y</tag></order>']


def text(registry: RegistryServer, topic: str) -> list[bytes]:
    """Lines of text."""
    return ["grüße, Ada".encode(), b"", b"0123456789"]


def raw(registry: RegistryServer, topic: str) -> list[bytes]:
    """Bytes that are no text."""
    return [b"\x00\xff", b""]


def long(registry: RegistryServer, topic: str) -> list[bytes]:
    """Numbers as Connect's LongSerializer writes them."""
    return [struct.pack(">q", number) for number in (-1, 2**40)]


FORMATS: Final = {
    "json": Format(JSON, plain, {"schemas.enable": "false"}),
    "envelope": Format(JSON, envelope, {"schemas.enable": "true"}),
    "avro": Format(AVRO, avro, uses_registry=True),
    "protobuf": Format(PROTOBUF, protobuf, uses_registry=True),
    "json_schema": Format(JSON_SCHEMA, json_schema, uses_registry=True),
    "xml": Format(XML, xml),
    "string": Format(STRING, text),
    "bytes": Format(BYTES, raw),
    "long": Format(LONG, long),
}
