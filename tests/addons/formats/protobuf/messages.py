"""Random Protobuf messages, what each becomes alone by the definition, and what becomes of a batch."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from parquet_sink.addons.formats.protobuf import decoder as protobuf_decoder
from parquet_sink.addons.formats.protobuf.columns import row
from parquet_sink.addons.formats.protobuf.compile import compile_schema
from parquet_sink.addons.formats.protobuf.indexes import message_at, read
from parquet_sink.addons.formats.protobuf.plan import plan
from parquet_sink.addons.formats.protobuf.values import Plan, UnrepresentableValue
from parquet_sink.convert.decoded import Decoded, Decoder, SchemaColumns
from parquet_sink.convert.invalid import InvalidValue, Unfit
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.convert.settings import ConverterSettings

DEFAULTS = ConverterSettings(kind="protobuf")

FIELDS = """
  {o}int32 f1 = 1; {o}sint32 f2 = 2; {o}sfixed32 f3 = 3; {o}uint32 f4 = 4; {o}fixed32 f5 = 5; {o}int64 f6 = 6;
  {o}sint64 f7 = 7; {o}sfixed64 f8 = 8; {o}uint64 f9 = 9; {o}fixed64 f10 = 10; {o}float f11 = 11; {o}double f12 = 12;
  {o}bool f13 = 13; {o}string f14 = 14; {o}bytes f15 = 15; {o}E f16 = 16; {o}Inner f17 = 17;
  repeated sint64 r1 = 31; repeated string r2 = 32; repeated E r3 = 33; repeated Inner r4 = 34;
  repeated bytes r5 = 35; repeated double r6 = 36; repeated fixed64 r7 = 37;
  map<string, string> m1 = 41; map<int64, Inner> m2 = 42; map<bool, E> m3 = 43; map<uint64, double> m4 = 44;
  repeated PairEntry m5 = 45;
  oneof pick {{ int32 o1 = 51; string o2 = 52; Inner o3 = 53; google.protobuf.Timestamp o4 = 54; }}
  oneof other {{ bool o5 = 55; }}
  {o}google.protobuf.Timestamp w1 = 61; {o}google.type.Date w2 = 62; {o}google.type.TimeOfDay w3 = 63;
  {o}confluent.type.Decimal w4 = 64 [(confluent.field_meta) = {{ params: [{{ key: "scale", value: "3" }}] }}];
  {o}google.protobuf.StringValue w5 = 65; {o}google.protobuf.UInt64Value w6 = 66; {o}google.protobuf.Duration w7 = 67;
  repeated google.protobuf.Timestamp w8 = 68; {o}google.protobuf.Empty w9 = 69;
  {o}google.protobuf.Struct j1 = 81; repeated google.protobuf.Value j2 = 82; {o}google.protobuf.ListValue j3 = 83;
  repeated google.type.Date j4 = 84; map<string, google.type.TimeOfDay> j5 = 85;
  message Inner {{ {o}int32 a = 1; {o}string b = 2; repeated Leaf leaves = 3; oneof c {{ uint64 d = 4; Leaf e = 5; }} }}
  message Leaf {{ {o}double x = 1; repeated int32 ys = 2; map<string, google.protobuf.Timestamp> at = 3; }}
  message PairEntry {{ {o}string key = 1; {o}Inner value = 2; }}
  enum E {{ A = 0; B = 1; C = 5; }}
