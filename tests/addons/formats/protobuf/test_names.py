"""Protobuf schemas whose names are also something of the library's messages, of Python's objects or of the language."""

import keyword
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import message_factory
from google.protobuf.message import Message

from parquet_sink.addons.formats.protobuf.compile import compile_schema
from parquet_sink.addons.formats.protobuf.decoder import decoder
from parquet_sink.addons.formats.protobuf.indexes import message_at
from parquet_sink.convert.decoded import Decoded, SchemaColumns
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.convert.settings import ConverterSettings
from tests.messages import assert_says

TAKEN = sorted({*dir(Message), *keyword.kwlist, *keyword.softkwlist, "Extensions", "mro", "__slots__", "__dict__"})

INNER = """
message Inner {
  optional string HasField = 1; optional int32 ByteSize = 2;
  oneof WhichOneof { int32 SerializeToString = 3; FromString DESCRIPTOR = 4; }
  optional FromString FromString_ = 5; map<string, FromString> Clear = 6;
}
message FromString { optional int32 ListFields = 1; oneof HasField { int32 IsInitialized = 2; } }
enum E { UNSET = 0; HasField = 1; mro = 2; None = 3; __class__ = 4; }
"""


def read(text: str, values: list[bytes], **changed: bool) -> Decoded:
    """What becomes of records of the first message."""
    schema = RegisteredSchema(1, "PROTOBUF", text)
    framed = [bytes([0]) + value for value in values]
    return decoder(schema, replace(ConverterSettings(kind="protobuf"), **changed)).decode(pa.array(framed, pa.binary()))


def rows(decoded: Decoded) -> list[dict[str, Any]]:
    """The rows of records that are all valid and of one message."""
    assert decoded.invalid == {}
    (piece,) = decoded.pieces
    assert isinstance(piece, SchemaColumns)
    found: list[dict[str, Any]] = piece.rows.to_pylist()
    return found


def message_class(text: str) -> Any:
    """The class of the first message."""
    return message_factory.GetMessageClass(message_at(compile_schema(RegisteredSchema(1, "PROTOBUF", text)), (0,)))


@pytest.mark.parametrize("count", [1, 4, 100])
@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_fields_may_have_any_name(syntax: str, count: int) -> None:
    """Fields named like methods and words are read, and are null where they are absent."""
    fields = " ".join(f"optional string {name} = {number};" for number, name in enumerate(TAKEN, 1))
    text = f'syntax = "{syntax}"; message M {{ {fields} }}'
    made = message_class(text)
    message = made()
    for name in TAKEN[::2]:
        setattr(message, name, f"{name}!")
    value = made.SerializeToString(message)
    expected = {name: None if number % 2 else f"{name}!" for number, name in enumerate(TAKEN)}
    assert rows(read(text, [value] * count)) == [expected] * count


@pytest.mark.parametrize("count", [1, 4, 100])
def test_names_below_may_be_any_name(count: int) -> None:
    """So it is for oneofs, nested messages, lists, maps and values of enums."""
    text = f'syntax = "proto3"; message M {{ Inner HasField = 1; repeated Inner a = 2; E WhichOneof = 3; }} {INNER}'
    made = message_class(text)
    message = made()
    inner = message.HasField
    inner.HasField, inner.DESCRIPTOR.ListFields, inner.Clear["k"].IsInitialized = "h", 3, 4
    message.a.add().SerializeToString = 5
    message.WhichOneof = 4
    value = made.SerializeToString(message)
    nothing = {"HasField": None, "ByteSize": None, "FromString_": None, "Clear": []}
    one = nothing | {"HasField": "h", "Clear": [("k", {"HasField_0": {"IsInitialized": 4}, "ListFields": None})]}
    one["WhichOneof_0"] = {"SerializeToString": None, "DESCRIPTOR": {"HasField_0": None, "ListFields": 3}}
    two = nothing | {"WhichOneof_0": {"SerializeToString": 5, "DESCRIPTOR": None}}
    assert rows(read(text, [value] * count)) == [{"HasField": one, "a": [two], "WhichOneof": "__class__"}] * count
    absent = {"HasField": None, "a": [], "WhichOneof": "UNSET"}
    assert rows(read(text, [b""] * count)) == [absent] * count


@pytest.mark.parametrize("count", [1, 100])
def test_oneofs_that_are_flattened_may_have_any_name(count: int) -> None:
    """The fields of a oneof are null where another one is chosen, whatever they are called."""
    text = 'syntax = "proto3"; message M { oneof WhichOneof { string HasField = 1; int32 ByteSize = 2; } }'
    made = message_class(text)
    value = made.SerializeToString(made(ByteSize=0))
    assert rows(read(text, [value] * count, flatten_unions=True)) == [{"HasField": None, "ByteSize": 0}] * count


@pytest.mark.parametrize("count", [1, 100])
def test_a_required_field_may_have_any_name(count: int) -> None:
    """Whether a message is complete is asked of its class, not of a field that is called so."""
    text = 'syntax = "proto2"; message M { required int32 IsInitialized = 1; optional int32 ByteSize = 2; }'
    values = [b"\x08\x07", b"\x08\x00", b"\x10\x01"] * count
    found = read(text, values)
    assert sorted(found.invalid) == list(range(2, 3 * count, 3))
    (why,) = set(found.invalid.values())
    assert_says(why, "lacks a required field", "message M")
    (piece,) = found.pieces
    assert piece.positions.to_pylist() == [at for at in range(3 * count) if at % 3 < 2]
