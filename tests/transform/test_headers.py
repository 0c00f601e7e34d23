"""Headers are decoded where somebody asks, and change without a look at values nobody asked for."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.convert.connect_values.settings import SIMPLE_HEADER
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.convert.json.decoder import JsonTrees
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.model.records import Header as RawHeader
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.model.rejected import Stage
from parquet_sink.transform import headers as record_headers
from parquet_sink.transform.chain import Step, TransformChain
from parquet_sink.transform.headers import ABSENT, NULL, Header, Headers
from tests.messages import assert_says
from tests.transform.doubles import DropAll, Identity

RawHeaders = Sequence[Sequence[RawHeader]]
NAMES = st.sampled_from(["a", "b", ""])
RAW = st.lists(st.lists(st.tuples(NAMES, st.sampled_from([None, b"", b"1", b"x", b"[]"])), max_size=4), max_size=6)


def batch(headers: Sequence[Sequence[RawHeader] | None]) -> RecordBatch:
    """Records of these headers."""
    count = len(headers)
    return RecordBatch.of("orders", 0, range(count), [1] * count, [b'{"a":1}'] * count, None, headers)


def of(headers: RawHeaders, names: frozenset[str] | None = None) -> Headers:
    """Decoded by SimpleHeaderConverter."""
    raw = batch(headers).headers
    assert raw is not None
    found, bad = record_headers.decoded(raw, SIMPLE_HEADER.open(), names)
    assert not bad
    return found


def listed(headers: Headers) -> list[list[tuple[str, object]]]:
    """Names and plain values, record by record."""
    return [[(name, plain(value)) for name, value in headers[at]] for at in range(len(headers))]


def plain(value: object) -> object:
    """A scalar's Python value, a tree itself."""
    return value.as_py() if isinstance(value, pa.Scalar) else value


def test_values_are_decoded() -> None:
    """Each record has its headers in their order; names may repeat, null has no type, what is mixed is a tree."""
    found = of([[("n", b"12"), ("n", b"x")], [], [("null", None), ("mixed", b'[1,"a"]')]])
    assert found[0] == (Header("n", pa.scalar(12, pa.int8())), Header("n", pa.scalar("x")))
    assert found[1] == ()
    assert found[2] == (Header("null", NULL), Header("mixed", [1, "a"]))


def test_what_nobody_asks_for_is_bytes() -> None:
    """Only headers of the names asked for are decoded."""
    found = of([[("a", b"1"), ("b", b"1")]], frozenset({"b"}))
    assert listed(found) == [[("a", b"1"), ("b", 1)]]


@pytest.mark.parametrize(
    ("kind", "value", "decoded"),
    [
        ("string", b"12", pa.scalar("12")),
        ("bytes", b"12", pa.scalar(b"12")),
        ("short", b"\x00\x0c", pa.scalar(12, pa.int32())),
        ("json", b'{"a":[1]}', {"a": [1]}),
        ("json", b"12", pa.scalar(12, pa.int64())),
        ("json", b"null", NULL),
        ("json_envelope", b'{"schema":{"type":"int64"},"payload":5}', pa.scalar(5, pa.int64())),
        ("simple_header", b"12", pa.scalar(12, pa.int8())),
    ],
)
def test_every_converter_decodes_headers(kind: str, value: bytes, decoded: object) -> None:
    """The header converter may be any that keys and values have."""
    seen = Identity(RecordParts(headers=True))
    chain = TransformChain([Step(seen)], None, decoder_for(ConverterSettings(kind)))
    chain.apply(batch([[("h", value)]]), JsonTrees(anything=False))
    assert seen.seen[0].headers is not None
    assert seen.seen[0].headers[0] == (Header("h", decoded),)  # type: ignore[arg-type]


