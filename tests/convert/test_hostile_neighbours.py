"""Damaged records among good ones, of every format: what a record becomes depends on its bytes alone."""

import json
import random
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from parquet_sink.addons.formats.avro import decoder as avro_decoder
from parquet_sink.addons.formats.json_schema import decoder as json_schema
from parquet_sink.addons.formats.protobuf import decoder as protobuf_decoder
from parquet_sink.addons.formats.xml.decoder import XmlDecoder
from parquet_sink.addons.formats.xml.settings import XmlConverter
from parquet_sink.convert.decoded import Decoder, SchemaColumns
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json import envelope
from parquet_sink.convert.json.decoder import JsonTrees
from parquet_sink.convert.registry.registered import RegisteredDecoder, RegisteredSchema, SchemaKind
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.settings import ShapeSettings
from tests.factories import accepted

AVRO = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "s", "type": "string"},
        {"name": "l", "type": {"type": "array", "items": ["null", "long", "string"]}},
        {"name": "m", "type": {"type": "map", "values": "double"}},
        {"name": "d", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
        {"name": "n", "type": "long"},
    ],
}
JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "s": {"type": "string"},
        "f": {"type": "number"},
        "l": {"type": "array", "items": {"type": "integer"}},
        "d": {"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.parameters": {"scale": "2"}},
    },
}
UNIONS = {
    "type": "object",
    "properties": {"u": {"oneOf": [{"type": "string"}, {"type": "integer"}]}, "m": {"type": "object"}},
}
UNIONS["properties"]["m"]["additionalProperties"] = {"type": "string"}  # type: ignore[index]
PROTOBUF = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
message R { string s = 1; repeated int64 l = 2; map<string, int32> m = 3; google.protobuf.Timestamp t = 4;
repeated S r = 5; uint64 u = 6; oneof o { bool b = 7; bytes c = 8; } } message S { repeated int32 x = 1; }"""
ENVELOPE = {
    "type": "struct",
    "fields": [
        {"field": "a", "type": "int64"},
        {"field": "s", "type": "string", "optional": True},
        {"field": "f", "type": "double", "optional": True},
        {"field": "l", "type": "array", "items": {"type": "boolean"}, "optional": True},
        {
            "field": "d",
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2"},
            "optional": True,
        },
    ],
}
Draw = Callable[[random.Random], bytes]


class _Schemas:
    """A registry that knows one id."""

    def __init__(self, kind: SchemaKind, text: str) -> None:
        self._schema = RegisteredSchema(1, kind, text)

    def get(self, schema_id: int) -> RegisteredSchema:
        if schema_id != 1:
            raise InvalidValue(f"schema id {schema_id} is not registered")
        return self._schema


def registered(kind: SchemaKind, module: Any, text: str) -> Decoder:
    """The decoder of records that name a schema."""
    settings = ConverterSettings({"JSON": "json_schema"}.get(kind, kind.lower()))
    return RegisteredDecoder(
        _Schemas(kind, text), kind, lambda schema: module.decoder(schema, settings), 4, 10, clock=lambda: 0.0
    )


def zigzag(number: int) -> bytes:
    """An integer as Avro has it."""
    return varint((number << 1) ^ (number >> 63) & (2**64 - 1))


def varint(number: int) -> bytes:
    """An integer as Protobuf has it."""
    written = b""
    while number > 127:
        written += bytes([number & 127 | 128])
        number >>= 7
    return written + bytes([number])


def draw_avro(rng: random.Random) -> bytes:
    """A datum of AVRO."""
    text = rng.choice([b"", b"x", "é".encode()])
    items = [zigzag(0), zigzag(1) + zigzag(rng.randrange(10**12)), zigzag(2) + zigzag(2) + b"ab"]
    some = [rng.choice(items) for _ in range(rng.randrange(4))]
    entries = [zigzag(1) + b"k" + struct.pack("<d", rng.random()) for _ in range(rng.randrange(2))]
    blocks = [(zigzag(len(one)) + b"".join(one) if one else b"") + zigzag(0) for one in (some, entries)]
    decimal = rng.choice([zigzag(0), zigzag(1) + zigzag(2) + rng.randbytes(2)])
    return b"\0\0\0\0\1" + zigzag(len(text)) + text + b"".join(blocks) + decimal + zigzag(rng.randrange(2**50))


def draw_protobuf(rng: random.Random) -> bytes:
    """A message of PROTOBUF."""
    parts = [
        b"\x0a\x03abc",
        b"\x10" + varint(rng.randrange(2**63)),
        b"\x1a\x05\x0a\x01k\x10\x07",
        b"\x22\x05\x08" + varint(2**27 + rng.randrange(2**20)),
        b"\x2a\x04\x0a\x02\x01\x02",
        b"\x30" + varint(rng.randrange(2**64)),
        rng.choice([b"\x38\x01", b"\x42\x01\xff"]),
    ]
    return b"\0\0\0\0\1\0" + b"".join(rng.choice(parts) for _ in range(rng.randrange(6)))


def draw_fields(rng: random.Random) -> dict[str, object]:
    """An object of ENVELOPE and of JSON_SCHEMA."""
    fields = {
        "s": rng.choice(["", "é", 'a"b']),
        "f": rng.choice([1, 0.5, -0.0, 1e300, rng.random()]),
        "l": [[], [True], [True, False]][rng.randrange(3)],
        "d": rng.choice([1, 1.5, "Bg=="]),
    }
    return {"a": rng.randrange(10**9), **{name: value for name, value in fields.items() if rng.random() < 0.7}}


def draw_json(rng: random.Random) -> bytes:
    """Plain JSON."""
    return json.dumps({**draw_fields(rng), "o": {"x": None, "y": [{}]}}).encode()


def draw_envelope(rng: random.Random) -> bytes:
    """An envelope, now and then without a schema."""
    schema = ENVELOPE if rng.random() < 0.9 else None
    return json.dumps({"schema": schema, "payload": draw_fields(rng)}).encode()


def draw_json_schema(rng: random.Random) -> bytes:
    """A value of JSON_SCHEMA."""
    fields = draw_fields(rng)
    return b"\0\0\0\0\1" + json.dumps({**fields, "l": [1, 2][: rng.randrange(3)], "d": 0.25}).encode()


def draw_unions(rng: random.Random) -> bytes:
    """A value of UNIONS."""
    return b"\0\0\0\0\1" + json.dumps({"u": rng.choice(["q", 5]), "m": {"k": "v"}}).encode()


def draw_xml(rng: random.Random) -> bytes:
    """A document."""
    xsi = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    inner = rng.choice(['<n xsi:nil="true"/>', "t", "<![CDATA[x]]>", "", "<b/><b>2</b>"])
    return f'<r a="{rng.randrange(9)}" {xsi}><b>é&amp;x</b><c><d>1</d></c>{inner}</r>'.encode()


def draw_text(rng: random.Random) -> bytes:
    """Text."""
    return rng.choice(["", "é", "x" * 9]).encode()


FORMATS: dict[str, tuple[Callable[[], Decoder], Draw]] = {
    "json": (lambda: JsonTrees(anything=False), draw_json),
    "json_envelope": (lambda: envelope.decoder(ConverterSettings()), draw_envelope),
    "avro": (lambda: registered("AVRO", avro_decoder, json.dumps(AVRO)), draw_avro),
    "protobuf": (cache(lambda: registered("PROTOBUF", protobuf_decoder, PROTOBUF)), draw_protobuf),
    "json_schema": (lambda: registered("JSON", json_schema, json.dumps(JSON_SCHEMA)), draw_json_schema),
    "json_schema_unions": (lambda: registered("JSON", json_schema, json.dumps(UNIONS)), draw_unions),
    "xml": (lambda: XmlDecoder(XmlConverter()), draw_xml),
    "string": (lambda: decoder_for(ConverterSettings(kind="string")), draw_text),
    "long": (lambda: decoder_for(ConverterSettings(kind="long")), lambda rng: rng.randbytes(8)),
}
HUGE = (b"\xff" * 9 + b"\x01", b"\x80\xa8\xd6\xb9\x07", b"\xff\xff\xff\xff\x0f", b"\0" * 8, b"1e999999", b"[" * 150)


def damaged(rng: random.Random, value: bytes, other: bytes) -> bytes:
    """A record with bits flipped, cut, doubled, spliced with another, or with a length that cannot be."""
    found = bytearray(value or b"\0")
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(found) + 1)
        kind = rng.randrange(6)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del found[at:]
        elif kind == 2:
            found[at:at] = found[at : at + rng.randrange(1, 9)] * rng.randrange(1, 4)
        elif kind == 3:
            found[at:] = other[rng.randrange(len(other) + 1) :]
        elif kind == 4:
            found[at : at + 1] = rng.choice(HUGE)
        else:
            found[at:at] = rng.randbytes(rng.randrange(1, 5))
    return bytes(found)


def facts(decoder: Decoder, values: list[bytes]) -> dict[int, str]:
    """What became of each value, with its type; tombstones are not there."""
    decoded = decoder.decode(pa.array(values, pa.binary()))
    found = dict(decoded.invalid)
    for piece in decoded.pieces:
        rows = (
            [f"{piece.rows.type} {row}" for row in piece.rows.to_pylist()]
            if isinstance(piece, SchemaColumns)
            else piece.trees
        )
        for position, row in zip(piece.positions.to_pylist(), rows, strict=True):
            assert position not in found
            found[position] = repr(row)
    return found


def shaped(decoder: Decoder | None, values: list[bytes], settings: ShapeSettings) -> list[dict[str, object]]:
    """The rows up to the first record that has none, nulls left out."""
    block = RecordBatch.of("t", 0, range(len(values)), [0] * len(values), values)
    rows: list[dict[str, object]] = []
    try:
        for run in accepted(RowBuilder(settings, None, decoder), block):
            rows += run.rows.to_pylist()
    except InvalidRecord:
        pass
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_record_becomes_the_same_alone_and_among_others(name: str, seed: int) -> None:
    """However many are damaged, and in whatever company, each value is what its bytes say; nothing else is raised."""
    make, draw = FORMATS[name]
    rng = random.Random(f"{name} {seed}")
    for share in (0.01, 0.3, 1.0):
        whole = [draw(rng) for _ in range(300)]
        values = [damaged(rng, one, rng.choice(whole)) if rng.random() < share else one for one in whole]
        decoder = make()
        found = facts(decoder, values)
        for position in rng.sample(range(len(values)), 40):
            assert facts(decoder, [values[position]]).get(0) == found.get(position)
        good = [position for position, value in enumerate(values) if value == whole[position]]
        again = facts(make(), [values[position] for position in good])
        assert [found.get(position) for position in good] == [again.get(index) for index in range(len(good))]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("flatten", [True, False])
def test_damaged_records_have_a_row_or_a_reason(name: str, flatten: bool) -> None:
    """A block ends at its first invalid record, and has the rows before it as if the block had ended there."""
    make, draw = FORMATS[name]
    rng = random.Random(f"{name} {flatten}")
    settings = ShapeSettings(flatten=flatten, embed_metadata=False)
    decoder = None if name == "json" else make()
    for _ in range(12):
        values = [draw(rng) for _ in range(30)]
        values[rng.randrange(10, 30)] = damaged(rng, values[0], values[1])
        rows = shaped(decoder, values, settings)
        assert shaped(decoder, values[:10], settings) == rows[:10]


@pytest.mark.parametrize("name", FORMATS)
def test_random_bytes(name: str) -> None:
    """Noise, empty values, and values of NULs and of 0xff have a row or a reason."""
    make, _ = FORMATS[name]
    rng = random.Random(name)
    values = [rng.randbytes(rng.randrange(60)) for _ in range(300)]
    values += [b"\0\0\0\0\1" + rng.randbytes(rng.randrange(60)) for _ in range(300)]
    values += [b"", b"\0", b"\0" * 5, b"\0\0\0\0\1", b"\xff" * 100, b"\0" * 100, b"null", b"{}", b"[]", b'""', b"<a/>"]
    decoder = make()
    found = facts(decoder, values)
    assert [facts(decoder, [value]).get(0) for value in values[-11:]] == [
        found.get(position) for position in range(len(values) - 11, len(values))
    ]