"""
IMPORTS = "".join(
    f'import "{name}.proto"; '
    for name in (
        *("google/protobuf/timestamp", "google/protobuf/duration", "google/protobuf/empty", "google/type/date"),
        *("google/protobuf/wrappers", "google/type/timeofday", "confluent/meta", "confluent/type/decimal"),
        "google/protobuf/struct",
    )
)
PROTO3 = f'syntax = "proto3"; {IMPORTS} message Rich {{ {FIELDS.format(o="")} optional int32 p = 71; }}'
PROTO3 += " message Small { int32 x = 1; }"
PROTO2 = f'syntax = "proto2"; {IMPORTS} message Rich {{ {FIELDS.format(o="optional ")} required int32 p = 71; }}'
PROTO2 += " message Small { required int32 x = 1; }"
EDITION = f'edition = "2023"; {IMPORTS} message Rich {{ {FIELDS.format(o="")} int32 p = 71 [default = 7]; '
EDITION += "int32 q = 72 [features.field_presence = IMPLICIT]; C c = 73; repeated C cs = 74; } "
EDITION += "message Small { int32 x = 1; } enum C { option features.enum_type = CLOSED; P = 0; Q = 1; R = 9; }"
SIMPLE = 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message M { int32 a = 1; N n = 2; } '
SIMPLE += "message N { repeated google.protobuf.Timestamp at = 1; }"

VARIANTS: tuple[dict[str, bool], ...] = (
    {},
    {"flatten_unions": True, "int_for_enums": True, "optional_for_nullables": True},
    {"index_for_unions": False, "optional_for_proto2": False, "wrapper_for_nullables": True},
    {"wrapper_for_raw_primitives": False},
)


@cache
def compiled(text: str) -> Any:
    """A compiled schema."""
    return compile_schema(RegisteredSchema(1, "PROTOBUF", text))


@cache
def decoding(text: str, variant: int) -> Decoder:
    """A decoder, kept as its caller keeps it."""
    return protobuf_decoder._ProtobufDecoder(compiled(text), replace(DEFAULTS, **VARIANTS[variant]))


def message_class(text: str, index: int = 0) -> Any:
    """The class of a message of the schema."""
    return message_factory.GetMessageClass(message_at(compiled(text), (index,)))


def scalar(field: Any, chance: random.Random) -> Any:
    """A value of a scalar field, extremes preferred."""
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        text = chance.choice(["", "a", "größe", "\0", "𝄞 clef", "x" * 40])
        return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
    if kind in {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}:
        return chance.choice([0.0, -0.0, 1.5, float("inf"), float("nan"), -2.25])
    if kind in {FieldDescriptor.CPPTYPE_BOOL, FieldDescriptor.CPPTYPE_ENUM}:
        return chance.choice([0, 1])
    bits = 32 if kind in {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32} else 64
    if kind in {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64}:
        return chance.choice([0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), chance.randrange(1000)])
    if bits == 64 and chance.random() < 0.03:
        return 2**63
    return chance.choice([0, 1, 2 ** min(bits, 63) - 1, chance.randrange(1000)])


def known(message: Any, name: str, chance: random.Random) -> bool:
    """Fill a message that is one value; mostly one that fits."""
    wild = chance.random() < 0.02
    if name.endswith("Timestamp"):
        message.seconds = 2**60 if wild else chance.choice([0, -1, 1_700_000_000, -62_135_596_800])
        message.nanos = chance.choice([0, 1, 999_999_999])
    elif name.endswith("type.Date"):
        message.year, message.month, message.day = (
            chance.choice([0 if wild else 1, 1969, 2024]),
            2,
            0 if chance.random() < 0.1 else chance.randint(1, 30 if wild else 28),
        )
    elif name.endswith("TimeOfDay"):
        message.hours, message.seconds = chance.choice([24, 25]) if wild else chance.randrange(24), chance.randrange(60)
    elif name.endswith("type.Decimal"):
        message.value, message.scale = (
            chance.choice([b"\0", b"\x7f\xff", b"\xff\x01"]),
            9 if wild else chance.randint(0, 3),
        )
    else:
        return False
    return True


def fill(message: Any, chance: random.Random, density: float, depth: int = 0) -> Any:
    """Random values in random fields."""
    if known(message, message.DESCRIPTOR.full_name, chance):
        return message
    for field in message.DESCRIPTOR.fields:
        if not field.is_required and chance.random() > density:
            continue
        for _ in range(chance.randint(0, 3) if field.is_repeated else 1):
            fill_field(message, field, chance, density, depth)
    return message


def fill_field(message: Any, field: Any, chance: random.Random, density: float, depth: int) -> None:
    """One value in one field."""
    target = getattr(message, field.name) if field.is_repeated or field.message_type else None
    if field.message_type and field.message_type.GetOptions().map_entry:
        key_field, value_field = field.message_type.fields
        key = scalar(key_field, chance)
        if value_field.message_type:
            fill(target[key], chance, density, depth + 1)
        else:
            target[key] = scalar(value_field, chance)
    elif field.message_type:
        below = target.add() if field.is_repeated else target
        below.SetInParent()
        fill(below, chance, density / (depth + 1), depth + 1)
    elif field.is_repeated:
        target.append(scalar(field, chance))
    else:
        setattr(message, field.name, scalar(field, chance))


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Bytes with a small damage."""
    if not data:
        return b"\xff"
    at = chance.randrange(len(data))
    how = chance.randrange(3)
    if how == 0:
        return data[:at]
    if how == 1:
        return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
    return data[:at] + bytes(chance.randrange(256) for _ in range(chance.randint(1, 3))) + data[at:]


