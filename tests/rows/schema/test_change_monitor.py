"""Topics whose records force a new file every few rows are told once, with the column at fault."""

import logging

import pyarrow as pa
import pytest

from parquet_sink.rows.schema.evolution import FEW_ROWS, FILES, ChangeHistory, SchemaChangeMonitor
from tests.messages import assert_says

TEXT, LONG, DOUBLE = pa.string(), pa.int64(), pa.float64()


def schema(**types: pa.DataType) -> pa.Schema:
    """Columns of these types."""
    return pa.schema(list(types.items()))


def told(before: pa.Schema, after: pa.Schema, rows: int = 2, files: int = 3 * FILES) -> list[str]:
    """What is said while so many files of so many rows end."""
    churn = ChangeHistory("orders", "t")
    return [text for _ in range(files) if (text := churn.ended(rows, before, after))]


def test_said_once_with_everything_that_is_needed() -> None:
    """Connector, topic, column, both types, rows for each file, and what to do."""
    (text,) = told(schema(id=LONG, code=TEXT), schema(id=LONG, code=LONG))
    assert_says(text, "connector orders: topic t:", "last 10 files", "2.0 rows per file")
    assert_says(text, "Column code", "a string", "a whole number (int64)", "no column holds both")
    assert_says(text, "write one type", "its own topic", "connect.ems.flattener.jsonblob.chunks")


def test_few_files_and_large_ones_are_nothing_to_speak_of() -> None:
    """A type that changes now and then, or files of thousands of rows, are how topics live."""
    before, after = schema(a=TEXT), schema(a=LONG)
    assert not told(before, after, files=FILES - 1)
    assert not told(before, after, rows=FEW_ROWS)
    churn = ChangeHistory("orders", "t")
    assert not any(churn.ended(100_000, before, after) for _ in range(100))
    assert sum(churn.ended(1, before, after) is not None for _ in range(FILES)) == 1


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            schema(who=pa.struct([("age", TEXT), ("name", TEXT)])),
            schema(who=pa.struct([("name", TEXT), ("age", LONG)])),
            ("Column who.age is a string", "whole number (int64)"),
        ),
        (schema(a=pa.struct([("x", LONG)])), schema(a=TEXT), ("Column a is a record", "a string")),
        (schema(a=LONG), schema(b=TEXT, a=DOUBLE), ("Column a is a whole number (int64)", "a fraction (double)")),
        (schema(a=DOUBLE), schema(a=LONG), ("Column a is a fraction (double)", "a whole number (int64)")),
        (schema(l=pa.list_(TEXT)), schema(l=pa.list_(LONG)), ("Column l ", "list<item: string>", "list<item: int64>")),
        (schema(a=LONG), schema(a=LONG, b=TEXT), ("ever new columns", "the last one b.")),
        (schema(a=LONG), schema(a=LONG), ("ever new columns.",)),
    ],
    ids=["nested", "record and text", "fractions", "large numbers", "lists", "new columns", "nothing to see"],
)
def test_names_the_column_at_fault(before: pa.Schema, after: pa.Schema, said: tuple[str, ...]) -> None:
    """Structs are opened; types that cannot share a column come before those that only some values keep apart."""
    (text,) = told(before, after)
    assert_says(text, *said)


def test_a_process_says_it_once_over_all_ranges(caplog: pytest.LogCaptureFixture) -> None:
    """Ranges may be as short as one file: what counts is the topic, each for itself."""
    with caplog.at_level(logging.WARNING):
        for topic in ["u1", "u2"] * 2 * FILES:
            watch = SchemaChangeMonitor("orders", topic)
            watch.added(schema(a=TEXT), [])
            watch.added(schema(a=LONG), [1])
    assert [record.message.split(":")[1] for record in caplog.records] == [" topic u1", " topic u2"]
