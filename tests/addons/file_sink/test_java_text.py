"""Values as Java prints them."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from parquet_sink.addons.file_sink.java_text import of_tree, texts
from parquet_sink.convert.decoded import InferredColumns, SchemaColumns, Untyped

POINT = pa.struct([("x", pa.int32()), ("y", pa.float64())])


@pytest.mark.parametrize(
    ("arrow", "value", "text"),
    [
        (pa.string(), "a\tß", "a\tß"),
        (pa.bool_(), True, "true"),
        (pa.int64(), -(2**63), "-9223372036854775808"),
        (pa.float64(), 1e10, "1.0E10"),
        (pa.float64(), 100.0, "100.0"),
        (pa.float32(), 0.1, "0.1"),
        (pa.decimal128(6, 2), Decimal("1.50"), "1.50"),
        (pa.date32(), 0, "Thu Jan 01 00:00:00 UTC 1970"),
        (pa.timestamp("ms", "UTC"), 1_700_000_000_000, "Tue Nov 14 22:13:20 UTC 2023"),
        (pa.timestamp("ms", "UTC"), -62_135_769_600_000, "Sat Jan 01 00:00:00 UTC 1"),
        (pa.timestamp("ms", "UTC"), -62_170_156_800_000, "Sun Nov 30 00:00:00 UTC 2"),
        (pa.date32(), -354_650, "Tue Dec 27 00:00:00 UTC 998"),
        (pa.timestamp("ms", "UTC"), 253_402_300_800_000, "Sat Jan 01 00:00:00 UTC 10000"),
        (pa.time32("ms"), 3_600_000, "Thu Jan 01 01:00:00 UTC 1970"),
        (pa.binary(), b"abc", "YWJj"),
        (pa.list_(pa.int32()), [1, None], "[1, null]"),
        (pa.map_(pa.string(), POINT), [("k", {"x": 1, "y": 0.5})], "{k=Struct{x=1,y=0.5}}"),
        (POINT, {"x": 1, "y": None}, "Struct{x=1}"),
    ],
)
def test_values_with_a_schema(arrow: pa.DataType, value: Any, text: str) -> None:
    """Each of Connect's types, in structs, lists and maps; a struct leaves out what is null."""
    assert list(texts(SchemaColumns(pa.array([0]), pa.array([value], arrow)))) == [text]


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ({"k": "v", "n": None}, "{k=v, n=null}"),
        ([1, 2.0, False], "[1, 2.0, false]"),
        ({"a": {"b": [{}]}}, "{a={b=[{}]}}"),
        ("text", "text"),
        ({"at": pa.scalar(0, pa.timestamp("ms", "UTC"))}, "{at=Thu Jan 01 00:00:00 UTC 1970}"),
        ({"none": pa.scalar(None, pa.string())}, "{none=null}"),
    ],
)
def test_values_without_a_schema(tree: Any, text: str) -> None:
    """Objects are Java's maps, whose nulls are printed; a transform may have left a typed value in one."""
    assert of_tree(tree) == text
    assert list(texts(Untyped(pa.array([0]), [tree]))) == [text]


def test_records_that_were_read_as_columns_are_printed_as_they_were() -> None:
    """A column that a record lacks does not show."""
    rows = pa.array([{"a": 1, "b": None}], pa.struct([("a", pa.int64()), ("b", pa.int64())]))
    assert list(texts(InferredColumns(pa.array([0]), rows, lambda row: {"a": 1}))) == ["{a=1}"]
