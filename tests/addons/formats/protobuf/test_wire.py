"""Messages that are read in C, against the same messages by the library, one by one."""

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.addons.formats.protobuf import wire
from parquet_sink.process.native import SWITCH
from tests.addons.formats.protobuf.messages import (
    PROTO3,
    VARIANTS,
    alone,
    decode,
    fill,
    message_class,
    mutated,
    planned,
)
from tests.messages import assert_says
from tests.thorough import examples

EXTENSION: Any = wire.extension()
pytestmark = pytest.mark.skipif(EXTENSION is None, reason="it was not built")
FIELDS = """
  {o}int32 f1 = 1; {o}sint32 f2 = 2; {o}sfixed32 f3 = 3; {o}uint32 f4 = 4; {o}fixed32 f5 = 5; {o}int64 f6 = 6;
  {o}sint64 f7 = 7; {o}sfixed64 f8 = 8; {o}uint64 f9 = 9; {o}fixed64 f10 = 10; {o}float f11 = 11; {o}double f12 = 12;
  {o}bool f13 = 13; {o}string f14 = 14; {o}bytes f15 = 15; {o}E f16 = 16; {o}Inner f17 = 17;
  repeated sint64 r1 = 31 {p}; repeated string r2 = 32; repeated E r3 = 33 {p}; repeated Inner r4 = 34;
  repeated bytes r5 = 35; repeated double r6 = 36 {p}; repeated fixed64 r7 = 37 {p}; repeated bool r8 = 38 {p};
  oneof pick {{ int32 o1 = 51; string o2 = 52; Inner o3 = 53; google.protobuf.Timestamp o4 = 54; }}
  oneof other {{ bool o5 = 55; }}
  {o}google.protobuf.Timestamp w1 = 61; repeated google.protobuf.Timestamp w2 = 62;
  {o}google.protobuf.StringValue w5 = 65; {o}google.protobuf.UInt64Value w6 = 66; {o}google.protobuf.Duration w7 = 67;
  repeated google.protobuf.FloatValue w8 = 68; {o}google.protobuf.BoolValue w10 = 70;
  message Inner {{ {o}int32 a = 1; {o}string b = 2; repeated Leaf leaves = 3; oneof c {{ uint64 d = 4; Leaf e = 5; }} }}
  message Leaf {{ {o}double x = 1; repeated int32 ys = 2 {p}; }}
  enum E {{ A = 0; B = 1; C = 5; }}
"""
IMPORTS = "".join(f'import "google/protobuf/{name}.proto"; ' for name in ("timestamp", "duration", "wrappers"))


def written(syntax: str, optional: str, packed: str) -> str:
    """The schema as text. packed: an option of lists of numbers."""
    return f"{syntax}; {IMPORTS} message Plain {{ {FIELDS.format(o=optional, p=packed)} }}"


SCHEMAS = (
    written('syntax = "proto3"', "", ""),
    written('syntax = "proto3"', "optional ", ""),
    written('syntax = "proto2"', "optional ", ""),
    written('edition = "2023"', "", ""),
)
AS_PACKED = [written('syntax = "proto3"', "", f"[packed = {packed}]") for packed in ("true", "false")]


