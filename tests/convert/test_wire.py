"""The wire format: which schema a value names, and why it names none."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.registry.registered import Group, split
from tests.messages import assert_says
from tests.thorough import examples


def values(*items: bytes) -> pa.BinaryArray:
    """Binary values without nulls."""
    return pa.array(items, pa.binary())


def record(schema_id: int, payload: bytes, id_bytes: int = 4) -> bytes:
    """A value in the wire format."""
    return b"\0" + schema_id.to_bytes(id_bytes, "big") + payload


def told(found: tuple[list[Group], dict[int, str]], count: int) -> list[tuple[int, bytes] | str]:
    """For each value what became of it: id and payload, or the reason. Each value is told once."""
    result: dict[int, tuple[int, bytes] | str] = {}
    for group in found[0]:
        places = list(group.places())
        assert places == sorted(places)
        assert len(places) == len(group.payloads)
        for place, payload in zip(places, group.payloads.to_pylist(), strict=True):
            assert place not in result
            result[place] = (group.schema_id, payload)
    assert not result.keys() & found[1].keys()
    result |= found[1]
    assert sorted(result) == list(range(count))
    return [result[place] for place in range(count)]


def reason(value: bytes, id_bytes: int = 4) -> str:
    """Why a value alone is invalid."""
    found = split(values(value), id_bytes)
    assert not found[0]
    return found[1][0]


def test_one_schema_is_one_group_without_positions() -> None:
    """The common case: all values name the same schema."""
    [group] = split(values(record(7, b"a"), record(7, b""), record(7, b"ccc")), 4)[0]
    assert (group.schema_id, group.positions, group.payloads.to_pylist()) == (7, None, [b"a", b"", b"ccc"])
    assert list(group.places()) == [0, 1, 2]


def test_no_values_no_groups() -> None:
    """An empty block is nothing."""
    assert split(values(), 4) == ([], {})


def test_several_schemas_keep_their_order() -> None:
    """Groups have increasing positions, and invalid values stay apart."""
    found = split(values(record(9, b"a"), record(2, b"b"), b"{}", record(9, b"c"), b"", record(2, b"d")), 4)
    assert {g.schema_id: (list(g.places()), g.payloads.to_pylist()) for g in found[0]} == {
        9: ([0, 3], [b"a", b"c"]),
        2: ([1, 5], [b"b", b"d"]),
    }
    assert sorted(found[1]) == [2, 4]


def test_ids_of_eight_bytes() -> None:
    """Apicurio's serializers write ids of 8 bytes by default."""
    [group] = split(values(record(2**40 + 1, b"x", 8)), 8)[0]
    assert (group.schema_id, group.payloads.to_pylist()) == (2**40 + 1, [b"x"])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"", ("is empty",)),
        (b"\0\0\0\1", ("4 bytes", "too few")),
        (b"\0", ("1 bytes", "too few")),
        (b'{"a":1}', ("0x7b", "JSON", "without a schema id")),
        (b"[1]", ("0x5b", "JSON")),
        (b'"text"', ("0x22", "JSON")),
        (b"<a/>", ("0x3c", "XML")),
        (b"\x1f\x8b\x08\0\0\0", ("0x1f8b", "gzip")),
        (b"\x28\xb5\x2f\xfd\0", ("zstd",)),
        (b"Obj\x01\x04", ("Avro container file",)),
        (b"\x01\0\0\0\1x", ("0x01",)),
        (b"\x1f", ("0x1f",)),
        (b"\0\xff\0\0\1x", ("id", "negative")),
    ],
)
def test_reasons(value: bytes, words: tuple[str, ...]) -> None:
    """What is wrong is said with the first byte and what it looks like, alone and among good values."""
    assert_says(reason(value), *words)
    assert split(values(record(1, b"a"), value, record(1, b"b")), 4)[1] == {1: reason(value)}


def test_header_without_payload_is_a_record() -> None:
    """A record without fields may have no bytes: that is for the format to judge."""
    assert told(split(values(record(3, b"")), 4), 1) == [(3, b"")]


def test_positions_of_a_group_are_found_among_all_values() -> None:
    """What a decoder says of the second of a group is said of where that stood."""
    within = pa.array([1], pa.int64())
    assert Group(1, values(b"", b""), pa.array([4, 6], pa.int64())).placed(within).to_pylist() == [6]
    assert Group(1, values(b"", b"")).placed(within).to_pylist() == [1]


def test_ten_thousand_schemas() -> None:
    """Each value with a schema of its own is still told apart."""
    ids = [index * 7919 % 10_000 for index in range(10_000)]
    found = split(values(*(record(each, each.to_bytes(2, "big")) for each in ids)), 4)
    assert told(found, 10_000) == [(each, each.to_bytes(2, "big")) for each in ids]


HEADERS = st.sampled_from([b"", b"\0", b"\0\0\0\0\1", b"\0\0\0\0\2", b"\0\0\0\1\0", b"\0\x80\0\0\0", b"{", b"\x1f\x8b"])


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.builds(bytes.__add__, HEADERS, st.binary(max_size=12)), max_size=30),
    st.sampled_from([4, 8]),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_every_value_is_judged_alone(items: list[bytes], id_bytes: int, before: int, after: int) -> None:
    """Whatever stands beside a value, and in whichever slice of an array it is, it has one fate: its own."""
    wide = values(*[b"\0junk"] * before, *items, *[b"more"] * after)
    found = told(split(wide.slice(before, len(items)), id_bytes), len(items))
    for item, fate in zip(items, found, strict=True):
        if isinstance(fate, str):
            assert fate == reason(item, id_bytes)
        else:
            assert item == record(fate[0], fate[1], id_bytes)
