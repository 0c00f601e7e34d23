"""Text to values as Kafka Connect's `Values.parseString` reads it: every line was seen to come from it so."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.convert.connect_values.decoder import SimpleHeaders, parse
from parquet_sink.convert.connect_values.settings import SIMPLE_HEADER
from parquet_sink.convert.decoded import SchemaColumns, Untyped

STRING, INT8 = pa.string(), pa.int8()


@pytest.mark.parametrize(
    ("text", "arrow", "value"),
    [
        ("null", pa.null(), None),
        (" null ", pa.null(), None),
        ("", STRING, ""),
        ("true", pa.bool_(), True),
        ("true\x00", pa.bool_(), True),
        ("false\x1f \t", pa.bool_(), False),
        ("true\xa0", STRING, "true\xa0"),
        (" false ", pa.bool_(), False),
        ("true}", STRING, "true}"),
        ("12", INT8, 12),
        ("-128", INT8, -128),
        ("128", pa.int16(), 128),
        ("70000", pa.int32(), 70_000),
        ("1e10", pa.int64(), 10**10),
        ("2.0", INT8, 2),
        ("+5", INT8, 5),
        ("-0.0", INT8, 0),
        ("٣", INT8, 3),
        ("0.1", pa.float32(), 0.10000000149011612),
        ("16777217.5", pa.float32(), 16777218.0),
        ("1.00000017881393432617187499", pa.float32(), 1.0000001192092896),
        ("3.40282356779733661e38", pa.float32(), 3.4028234663852886e38),
        ("1.5e300", pa.float64(), 1.5e300),
        ("9223372036854775808", pa.decimal256(64, 0), Decimal(9223372036854775808)),
        ("1_0", STRING, "1_0"),
        ("NaN", STRING, "NaN"),
        ("1e99999999999", STRING, "1e99999999999"),
        ("2024-01-31", pa.date32(), date(2024, 1, 31)),
        ("2024-13-45", pa.date32(), date(2025, 2, 14)),
        ("2024-1-1xx", pa.date32(), date(2024, 1, 1)),
        ("1500-01-01", pa.date32(), date(1500, 1, 10)),
        ("1582-10-04", pa.date32(), date(1582, 10, 14)),
        ("1582-10-15", pa.date32(), date(1582, 10, 15)),
        ("12:30:00.250Z", pa.time32("ms"), time(12, 30, 0, 250_000)),
        ("2024-01-31T12:30:00.000Z", pa.timestamp("ms", "UTC"), datetime(2024, 1, 31, 12, 30, tzinfo=UTC)),
        ("2024-01-31T12\\:30\\:00.000Z", pa.timestamp("ms", "UTC"), datetime(2024, 1, 31, 12, 30, tzinfo=UTC)),
        ("[1, 300]", pa.list_(pa.int16()), [1, 300]),
        ("[1, 0.5]", pa.list_(pa.float32()), [1.0, 0.5]),
        ('["2024-01-31", 2]', pa.list_(pa.date32()), [date(2024, 1, 31), date(1970, 1, 3)]),
        ("[1, null]", STRING, "[1, null]"),
        ("[1,]", pa.list_(INT8), [1]),
        ("[1", STRING, "[1"),
        ("[a]", STRING, "[a]"),
        ('{"a": 1, "b": 2}', pa.map_(STRING, INT8), [("a", 1), ("b", 2)]),
        ('{"a": 1, "a": 300}', pa.map_(STRING, pa.int16()), [("a", 300)]),
        ("{1: [2]}", pa.map_(INT8, pa.list_(INT8)), [(1, [2])]),
        ("{a: 1}", STRING, "{a: 1}"),
        ('"quoted"', STRING, '"quoted"'),
        ("abc", STRING, "abc"),
        ("4bf92f3577b34da6", STRING, "4bf92f3577b34da6"),
    ],
)
def test_a_text_has_the_value_that_connect_finds(text: str, arrow: pa.DataType, value: object) -> None:
    """Type and value are Connect's, its odd ones included."""
    found = parse(text)
    assert isinstance(found, pa.Scalar)
    assert (found.type, found.as_py()) == (arrow, value)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("[]", []),
        ("{}", {}),
        ('[1, "a"]', [1, "a"]),
        ("[null, null]", [None, None]),
        ('{"a": null}', {"a": None}),
        ('{"a": 1, "b": "x"}', {"a": 1, "b": "x"}),
        ('{1: "x", 2: 3}', [[1, "x"], [2, 3]]),
        ('["2024-01-31", "12:30:00.000Z"]', ["2024-01-31", "12:30:00.000Z"]),
        ('[[300], ["a"]]', [[300], ["a"]]),
        ('["a", "2024-01-31"]', ["a", "2024-01-31"]),
        ("[[300], [1]]", [[300], [1]]),
        ('[9223372036854775808, "a"]', ["9223372036854775808", "a"]),
        ('[[1e5], ["2020-01-01"]]', [[100_000], ["2020-01-01"]]),
        ('[["2020-01-01"], [5]]', [["2020-01-01"], [5]]),
        ('["12", {"2020-01-01": "a", "2020-01-01T00:00:00.000Z": 300}]', ["12", {"2020-01-01": 300}]),
        ('[[""], [], [["a"]]]', [[""], [], [["a"]]]),
        ('["0000-00-00", "0002-01-01", "a"]', ["-0001-11-28", "0001-12-30", "a"]),
        ('{"00:00:00.000Z": 1, "24:00:00.000Z": "a"}', {"00:00:00.000Z": 1, "24:00:00.000Z": "a"}),
        ('{00:00:00.000Z: 1, 24:00:00.000Z: "a"}', {"00:00:00.000Z": 1, "24:00:00.000Z": "a"}),
    ],
)
def test_elements_that_do_not_mix_have_no_type(text: str, tree: object) -> None:
    """They are a tree: an object, or a list, with dates and decimals as text."""
    assert parse(text) == tree


@pytest.mark.parametrize("text", ["1" * 65, "1e400", "25:00:00.000Z", "[" * 101 + "]" * 101, "[" * 50_000])
def test_what_arrow_cannot_hold_is_text(text: str) -> None:
    """Where Connect has a value (a decimal of any length, a time of any hours), the text stands as it is."""
    assert parse(text) == pa.scalar(text, STRING)


@given(st.lists(st.binary(max_size=12) | st.sampled_from([b"1", b"null", b"[]", b"0.5", b"\xff"]), max_size=8))
def test_many_values_are_what_each_is(values: list[bytes]) -> None:
    """The decoder gives each value by its position, null by none, and calls nothing invalid."""
    found = SimpleHeaders(SIMPLE_HEADER).decode(pa.array(values, pa.binary()))
    assert not found.invalid
    by_position: dict[int, object] = {}
    for piece in found.pieces:
        assert isinstance(piece, SchemaColumns | Untyped)
        rows = piece.rows if isinstance(piece, SchemaColumns) else piece.trees
        by_position.update(zip(piece.positions.to_pylist(), rows, strict=True))
    for position, value in enumerate(values):
        alone = parse(value.decode("utf-8", "replace"))
        assert by_position.get(position, pa.scalar(None, pa.null())) == alone


@given(st.text(max_size=30) | st.text('[]{},:"\\ 1a', max_size=30))
def test_any_text_has_a_value(text: str) -> None:
    """Nothing raises, whatever the delimiters; what begins with a letter is itself, but for three words."""
    found = parse(text)
    if text[:1].isalpha() and text.strip() not in ("null", "true", "false"):
        assert found == pa.scalar(text, STRING)