@pytest.fixture(autouse=True)
def turned_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be used."""
    monkeypatch.setenv(SWITCH, "1")


def encoded(chance: random.Random, text: str) -> bytes:
    """A message as a producer writes it."""
    return bytes(fill(message_class(text)(), chance, chance.choice([0.05, 0.3, 0.8])).SerializePartialToString())


def odd(chance: random.Random) -> bytes:
    """A message as it may be written, too: fields twice, of other types, unknown ones, in no order; or damaged."""
    texts = chance.choices([*AS_PACKED, *SCHEMAS, PROTO3], [4, 4, 1, 1, 1, 1, 2], k=chance.choice([1, 1, 2]))
    value = b"".join(encoded(chance, text) for text in texts)
    return mutated(value, chance) if chance.random() < 0.4 else value


@given(
    st.sampled_from(SCHEMAS),
    st.integers(0, len(VARIANTS) - 1),
    st.integers(0, 2**32),
    st.integers(1, 30),
    st.sampled_from([0.0, 0.05, 0.5]),
)
@settings(deadline=None, max_examples=examples(150))
def test_what_c_gives_is_what_the_library_gives(text: str, variant: int, seed: int, count: int, share: float) -> None:
    """Rows and reasons of each record, whatever stands beside it."""
    chance = random.Random(seed)
    values = [b"\x00" + (odd(chance) if chance.random() < share else encoded(chance, text)) for _ in range(count)]
    found = decode(text, variant, values)
    assert sorted(found) == list(range(count))
    for position, value in enumerate(values):
        expected = alone(text, variant, value)
        if isinstance(expected, list):
            assert_says(found[position], *expected)
        else:
            assert found[position] == expected


@given(st.sampled_from([*AS_PACKED, SCHEMAS[1]]), st.integers(0, 2**32), st.booleans())
@settings(deadline=None, max_examples=examples(50))
def test_plain_messages_are_read_in_c(text: str, seed: int, sliced: bool) -> None:
    """None is left to the library but for what a column has no room for: packed lists and others, any order."""
    chance = random.Random(seed)
    values = [encoded(chance, text) for _ in range(20)]
    plan = planned(text, 0, (0,)).wire
    assert plan is not None
    array = pa.array([b"\xff", *values, b"\xff"] if sliced else values, pa.binary()).slice(int(sliced), len(values))
    found = plan.read(array)
    assert found is not None
    rows, left = found
    rows.validate(full=True)
    assert len(rows) == np.count_nonzero(~left)
    for at in np.flatnonzero(left).tolist():
        assert isinstance(alone(text, 0, b"\x00" + values[at]), str), values[at]


ODD = (
    'syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto"; message M { '
    "int64 a = 1; string b = 2; N n = 3; google.protobuf.Timestamp t = 4; repeated int32 l = 5; oneof o { int32 x = 6; "
    "string y = 7; } google.protobuf.StringValue w = 8; fixed64 f = 9; bool z = 10; } message N { string c = 1; "
    "repeated N2 m = 2; } message N2 { string d = 1; }"
)


@pytest.mark.parametrize(
    "value",
    [
        b"\x12\x01a\x12\x01b",
        b"\x08\x01\x08\x02",
        b"\x1a\x03\x0a\x01a\x1a\x03\x0a\x01b",
        b"\x1a\x06\x0a\x01a\x0a\x01b",
        b"\x1a\x04\x12\x02\x0a\x00\x1a\x04\x12\x02\x0a\x00",
        b"\x22\x02\x08\x01\x22\x02\x10\x01",
        b"\x22\x04\x08\x01\x08\x02",
        b"\x22\x0b\x08\xff\x91\xb8\xc3\x98\xfe\xff\xff\xff\x01",
        b"\x22\x0b\x08" + b"\xff" * 9 + b"\x01",
        b"\x22\x0b\x10" + b"\xff" * 9 + b"\x01",
        b"\x22\x06\x10\x80\x94\xeb\xdc\x03",
        b"\x30\x01\x3a\x01a",
        b"\x3a\x01a\x30\x01",
        b"\x30\x01\x30\x02",
        b"\x42\x06\x0a\x01a\x0a\x01b",
        b"\x42\x03\x0a\x01a\x42\x00",
        b"\x42\x02\x08\x01",
        b"\x08" + b"\xff" * 9 + b"\x02",
        b"\x08" + b"\x80" * 9 + b"\x01",
        b"\x08" + b"\x80" * 10 + b"\x01",
        b"\x88\x80\x80\x80\x00\x01",
        b"\x88\x80\x80\x80\x10\x01",
        b"\x00\x01",
        b"\x08\x80\x00",
        b"\x2a\x02\x01\x80",
        b"\x2a\x02\x01\x02\x28\x03\x08\x01\x2a\x00\x28\x04",
        b"\x2d\x01\x02\x03\x04",
        b"\x50\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
        b"\x49" + b"\xff" * 8,
        b"\x49\x01\x02",
        b"\xa3\x06\x08\x01\xa4\x06",
        b"\xa3\x06\x08\x01",
        b"\xa4\x06",
        b"\xa6\x06",
        b"\xa2\x06\x05abc",
        b"\xa2\x06\x03abc\x12\x03a\xc3\xa9",
        b"\x12\x0babcdefgh\xff\x00\x00",
        b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a",
    ],
)
def test_a_message_that_is_written_otherwise_is_as_the_library_has_it(value: bytes) -> None:
    """Fields twice, numbers and tags of too many bytes, other wire types, groups and lengths; its neighbours stay."""
    values = [b"\x00\x12\x01a\x2a\x01\x01", b"\x00" + value, b"\x00\x12\x01b\x28\x02"]
    for position, became in decode(ODD, 0, values).items():
        expected = alone(ODD, 0, values[position])
        if isinstance(expected, list):
            assert_says(became, *expected)
        else:
            assert became == expected


@pytest.mark.parametrize(
    "fields",
    [
        "map<string, int32> m = 1;",
        "repeated group G = 1 { optional int32 a = 1; }",
        "required int32 r = 1;",
        'optional string d = 1 [default = "x"];',
        "extensions 100 to 199;",
    ],
)
def test_some_types_are_left_to_the_library(fields: str) -> None:
    """At any depth."""
    text = f'syntax = "proto2"; message M {{ optional N n = 1; }} message N {{ optional int32 x = 9; {fields} }}'
    assert planned(text, 0, (0,)).wire is None
    assert planned(text, 0, (1,)).wire is None


def test_an_enum_has_its_default() -> None:
    """The first number of proto2 is that which is absent, or another that the schema says."""
    text = 'syntax = "proto2"; enum E { A = 3; B = -1; } '
    text += "message M { optional E a = 1; optional E b = 2 [default = B]; repeated E c = 3; }"
    values = [b"\x00", b"\x00\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x18\x03", b"\x00\x10\x03\x18\x05"]
    for variant in range(2):
        assert decode(text, variant, values) == {at: alone(text, variant, value) for at, value in enumerate(values)}
    plan = planned(text, 0, (0,)).wire
    assert plan is not None
    found = plan.read(pa.array([value[1:] for value in values], pa.binary()))
    assert found is not None
    assert found[1].tolist() == [False, False, True]


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """PARQUET_SINK_NATIVE=0 is looked at each time."""
    plan = planned(SCHEMAS[0], 0, (0,)).wire
    assert plan is not None
    assert plan.read(pa.array([b""], pa.binary())) is not None
    monkeypatch.setenv(SWITCH, "0")
    assert plan.read(pa.array([b""], pa.binary())) is None


@pytest.mark.parametrize("wrong", [(-1, 1), (0, 3), (0, -1), (2, 1)])
def test_values_that_are_not_there_are_refused(wrong: tuple[int, int]) -> None:
    """Nothing beyond the buffers is read."""
    _, offsets, data = pa.array([b"\x08\x01"] * 2, pa.binary()).buffers()
    fields = ((1, 0, False, False, -1, (), ()),)
    with pytest.raises(ValueError, match="not so many"):
        EXTENSION.read(fields, data, offsets, *wrong)
    with pytest.raises(ValueError, match="not so many"):
        EXTENSION.read(fields, data, np.array([0, 9, 99], np.int32).tobytes(), 0, 2)
    with pytest.raises(ValueError, match="no field"):
        EXTENSION.read(((1, 99, False, False, -1, (), ()),), data, offsets, 0, 2)
