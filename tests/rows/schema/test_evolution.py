"""Which types share a column, and how a topic's columns grow."""

from decimal import Decimal

import pyarrow as pa
import pytest

from parquet_sink.rows.schema.evolution import Change, Columns, Incompatible, aligned, leaves, merged, unified

INT, LONG, FLOAT, DOUBLE, TEXT = pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()


def columns(**types: pa.DataType) -> Columns:
    """Nullable columns."""
    return tuple(pa.field(name, arrow) for name, arrow in types.items())


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        (INT, LONG, LONG),
        (FLOAT, DOUBLE, DOUBLE),
        (INT, FLOAT, DOUBLE),
        (LONG, DOUBLE, DOUBLE),
        (pa.null(), TEXT, TEXT),
        (TEXT, pa.null(), TEXT),
        (pa.decimal128(9, 2), pa.decimal128(30, 2), pa.decimal128(30, 2)),
        (pa.decimal128(9, 2), pa.decimal256(60, 2), pa.decimal256(60, 2)),
        (pa.list_(INT), pa.list_(LONG), pa.list_(LONG)),
        (pa.map_(TEXT, INT), pa.map_(TEXT, LONG), pa.map_(TEXT, LONG)),
        (
            pa.struct([("a", INT)]),
            pa.struct([pa.field("b", TEXT, nullable=False), ("a", LONG)]),
            pa.struct([("a", LONG), ("b", TEXT)]),
        ),
    ],
)
def test_types_that_share_a_column(one: pa.DataType, other: pa.DataType, together: pa.DataType) -> None:
    """Nothing is lost by the type for both, whichever comes first."""
    assert unified(one, other).equals(together)
    assert {field.name for field in _fields(unified(other, one))} == {field.name for field in _fields(together)}


def _fields(arrow: pa.DataType) -> list[pa.Field]:
    return [arrow.field(index) for index in range(arrow.num_fields)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TEXT, INT),
        (pa.bool_(), INT),
        (TEXT, pa.binary()),
        (pa.date32(), INT),
        (pa.timestamp("ms", "UTC"), LONG),
        (pa.decimal128(9, 2), pa.decimal128(9, 3)),
        (pa.decimal128(9, 2), DOUBLE),
        (pa.list_(TEXT), pa.list_(INT)),
        (pa.map_(TEXT, INT), pa.map_(INT, INT)),
        (pa.map_(TEXT, TEXT), pa.struct([("a", TEXT)])),
        (pa.struct([("a", TEXT)]), pa.struct([("a", INT)])),
    ],
)
def test_types_that_do_not(one: pa.DataType, other: pa.DataType) -> None:
    """Where a value could be lost or change its meaning, there is no type for both."""
    with pytest.raises(Incompatible):
        unified(one, other)


def test_first_columns_are_taken_as_they_are() -> None:
    """While nothing is known a required column stays required."""
    own = (pa.field("a", INT, nullable=False),)
    assert merged((), own) == (own, Change.ADDED)
    assert merged(own, own) == (own, Change.NONE)


def test_a_column_that_one_side_lacks_becomes_nullable() -> None:
    """Rows without it hold null, so it can no longer be required."""
    first, second = (pa.field("a", INT, nullable=False),), (pa.field("b", INT, nullable=False),)
    assert merged(first, second) == (columns(a=INT, b=INT), Change.ADDED)


def test_order_of_first_appearance_stays() -> None:
    """Columns of other records are appended, however those order theirs."""
    grown, change = merged(columns(b=TEXT, a=TEXT), columns(c=TEXT, a=TEXT, b=TEXT))
    assert ([column.name for column in grown], change) == (["b", "a", "c"], Change.ADDED)


@pytest.mark.parametrize(
    ("known", "own"),
    [
        (columns(a=LONG), columns(a=DOUBLE)),
        (columns(s=pa.struct([("a", LONG)])), columns(s=pa.struct([("a", DOUBLE)]))),
        (columns(l=pa.list_(LONG)), columns(l=pa.list_(DOUBLE))),
        (columns(m=pa.map_(TEXT, LONG)), columns(m=pa.map_(TEXT, DOUBLE))),
    ],
)
def test_an_int64_that_becomes_a_double_is_told(known: Columns, own: Columns) -> None:
    """Not every int64 is a double, so rows before must not be changed unseen."""
    assert merged(known, own)[1] is Change.WIDENED
    assert merged(own, known) == (own, Change.NONE)


def test_incompatible_columns_start_anew() -> None:
    """The record's own columns are all that is known then."""
    assert merged(columns(a=TEXT, b=TEXT), columns(a=INT)) == (columns(a=INT), Change.INCOMPATIBLE)


def test_aligned_keeps_every_value() -> None:
    """Fields that were missing are null, numbers and decimals keep their value, lists and maps follow."""
    was = pa.struct([("b", INT), ("l", pa.list_(pa.struct([("x", INT)]))), ("m", pa.map_(TEXT, FLOAT))])
    rows = [{"b": 1, "l": [{"x": 2}, None], "m": [("k", 0.5)]}, None, {"b": None, "l": None, "m": None}]
    now = unified(
        pa.struct([("l", pa.list_(pa.struct([("y", TEXT), ("x", LONG)]))), ("b", LONG), ("new", pa.date32())]), was
    )
    assert aligned(pa.array(rows, was), now).to_pylist() == [
        {"l": [{"y": None, "x": 2}, None], "b": 1, "new": None, "m": [("k", 0.5)]},
        None,
        {"l": None, "b": None, "new": None, "m": None},
    ]
    price = pa.array([Decimal("1.20"), None], pa.decimal128(5, 2))
    assert aligned(price, pa.decimal256(50, 2)).to_pylist() == [Decimal("1.20"), None]


def test_a_whole_number_that_no_double_holds_is_refused() -> None:
    """Beyond 2**53 the caller is told instead of given another number."""
    assert aligned(pa.array([2**53]), DOUBLE).to_pylist() == [2.0**53]
    with pytest.raises(pa.ArrowInvalid):
        aligned(pa.array([2**53 + 1]), DOUBLE)


def test_leaves_are_counted_through_structs() -> None:
    """Fields of structs count one each, wherever the struct is."""
    pair = pa.struct([("a", INT), ("b", INT)])
    assert leaves(columns(a=INT, s=pair, l=pa.list_(pair), m=pa.map_(TEXT, pair))) == 1 + 2 + 2 + 3