def records(text: str, seed: int, count: int, damage: float) -> list[bytes]:
    """Random records of the schema's messages, some damaged."""
    chance = random.Random(seed)
    values = []
    for _ in range(count):
        index = int(chance.random() < 0.1)
        density = chance.choice([0.05, 0.3, 0.8])
        value = bytes([0] if index == 0 else [2, 2])
        value += fill(message_class(text, index)(), chance, density).SerializePartialToString()
        values.append(mutated(value, chance) if chance.random() < damage else value)
    return values


@cache
def planned(text: str, variant: int, indexes: tuple[int, ...]) -> Plan:
    """The plan of a message type."""
    return plan(compiled(text), message_at(compiled(text), indexes), replace(DEFAULTS, **VARIANTS[variant]))


@cache
def planned_parts(text: str, variant: int, indexes: tuple[int, ...], as_parts: frozenset[str]) -> Plan:
    """The plan of a message type with the parts of some dates and times."""
    return plan(compiled(text), message_at(compiled(text), indexes), replace(DEFAULTS, **VARIANTS[variant]), as_parts)


def alone(text: str, variant: int, value: bytes) -> tuple[pa.DataType, object] | str | list[str]:
    """What one record becomes, by the definition; a list has what its reason says."""
    try:
        indexes, length = read(value)
        how = planned(text, variant, indexes)
        message = how.message.FromString(value[length:])
        if how.required and not message.IsInitialized():
            return ["lacks a required field", how.name]
        as_parts: frozenset[str] = frozenset()
        while True:
            try:
                array = pa.array([row(how.shape, message)], how.shape.arrow)
                break
            except UnrepresentableValue as unrepresentable:
                as_parts |= {unrepresentable.field}
                how = planned_parts(text, variant, indexes, as_parts)
    except DecodeError:
        return ["not a Protobuf message", how.name]
    except (InvalidValue, Unfit) as error:
        return str(error)
    return how.shape.arrow, repr(array.to_pylist()[0])


def together(decoded: Decoded) -> dict[int, object]:
    """What each record became, by position."""
    found: dict[int, object] = dict(decoded.invalid)
    for piece in decoded.pieces:
        assert isinstance(piece, SchemaColumns)
        piece.rows.validate(full=True)
        positions = piece.positions.to_pylist()
        assert positions == sorted(positions)
        assert piece.rows.null_count == 0
        for position, value in zip(positions, piece.rows.to_pylist(), strict=True):
            assert position not in found
            found[position] = (piece.rows.type, repr(value))
    return found


def decode(text: str, variant: int, values: Sequence[bytes]) -> dict[int, object]:
    """What each record of a batch becomes."""
    return together(decoding(text, variant).decode(pa.array(values, pa.binary())))
