"""Records that wrap a list of records."""

import logging

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.rows import column_builder
from tests.messages import assert_says
from tests.thorough import examples

ELEMENT = pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string())])
WRAPPER = pa.struct([pa.field("anything", pa.list_(ELEMENT))])
LISTS = st.lists(
    st.none() | st.lists(st.none() | st.fixed_dictionaries({"a": st.none() | st.integers(0, 9), "b": st.just("x")})),
    max_size=6,
)


@settings(max_examples=examples(100), deadline=None)
@given(LISTS, st.integers(0, 3))
def test_each_element_is_a_row(lists: list[list[dict[str, object] | None] | None], start: int) -> None:
    """Elements come in order, each with its record's position; nulls, empty lists and null lists give none."""
    positions = pa.array([10 * index for index in range(len(lists))], pa.int64())
    records = pa.array([{"anything": one} for one in lists], WRAPPER)
    found, rows = column_builder.exploded_rows(positions.slice(start), records.slice(start))
    expected = [
        (10 * index, element)
        for index, one in enumerate(lists)
        for element in one or ()
        if index >= start and element is not None
    ]
    assert list(zip(found.to_pylist(), rows.to_pylist(), strict=True)) == expected
    assert rows.type == ELEMENT
    assert not rows.null_count


def test_elements_under_a_null_list_are_no_rows() -> None:
    """Values that an array still has where its list is null do not come back."""
    elements = pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], ELEMENT)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), elements, mask=pa.array([True, False]))
    found, rows = column_builder.exploded_rows(
        pa.array([4, 5]), pa.StructArray.from_arrays([lists], fields=list(WRAPPER))
    )
    assert (found.to_pylist(), rows.to_pylist()) == ([5], [{"a": 2, "b": "y"}])


@pytest.mark.parametrize(
    "arrow",
    [
        pa.struct([("x", pa.list_(ELEMENT)), ("y", pa.int32())]),
        pa.struct([("x", pa.list_(pa.int32()))]),
        pa.struct([("x", ELEMENT)]),
        pa.struct([]),
        pa.list_(ELEMENT),
        pa.string(),
    ],
)
def test_other_records_are_taken_as_they_are(arrow: pa.DataType, caplog: pytest.LogCaptureFixture) -> None:
    """What is not exactly one list of records stays, and one warning for its schema says so."""
    column_builder.report_unwrapped.cache_clear()
    positions, records = pa.array([1, 2]), pa.nulls(2, arrow)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert column_builder.exploded_rows(positions, records) == (positions, records)
    (warning,) = caplog.messages
    assert_says(warning, "connect.ems.explode.mode=List", "record with a schema", "exactly one list")


def test_trees_explode_alike(caplog: pytest.LogCaptureFixture) -> None:
    """Objects in the one list of a record are its rows; other records stay, with one warning for all."""
    column_builder.report_unwrapped.cache_clear()
    assert list(column_builder.exploded_trees({"m": [{"a": 1}, None, {"a": 2}]})) == [{"a": 1}, {"a": 2}]
    assert list(column_builder.exploded_trees({"m": []})) == []
    assert list(column_builder.exploded_trees({"m": [None]})) == []
    assert list(column_builder.exploded_trees({"m": None})) == []
    with caplog.at_level(logging.WARNING):
        for tree in ({"m": [{"a": 1}, 2]}, {"m": {"a": 1}}, {"m": [], "n": 1}, {"m": 1}):
            assert list(column_builder.exploded_trees(tree)) == [tree]
    assert len(caplog.records) == 1
