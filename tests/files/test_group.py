"""Rows of a row group: bytes, counted from their values alone, common schemas, the age of the oldest record."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.files.group import RecordTimes, Sizes, aligned, fits, unified

TYPES: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.int32(): st.integers(0, 9),
    pa.bool_(): st.booleans(),
    pa.null(): st.none(),
    pa.string(): st.text(max_size=9),
    pa.binary(): st.binary(max_size=9),
    pa.decimal128(9, 2): st.none(),
    pa.timestamp("ms", "UTC"): st.integers(0, 9),
    pa.list_(pa.list_(pa.string())): st.lists(st.none() | st.lists(st.none() | st.text(max_size=3), max_size=3)),
    pa.struct({"a": pa.string(), "b": pa.list_(pa.int64())}): st.fixed_dictionaries(
        {"a": st.none() | st.text(max_size=3), "b": st.none() | st.lists(st.integers(0, 9), max_size=3)}
    ),
    pa.map_(pa.string(), pa.string()): st.lists(st.tuples(st.text(max_size=3), st.none() | st.text(max_size=3))),
}


def counted(rows: pa.Table) -> int:
    """Bytes of all rows."""
    sizes = Sizes(rows.schema)
    return sizes.fixed * rows.num_rows + sizes.variable(rows)


@pytest.mark.parametrize(
    ("of", "value", "expected"),
    [
        (pa.int64(), 1, 8),
        (pa.bool_(), True, 1),
        (pa.null(), None, 0),
        (pa.decimal128(9, 2), None, 16),
        (pa.string(), "größe", 4 + 7),
        (pa.string(), None, 4),
        (pa.list_(pa.string()), ["ab", None], 4 + 2 * 4 + 2),
        (pa.struct({"a": pa.int32(), "b": pa.string()}), {"a": 1, "b": "xyz"}, 4 + 4 + 3),
        (pa.map_(pa.string(), pa.int64()), [("k", 1)], 4 + (4 + 1) + 8),
    ],
)
def test_bytes_of_a_row(of: pa.DataType, value: object, expected: int) -> None:
    """Numbers have their width, texts and lists an offset and their content."""
    assert counted(pa.table({"c": pa.array([value], of)})) == expected


@given(st.data())
def test_bytes_add_up(data: st.DataObject) -> None:
    """However rows are cut or put together, in one array or in several, their bytes are the same."""
    of = data.draw(st.sampled_from(list(TYPES)))
    values = data.draw(st.lists(st.none() | TYPES[of], min_size=1, max_size=12))
    cut = data.draw(st.integers(0, len(values)))
    whole = pa.table({"c": pa.array(values, of)})
    head, tail = whole.slice(0, cut), whole.slice(cut)
    assert counted(head) + counted(tail) == counted(whole)
    assert counted(pa.concat_tables([head, tail])) == counted(whole)
    fresh = pa.table({"c": pa.array(values[cut:], of)})
    assert counted(fresh) == counted(tail)
    assert sum(counted(whole.slice(place, 1)) for place in range(len(values))) == counted(whole)


def test_what_lies_below_a_null_does_not_count() -> None:
    """Arrays may hold bytes where they say null; those are no value."""
    text = pa.array(["aaa", "bb"])
    hidden = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x02"), *text.buffers()[1:]])
    assert hidden.to_pylist() == [None, "bb"]
    assert counted(pa.table({"c": hidden})) == counted(pa.table({"c": pa.array([None, "bb"])}))
    struct = pa.StructArray.from_arrays([text], ["a"], mask=pa.array([True, False]))
    assert counted(pa.table({"c": struct})) == counted(pa.table({"c": pa.array([None, {"a": "bb"}])}))


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


@given(st.data())
def test_the_oldest_of_those_that_are_wanted(data: st.DataObject) -> None:
    """Whatever other records a block has, whatever gaps, and whether records have one row or several, or no time."""
    offsets = sorted(data.draw(st.sets(st.integers(0, 200), min_size=1, max_size=60)))
    ms = data.draw(
        st.lists(st.sampled_from([-1, 0, 5, 9, 10**12, 10**12 + 1]), min_size=len(offsets), max_size=len(offsets))
    )
    first = data.draw(st.integers(0, len(offsets) - 1))
    wanted = offsets[first : data.draw(st.integers(first + 1, len(offsets)))]
    wanted = sorted(data.draw(st.lists(st.sampled_from(wanted), min_size=1, max_size=80)))
    times = RecordTimes.of(pa.array(offsets, pa.int64()), pa.array(ms, pa.int64()))
    timed = [at for offset, at in zip(offsets, ms, strict=True) if offset in wanted and at > 0]
    assert times.oldest_ms(pa.array(wanted, pa.int64()), len(set(wanted))) == min(timed, default=None)
