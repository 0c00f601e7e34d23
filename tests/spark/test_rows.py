"""The rows of the source: one for each range, and what a range carries to its task."""

import pickle

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.errors import InvalidRecord
from parquet_sink.model.ranges import LearnedSchema, PlannedRange, Tries
from parquet_sink.spark.rows import DDL, WARM_UP, of_ranges, ranges_in
from tests.messages import assert_says

PLANNED = PlannedRange("orders", 3, 100, 200, "interval", 150, Tries(2, 1.5), "id", LearnedSchema(b"schema", 1.0, 2.0))


def test_a_range_crosses_with_all_it_carries() -> None:
    """Offsets, reason, attempts so far and what was known arrive as they left; the columns tell the same."""
    batch = of_ranges([PLANNED])
    assert list(ranges_in(batch)) == [PLANNED]
    columns = ("topic", "partition", "start", "end", "reason")
    assert [batch.column(name)[0].as_py() for name in columns] == ["orders", 3, 100, 200, "interval"]


def test_rows_of_one_batch_are_told_apart() -> None:
    """Several ranges come out one by one, in order, wherever Spark cuts the batch; warm-up rows are none."""
    other, warm = PlannedRange("items", 0, 0, 5, "size"), PlannedRange("", 0, 0, 0, WARM_UP)
    batch = of_ranges([PLANNED, warm, other])
    assert list(ranges_in(batch)) == [PLANNED, other]
    assert list(ranges_in(batch.slice(1))) == [other]


def test_spark_and_arrow_agree_on_the_columns() -> None:
    """The schema declared to Spark has the columns that the rows have, in their order."""
    kinds = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "binary": pa.binary()}
    declared = [tuple(column.split()) for column in DDL.split(", ")]
    assert [(name, kinds[kind]) for name, kind in declared] == [
        (field.name, field.type) for field in of_ranges([PLANNED]).schema
    ]


def test_a_range_crosses_by_value() -> None:
    """A range travels to workers by pickle."""
    assert pickle.loads(pickle.dumps(PLANNED)) == PLANNED


@given(
    st.text(max_size=20),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**62),
    st.integers(0, 2**31),
    st.text(max_size=9).filter(lambda reason: reason != WARM_UP),
    st.none() | st.binary(max_size=20),
)
def test_any_range_crosses(
    topic: str, partition: int, start: int, length: int, reason: str, schema: bytes | None
) -> None:
    """Whatever a topic is called and however large its offsets are, the range arrives unchanged."""
    planned = PlannedRange(topic, partition, start, start + length, reason, known=LearnedSchema(schema))
    assert list(ranges_in(of_ranges([planned]))) == [planned]


def test_an_invalid_record_comes_with_every_cure() -> None:
    """Where it is, why, and what to do: in the connector's file, at the producer, or with the group's offset."""
    error = InvalidRecord("orders", 3, 7, "column id is missing")
    assert_says(error, "topic orders", "topic-partition 3", "offset 7: column id is missing")
    assert_says(error, "the connector file", "the producer", "group's offset to 8", "errors.tolerance=all", "diverted")
