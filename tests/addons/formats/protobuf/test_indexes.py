"""Message indexes say which message type a record holds."""

import base64
from functools import cache

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.addons.formats.protobuf.compile import Compiled, compile_schema
from parquet_sink.addons.formats.protobuf.indexes import message_at, read, split
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import Referenced, RegisteredSchema
from tests.messages import saying
from tests.thorough import examples

NESTED = """
message First { map<string, int32> m = 1; optional group G = 2 { optional int32 x = 1; }
  enum E { A = 0; } message Inner { message Deep {} } message Other {} extensions 100 to 200; }
enum Between { B = 0; }
message Second { repeated TagsEntry t = 1; message TagsEntry { option map_entry = true; optional string key = 1;
  optional int32 value = 2; } message After {} }
"""


@cache
def compiled(text: str, *references: Referenced) -> Compiled:
    """A compiled schema."""
    return compile_schema(RegisteredSchema(1, "PROTOBUF", text, references))


def varint(number: int) -> bytes:
    """A zigzag varint, as the wire format has it."""
    number = (number << 1) ^ (number >> 31)
    data = b""
    while number >= 0x80:
        data += bytes([number & 0x7F | 0x80])
        number >>= 7
    return data + bytes([number])


def encode(indexes: list[int]) -> bytes:
    """Message indexes at length."""
    return varint(len(indexes)) + b"".join(map(varint, indexes))


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=6), st.binary(max_size=8))
@settings(deadline=None, max_examples=examples(100))
def test_indexes_are_read_back(indexes: list[int], payload: bytes) -> None:
    """Whatever indexes stand before a message are found, and where the message begins."""
    assert read(encode(indexes) + payload) == (tuple(indexes), len(encode(indexes)))


def test_a_single_zero_is_the_first_message() -> None:
    """The short form names the first message of the file."""
    assert read(b"\0abc") == ((0,), 1)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", "ends within"),
        (b"\x04\x00", "ends within"),
        (b"\x80", "ends within"),
        (b"\xff\xff\xff\xff\xff\x01", "32 bits"),
        (b"\x01", "-1 message indexes"),
        (varint(101), "101 message indexes"),
        (varint(2**31 - 1), "2147483647 message indexes"),
    ],
)
def test_illegible_indexes_are_invalid(value: bytes, said: str) -> None:
    """Indexes that end early, or are too many, are named."""
    with pytest.raises(InvalidValue, match=said):
        read(value)


@given(st.lists(st.tuples(st.sampled_from([b"\0", b"\x02\x00", b"\x02\x02", b"\x02", b""]), st.binary(max_size=3))))
@settings(deadline=None, max_examples=examples(150))
def test_splitting_finds_each_record_its_type(records: list[tuple[bytes, bytes]]) -> None:
    """Each value is in one group, with its own indexes and payload, or invalid, as if it had come alone."""
    values = [prefix + payload for prefix, payload in records]
    groups, invalid = split(pa.array([b"", *values], pa.binary()).slice(1))
    found = dict(invalid)
    for group in groups:
        assert group.positions.to_pylist() == sorted(group.positions.to_pylist())
        found |= {
            position: (group.indexes, payload)
            for position, payload in zip(group.positions.to_pylist(), group.payloads.to_pylist(), strict=True)
        }
    for position, value in enumerate(values):
        try:
            indexes, length = read(value)
            expected = (indexes, value[length:])
        except InvalidValue as error:
            expected = str(error)
        assert found[position] == expected
    assert len(found) == len(values)


@pytest.mark.parametrize(
    ("indexes", "name"),
    [
        ((0,), "First"),
        ((1,), "Second"),
        ((0, 0), "First.Inner"),
        ((0, 0, 0), "First.Inner.Deep"),
        ((0, 1), "First.Other"),
        ((1, 0), "Second.TagsEntry"),
        ((1, 1), "Second.After"),
    ],
)
def test_messages_are_counted_as_the_text_has_them(indexes: tuple[int, ...], name: str) -> None:
    """Enums, groups and what protoc adds for maps do not count; entries written as messages do."""
    assert message_at(compiled(NESTED), indexes).full_name == name


@pytest.mark.parametrize("indexes", [(2,), (-1,), (0, 2), (0, 0, 0, 0)])
def test_indexes_of_no_message_are_invalid(indexes: tuple[int, ...]) -> None:
    """Indexes that the schema does not have are named."""
    with pytest.raises(InvalidValue, match=saying("no message", "indexes", ", ".join(map(str, indexes)))):
        message_at(compiled(NESTED), indexes)


def test_a_schema_without_messages_has_none() -> None:
    """A file of enums has no message."""
    with pytest.raises(InvalidValue, match=saying("no message", "indexes 0")):
        message_at(compiled("enum E { A = 0; }"), (0,))


def test_a_file_that_only_imports_publicly_stands_for_the_imported_one() -> None:
    """As in Confluent's ProtobufSchema, `import public` alone gives the messages of that file."""
    reference = Referenced("x.proto", "message X {}")
    assert message_at(compiled('import public "x.proto";', reference), (0,)).full_name == "X"


def test_a_serialized_descriptor_counts_the_entries_of_maps() -> None:
    """Where the schema was registered as descriptors, entries of maps count as messages."""
    file = descriptor_pb2.FileDescriptorProto(name="x.proto", syntax="proto3")
    outer = file.message_type.add(name="M")
    outer.field.add(name="m", number=1, type=11, type_name=".M.MEntry", label=3)
    entry = outer.nested_type.add(name="MEntry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), 1):
        entry.field.add(name=name, number=number, type=9, label=1)
    outer.nested_type.add(name="Inner")
    text = base64.b64encode(file.SerializeToString()).decode()
    assert message_at(compiled(text), (0, 1)).full_name == "M.Inner"