def test_a_header_that_cannot_be_decoded_rejects_its_record() -> None:
    """The reason names the first such header and the key of the file; the other records go on."""
    chain = TransformChain([Step(Identity(RecordParts(headers=True)))], None, decoder_for(ConverterSettings("short")))
    bad: list[RawHeader] = [("fine", b"\0\1"), ("h", b"abc"), ("i", b"abc")]
    found = chain.apply(batch([[("h", b"\0\1")], bad, [], None]), JsonTrees(anything=False))
    assert found.positions.to_pylist() == [0, 2]
    stage, reason = found.rejected[1]
    assert stage is Stage.HEADER_CONVERTER
    assert_says(reason, 'header "h"', "cannot be decoded", "3 bytes", "header.converter=")
    assert found.rejected[3][0] is Stage.HEADER_CONVERTER


def test_a_header_that_nobody_asks_for_rejects_no_record() -> None:
    """Where only some names are looked at, others may hold what they like."""
    asked = Identity(RecordParts(headers=True, header_values=frozenset({"h"})))
    chain = TransformChain([Step(asked)], None, decoder_for(ConverterSettings("short")))
    found = chain.apply(batch([[("h", b"\0\1"), ("x", b"abc")]]), JsonTrees(anything=False))
    assert not found.rejected


def test_what_is_asked_for_adds_up() -> None:
    """Names of both; all where one of them asks for all; who asks for no headers does not count."""
    some, others = (RecordParts(headers=True, header_values=frozenset({one})) for one in "ab")
    assert (some | others).header_values == {"a", "b"}
    assert (some | RecordParts(headers=True)).header_values is None
    assert (some | RecordParts(keys=True)).header_values == {"a"}
    assert (RecordParts() | some).header_values == {"a"}


@given(RAW, NAMES)
def test_looking_and_changing(raw: RawHeaders, name: str) -> None:
    """Whether there is a header, the last one, all others, and one more, as lists of pairs would have it."""
    headers = of(raw)
    pairs = listed(headers)
    own = [[value for key, value in one if key == name] for one in pairs]
    assert headers.has(name).to_pylist() == [bool(one) for one in own]
    last = headers.last(name).tolist()
    assert [plain(headers.value(at)) if at != ABSENT else None for at in last] == [
        one[-1] if one else None for one in own
    ]
    assert listed(headers.without([name])) == [[pair for pair in one if pair[0] != name] for one in pairs]
    assert listed(headers.with_one(name, pa.scalar(7))) == [[*one, (name, 7)] for one in pairs]


@given(RAW, st.lists(st.booleans(), min_size=6, max_size=6))
def test_parts_that_changed_differently_come_together(raw: RawHeaders, mask: list[bool]) -> None:
    """Some records with one header more, the others with another, each in its place."""
    headers = of(raw)
    chosen = np.array(mask[: len(raw)], np.bool_)
    some, others = (
        headers.with_one("x", pa.scalar(1)),
        headers.with_each("y", np.flatnonzero(~chosen), [pa.scalar(f"{at}") for at in np.flatnonzero(~chosen)]),
    )
    found = listed(some.where(pa.array(chosen), others))
    for at, pairs in enumerate(listed(headers)):
        assert found[at] == [*pairs, ("x", 1) if chosen[at] else ("y", f"{at}")]


def test_headers_are_not_decoded_after_the_last_record_went() -> None:
    """Nothing is asked of no records."""
    found = TransformChain([Step(DropAll(RecordParts(headers=True)))]).apply(batch([[]]), JsonTrees(anything=False))
    assert len(found) == 0


@pytest.mark.parametrize(
    ("tree", "value"),
    [
        (datetime(2024, 1, 31, 1, 2, 3, 4000, UTC), pa.scalar(1_706_662_923_004, pa.timestamp("ms", "UTC"))),
        (time(0, 0, 1), pa.scalar(1000, pa.time32("ms"))),
        (date(1970, 1, 2), pa.scalar(1, pa.date32())),
        (5, pa.scalar(5, pa.int64())),
        (None, NULL),
        ([1], [1]),
    ],
)
def test_values_without_a_schema_have_a_type_as_headers(tree: object, value: object) -> None:
    """Dates and times that transforms made, too, in the types that columns have."""
    found = record_headers.of_tree(tree)
    assert found == value
    assert getattr(found, "type", None) == getattr(value, "type", None)
