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
    ],
)
def test_unified(older: pa.Schema, newer: pa.Schema, both: pa.Schema | None) -> None:
    """Columns are added and integers widened; other differences have no common schema."""
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


def test_aligned_adds_nulls_and_widens() -> None:
    """Missing columns become null, integers doubles, and the order is the schema's."""
    rows = aligned(pa.table({"a": pa.array([1, None], INT)}), schema(b=TEXT, a=DOUBLE))
    assert rows is not None
    assert rows.to_pylist() == [{"b": None, "a": 1.0}, {"b": None, "a": None}]


def test_aligned_never_alters_a_value() -> None:
    """An integer that no double holds exactly is not rounded: there is no aligned form."""
    assert aligned(pa.table({"a": pa.array([2**53 + 1], INT)}), schema(a=DOUBLE)) is None
