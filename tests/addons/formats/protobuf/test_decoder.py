"""Batches of Protobuf records: each becomes what it would become alone, whatever stands beside it."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parquet_sink.addons.formats.protobuf import columns as protobuf_columns
from parquet_sink.addons.formats.protobuf import decoder as protobuf_decoder
from parquet_sink.addons.formats.protobuf.columns import row
from parquet_sink.addons.formats.protobuf.compile import compile_schema
from parquet_sink.addons.formats.protobuf.decoder import decoder
from parquet_sink.addons.formats.protobuf.indexes import message_at, read
from parquet_sink.addons.formats.protobuf.plan import plan
from parquet_sink.addons.formats.protobuf.values import Plan, UnrepresentableValue
from parquet_sink.convert.decoded import Decoded, Decoder, SchemaColumns
from parquet_sink.convert.invalid import InvalidValue, Unfit
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.convert.settings import ConverterSettings
from tests.messages import assert_says
from tests.thorough import examples

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


@given(
    st.sampled_from([PROTO3, PROTO2, EDITION]),
    st.integers(0, len(VARIANTS) - 1),
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.sampled_from([0.0, 0.0, 0.03, 0.5]),
)
@example(PROTO2, 0, 4754, 21, 0.5)  # a map whose only key is no UTF-8
@settings(deadline=None, max_examples=examples(80))
def test_a_batch_is_its_records(text: str, variant: int, seed: int, count: int, damage: float) -> None:
    """Random records, some damaged, become together what each becomes alone: rows, reasons, types."""
    values = records(text, seed, count, damage)
    found = decode(text, variant, values)
    assert sorted(found) == list(range(len(values)))
    for position, value in enumerate(values):
        expected = alone(text, variant, value)
        if isinstance(expected, list):
            assert_says(found[position], *expected)
        else:
            assert found[position] == expected


@given(st.integers(0, 2**32), st.lists(st.integers(1, 30), min_size=1, max_size=4))
@settings(deadline=None, max_examples=examples(25))
def test_batches_may_be_cut_anywhere(seed: int, lengths: list[int]) -> None:
    """The same records in other batches become the same."""
    values = records(PROTO3, seed, sum(lengths), 0.05)
    found: list[tuple[int, object]] = []
    start = 0
    for length in lengths:
        batch = decode(PROTO3, 0, values[start : start + length])
        found += [(start + position, what) for position, what in batch.items()]
        start += length
    assert dict(found) == decode(PROTO3, 0, values)


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 3))
@settings(deadline=None, max_examples=examples(25))
def test_chunks_and_pieces_do_not_show(seed: int, chunk: int, piece: int) -> None:
    """How many records and elements are in memory at once changes nothing."""
    values = records(PROTO3, seed, 30, 0.02)
    expected = decode(PROTO3, 1, values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protobuf_decoder, "CHUNK", chunk)
        patch.setattr(protobuf_columns, "PIECE", piece)
        assert decode(PROTO3, 1, values) == expected


@given(st.lists(st.binary(max_size=40), max_size=12))
@settings(deadline=None, max_examples=examples(100))
def test_any_bytes_are_a_row_or_invalid(values: list[bytes]) -> None:
    """Bytes of any kind never raise, and each value is in one place."""
    assert sorted(decode(PROTO2, 0, [b"\0" + value for value in values])) == list(range(len(values)))


def test_no_records_are_no_pieces() -> None:
    """An empty batch has nothing."""
    assert decoding(SIMPLE, 0).decode(pa.array([], pa.binary())) == Decoded()


def test_empty_messages_are_rows() -> None:
    """A message of no bytes has the defaults of all fields."""
    found = decode(SIMPLE, 0, [b"\0"] * 9)
    assert [what[1] for what in found.values() if isinstance(what, tuple)] == ["{'a': 0, 'n': None}"] * 9


NO_MESSAGE = ("not a Protobuf message", "message M")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", ("ends within", "message indexes")),
        (b"\x02\x08", ("schema has no message", "indexes 4")),
        (b"\x00\x0a\x05ab", NO_MESSAGE),
        (b"\x00\xff", NO_MESSAGE),
        (b"\x00\x12\x04\x0a\x02\x10\xff", NO_MESSAGE),
        (b"\x00\x12\x08\x0a\x06\x10\x80\x94\xeb\xdc\x03", ("field n.at[0]", "timestamp", "1 to 9999")),
        (b"\x00" + b"\x0b" * 200 + b"\x0c" * 200, NO_MESSAGE),
    ],
)
def test_one_bad_record_does_not_touch_its_neighbours(value: bytes, said: tuple[str, ...]) -> None:
    """A bad record is named, alone or among good ones, and these are rows."""
    good = b"\x00\x08\x05"
    (one,) = decode(SIMPLE, 0, [value]).values()
    assert_says(one, *said)
    found = decode(SIMPLE, 0, [good] * 20 + [value] + [good] * 20)
    assert found.pop(20) == one
    assert {what[1] for what in found.values() if isinstance(what, tuple)} == {"{'a': 5, 'n': None}"}
    assert len(found) == 40


def test_text_that_is_not_utf8_is_invalid() -> None:
    """Proto3 refuses it when it parses; in proto2 the field is named, in keys of maps as well."""
    damaged = b"\x00\x72\x01\xff"
    assert_says(decode(PROTO3, 0, [damaged])[0], "not a Protobuf message", "Rich")
    required = b"\xb8\x04\x00"
    assert_says(decode(PROTO2, 0, [damaged + required])[0], "field f14", "UTF-8")
    keys = b"\x00\xca\x02\x03\x0a\x01a\xca\x02\x03\x0a\x01\xff"
    found = decode(PROTO2, 0, [keys + required, *[b"\x00" + required] * 9])
    assert_says(found.pop(0), "field m1.key", "UTF-8")
    assert all(isinstance(what, tuple) for what in found.values())


def test_a_large_record_that_fails_is_named() -> None:
    """A bad timestamp in a list of many makes the record invalid, named without its position."""
    payload = message_class(SIMPLE)(a=1)
    payload.n.at.extend([type(payload.n.at.add())(seconds=1)] * 40_000)
    payload.n.at.add(seconds=2**50)
    values = [b"\0" + payload.SerializeToString(), b"\0"]
    found = decode(SIMPLE, 0, values)
    assert_says(found[0], "field n.at ", "timestamp", "1 to 9999")
    assert isinstance(found[1], tuple)


def test_a_record_of_megabytes_is_a_row() -> None:
    """A message of 10 MB is read."""
    text = 'syntax = "proto3"; message M { string a = 1; repeated int32 b = 2; }'
    payload = message_class(text)(a="x" * 10_000_000, b=range(1000))
    rows = decoding(text, 0).decode(pa.array([b"\0" + payload.SerializeToString()], pa.binary())).pieces[0].rows
    assert (len(rows[0]["a"].as_py()), len(rows[0]["b"])) == (10_000_000, 1000)


def test_a_type_without_columns_makes_its_records_invalid() -> None:
    """Records of a recursive message are invalid, those of another message of the schema are rows."""
    text = 'syntax = "proto3"; message M { M m = 1; } message N { int32 x = 1; }'
    found = decode(text, 0, [b"\0", b"\x02\x02\x08\x01", b"\0"])
    assert found[0] == found[2]
    assert_says(found[0], "message M", "recursive", "field m)", "no column")
    assert isinstance(found[1], tuple)


def test_a_record_that_is_a_wrapper_is_a_scalar() -> None:
    """Records of a wrapper type are handed on as what they hold."""
    text = 'syntax = "proto3"; import public "google/protobuf/wrappers.proto";'
    found = decode(text, 0, [b"\x02\x06\x08" + b"\xff" * 9 + b"\x01", b"\x02\x06\x08\x05", *[b"\x02\x06"] * 9])
    assert_says(found.pop(0), "integer", "64 bits")
    assert found[1] == (pa.int64(), "5")
    assert found[10] == (pa.int64(), "0")


def test_a_schema_that_does_not_compile_is_invalid() -> None:
    """The decoder of a schema that is no Protobuf is refused when it is made."""
    with pytest.raises(InvalidValue, match="does not compile"):
        decoder(RegisteredSchema(1, "PROTOBUF", '{"type": "record"}'), DEFAULTS)
