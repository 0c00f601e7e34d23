"""Whole numbers as doubles: all that a double holds, and no other."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.rows.schema.evolution import aligned, first_inexact
from tests.thorough import examples

LONG, DOUBLE = pa.int64(), pa.float64()
NUMBERS = (
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 2**53, 2**53 + 1, 2**60, 2**63 - 1, -(2**63)])
)


def around(leaf: pa.DataType) -> list[pa.DataType]:
    """Types that hold this one at some depth."""
    record = pa.struct([("x", leaf)])
    return [
        leaf,
        record,
        pa.list_(leaf),
        pa.list_(record),
        pa.map_(pa.string(), record),
        pa.struct([("l", pa.list_(leaf))]),
    ]


def put(level: int, number: int | None) -> object:
    """A value of the type at this place in `around`."""
    return [number, {"x": number}, [number], [{"x": 1}, {"x": number}], [("k", {"x": number})], {"l": [number]}][level]


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(NUMBERS, max_size=40), st.integers(0, 5), st.integers(0, 10))
def test_exactly_what_a_double_holds(numbers: list[int | None], level: int, start: int) -> None:
    """At every depth and in every slice, the first number that is none of Python's own doubles is told."""
    own, to = around(LONG)[level], around(DOUBLE)[level]
    array = pa.array([put(level, number) for number in numbers], own).slice(start)
    rest = numbers[start:]
    bad = [at for at, number in enumerate(rest) if number is not None and int(float(number)) != number]
    assert first_inexact(array, to) == (bad[0] if bad else None)
    good = array.slice(0, bad[0]) if bad else array
    found = aligned(good, to)
    found.validate(full=True)
    assert found.to_pylist() == good.to_pylist()
    if bad:
        with pytest.raises(pa.ArrowInvalid):
            aligned(array, to)


def test_a_double_beyond_2_to_the_53_needs_no_new_column() -> None:
    """Arrow's own cast refuses such numbers, also in columns of several chunks."""
    chunks = pa.chunked_array([[2**60], [], [-(2**63), None]], LONG)
    assert aligned(chunks, DOUBLE).to_pylist() == [2.0**60, -(2.0**63), None]
    with pytest.raises(pa.ArrowInvalid):
        aligned(pa.chunked_array([[1], [2**53 + 1]], LONG), DOUBLE)


def test_fields_are_added_on_the_way() -> None:
    """A record with a large number gets the fields that it lacks like any other, and null stays null."""
    own = pa.struct([pa.field("x", LONG, nullable=False)])
    to = pa.struct([("new", pa.string()), ("x", DOUBLE)])
    assert aligned(pa.array([{"x": 2**60}, None], own), to).to_pylist() == [{"new": None, "x": 2.0**60}, None]
