"""Rows of compatible schemas in one file."""

import pyarrow as pa
import pytest

from parquet_sink.files.schemas import aligned, fits, unified

INT, DOUBLE, TEXT, NULL = pa.int64(), pa.float64(), pa.string(), pa.null()


def schema(**columns: pa.DataType) -> pa.Schema:
    """A schema of these columns."""
    return pa.schema(list(columns.items()))


@pytest.mark.parametrize(
    ("older", "newer", "both"),
    [
        (schema(a=INT), schema(a=INT), schema(a=INT)),
        (schema(a=INT), schema(a=INT, b=TEXT), schema(a=INT, b=TEXT)),
        (schema(a=INT, m=TEXT), schema(a=INT, b=TEXT, m=TEXT), schema(a=INT, b=TEXT, m=TEXT)),
        (schema(a=INT, b=TEXT), schema(b=TEXT, c=INT), schema(a=INT, b=TEXT, c=INT)),
        (schema(a=INT), schema(a=DOUBLE), schema(a=DOUBLE)),
        (schema(a=DOUBLE), schema(a=INT), schema(a=DOUBLE)),
        (schema(a=NULL), schema(a=TEXT), schema(a=TEXT)),
        (schema(a=INT), schema(a=TEXT), None),
        (schema(a=pa.bool_()), schema(a=INT), None),
        (schema(s=pa.struct({"x": INT})), schema(s=pa.struct({"y": TEXT})), schema(s=pa.struct({"x": INT, "y": TEXT}))),
        (schema(s=pa.struct({"x": INT})), schema(s=pa.struct({"x": TEXT})), None),
        (schema(s=pa.list_(INT)), schema(s=pa.list_(DOUBLE), t=INT), schema(s=pa.list_(DOUBLE), t=INT)),
        (schema(), schema(a=INT), schema(a=INT)),
    ],
)
def test_unified(older: pa.Schema, newer: pa.Schema, both: pa.Schema | None) -> None:
    """Columns and fields are added and integers widened; other differences have no common schema."""
    assert unified(older, newer) == both


def test_fits_needs_nothing_new() -> None:
    """A written file takes rows that lack columns or are narrower, never rows that have more or are wider."""
    assert fits(schema(a=INT), schema(a=INT, b=TEXT))
    assert fits(schema(a=INT), schema(a=DOUBLE))
    assert not fits(schema(a=DOUBLE), schema(a=INT))
    assert not fits(schema(a=INT, c=TEXT), schema(a=INT))


def test_a_required_column_cannot_be_missing() -> None:
    """Rows without a column that the file declares non-null do not fit."""
    required = pa.schema([pa.field("a", INT, nullable=False), pa.field("b", INT)])
    assert not fits(schema(b=INT), required)


def test_a_column_that_was_in_no_row_before_may_be_null() -> None:
    """Also after rows without any column."""
    added = pa.schema([pa.field("a", INT, nullable=False)])
    assert unified(schema(), added) == schema(a=INT)
    assert unified(schema(b=INT), added) == schema(b=INT, a=INT)


def test_aligned_fills_nested_fields() -> None:
    """Within structs, lists and maps too, at any depth, missing fields become null, in the order of the schema."""
    inner, outer = pa.struct({"x": INT}), pa.struct({"y": TEXT, "x": DOUBLE})
    rows = pa.table(
        {
            "s": pa.array([{"x": 1}, None], inner),
            "l": pa.array([[{"x": 1}, None], []], pa.list_(inner)),
            "m": pa.array([[("k", {"x": 1})], None], pa.map_(TEXT, inner)),
        }
    )
    filled = aligned(rows, schema(s=outer, l=pa.list_(outer), m=pa.map_(TEXT, outer)))
    full = {"y": None, "x": 1.0}
    assert filled is not None
    assert filled.to_pylist() == [
        {"s": full, "l": [full, None], "m": [("k", full)]},
        {"s": None, "l": [], "m": None},
    ]


def test_aligned_adds_nulls_and_widens() -> None:
    """Missing columns become null, integers doubles, and the order is the schema's."""
    rows = aligned(pa.table({"a": pa.array([1, None], INT)}), schema(b=TEXT, a=DOUBLE))
    assert rows is not None
    assert rows.to_pylist() == [{"b": None, "a": 1.0}, {"b": None, "a": None}]


def test_aligned_never_alters_a_value() -> None:
    """An integer that no double holds exactly is not rounded: there is no aligned form."""
    assert aligned(pa.table({"a": pa.array([2**53 + 1], INT)}), schema(a=DOUBLE)) is None
    nested = pa.table({"s": pa.array([[{"a": 2**53 + 1}]], pa.list_(pa.struct({"a": INT})))})
    assert aligned(nested, schema(s=pa.list_(pa.struct({"a": DOUBLE})))) is None
