"""JSON text of typed values, as Connect's JsonConverter writes it without schemas."""

from decimal import Decimal

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.rows.json_text import bound, texts
from tests.thorough import examples

NAN, INF = float("nan"), float("inf")
PAIR = pa.struct([("a", pa.int32()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("arrow", "value", "text"),
    [
        (pa.int32(), -(2**31), "-2147483648"),
        (pa.int64(), 2**63 - 1, "9223372036854775807"),
        (pa.bool_(), True, "true"),
        (pa.float32(), 0.1, "0.1"),
        (pa.float64(), 0.1, "0.1"),
        (pa.float64(), 1.0, "1.0"),
        (pa.float32(), -3.0, "-3.0"),
        (pa.float64(), -0.0, "-0.0"),
        (pa.float64(), 1e20, "1e+20"),
        (pa.float64(), 5e-324, "5e-324"),
        (pa.float64(), NAN, '"NaN"'),
        (pa.float32(), INF, '"Infinity"'),
        (pa.float64(), -INF, '"-Infinity"'),
        (pa.string(), "für Ada", '"für Ada"'),
        (pa.string(), 'a"b\\c\n\x01', '"a\\"b\\\\c\\n\\u0001"'),
        (pa.string(), "", '""'),
        (pa.binary(), b"\x00\xff\x10", '"AP8Q"'),
        (pa.binary(), b"", '""'),
        (pa.decimal128(5, 2), Decimal("12.34"), "12.34"),
        (pa.decimal128(5, 2), Decimal("-0.5"), "-0.50"),
        (pa.decimal128(5, 2), Decimal(0), "0.00"),
        (pa.decimal256(60, 0), Decimal(2**127), "170141183460469231731687303715884105728"),
        (pa.decimal256(76, 76), Decimal("1E-76"), "1E-76"),
        (pa.date32(), -1, "-1"),
        (pa.time32("ms"), 86_399_999, "86399999"),
        (pa.timestamp("ms", "UTC"), -62_135_596_800_000, "-62135596800000"),
        (pa.list_(pa.int32()), [1, None, 2], "[1,null,2]"),
        (pa.list_(pa.string()), [], "[]"),
        (pa.list_(pa.list_(pa.null())), [[None], None, []], "[[null],null,[]]"),
        (pa.map_(pa.string(), pa.float64()), [("ä", 1.5), ('"', None)], '{"ä":1.5,"\\"":null}'),
        (pa.map_(pa.int32(), pa.string()), [(1, "x"), (2, None)], '[[1,"x"],[2,null]]'),
        (PAIR, {"a": 1, "b": None}, '{"a":1,"b":null}'),
        (pa.struct([('"', pa.struct([])), ("ü", pa.null())]), {'"': {}, "ü": None}, '{"\\"":{},"ü":null}'),
    ],
)
def test_each_type_has_its_text(arrow: pa.DataType, value: object, text: str) -> None:
    """A value of each type becomes the text that Connect would write, whether or not nulls stand beside it."""
    assert texts(pa.array([None, value, value], arrow)).to_pylist() == [None, text, text]
    assert texts(pa.array([value], arrow)).to_pylist() == [text]


@pytest.mark.parametrize("arrow", [pa.string(), pa.null(), PAIR, pa.list_(PAIR), pa.map_(pa.int32(), PAIR)])
def test_no_values_have_no_text(arrow: pa.DataType) -> None:
    """An empty array gives an empty array, one of nulls gives nulls."""
    assert texts(pa.array([], arrow)).to_pylist() == []
    assert texts(pa.nulls(2, arrow)).to_pylist() == [None, None]
    assert bound(pa.array([], arrow)) == 0


def test_what_lies_below_a_null_is_not_shown() -> None:
    """Values that an array still has under a null record or a null list are no part of the text."""
    child = pa.array(["secret", "y"])
    hidden = pa.StructArray.from_arrays([child], ["a"], mask=pa.array([True, False]))
    offsets = pa.array([0, 1, 2], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, child, mask=pa.array([True, False]))
    assert texts(hidden).to_pylist() == [None, '{"a":"y"}']
    assert texts(lists).to_pylist() == [None, '["y"]']
    assert texts(pa.StructArray.from_arrays([hidden, lists], ["h", "l"])).to_pylist() == [
        '{"h":null,"l":null}',
        '{"h":{"a":"y"},"l":["y"]}',
    ]


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.none() | st.text(max_size=6)), st.integers(0, 4))
def test_strings_are_escaped_as_json_asks(values: list[str | None], start: int) -> None:
    """Any text reads back as it was, and is written as a JSON library would, in slices too."""
    found = texts(pa.array(values, pa.string()).slice(start))
    assert found.to_pylist() == [None if one is None else orjson.dumps(one).decode() for one in values[start:]]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.none() | st.floats(width=64)))
def test_fractions_read_back_exactly(values: list[float | None]) -> None:
    """A double's text has a point or an exponent, and reads back as the same double."""
    found = texts(pa.array(values, pa.float64())).to_pylist()
    for value, text in zip(values, found, strict=True):
        if value is None or text[0] == '"':
            continue
        assert repr(float(text)) == repr(value)
        assert isinstance(orjson.loads(text), float)


nested = st.lists(st.fixed_dictionaries({"a": st.none() | st.integers(-9, 9), "b": st.none() | st.text(max_size=3)}))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.none() | nested, max_size=5), st.integers(0, 5))
def test_the_bound_is_above_the_size(values: list[list[dict[str, object]] | None], start: int) -> None:
    """Texts are never longer than `bound` says, also for a part of an array."""
    array = pa.array(values, pa.list_(PAIR)).slice(start)
    size = sum(len(text.encode()) for text in texts(array).to_pylist() if text is not None)
    assert size <= bound(array)


def test_the_bound_covers_every_leaf() -> None:
    """The longest text of each type is within the bound."""
    smallest = pa.decimal256(76, 0), Decimal("-" + "9" * 76)
    for arrow, value in [
        smallest,
        (pa.float64(), -2.2250738585072014e-308),
        (pa.int64(), -(2**63)),
        (pa.string(), "\x01" * 9),
        (pa.binary(), b"a"),
        (pa.map_(pa.string(), pa.string()), [("\x01", "\x02")]),
        (pa.map_(pa.int32(), pa.bool_()), [(-(2**31), False)]),
        (PAIR, {"a": -(2**31), "b": None}),
    ]:
        array = pa.array([value], arrow)
        assert len(texts(array)[0].as_py()) <= bound(array)
