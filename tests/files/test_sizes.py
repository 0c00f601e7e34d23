"""Bytes of rows, counted from their values alone."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.files.sizes import Sizes

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
