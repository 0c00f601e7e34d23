"""What crosses from the reading to the writing side: one row for each block, and outcomes as values."""

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.errors import ConnectorError, InvalidRecord, KafkaFailed, OffsetsLost
from parquet_sink.kafka.block import Block, decode
from parquet_sink.kafka.rows import ARROW, DDL, Problem, Span, at_end, unpack, with_block, with_problem

SPAN = Span("orders", 3, 100, 200, "interval")


def test_a_block_crosses() -> None:
    """The range, the offset after the block and the records themselves arrive as they left."""
    block = Block.of("orders", 3, [100, 104], [5, 6], [b"{}", None])
    (arrived,) = unpack(with_block(SPAN, 105, block))
    assert (arrived.span, arrived.next_offset, arrived.problem) == (SPAN, 105, None)
    assert arrived.block is not None
    back = decode(arrived.block)
    assert (back.topic, back.partition, back.offsets.to_pylist()) == ("orders", 3, [100, 104])
    assert back.values.to_pylist() == [b"{}", None]


def test_an_end_crosses() -> None:
    """The last row of a range has no block, and its next offset is the range's end."""
    (arrived,) = unpack(at_end(SPAN))
    assert (arrived.span, arrived.next_offset, arrived.block, arrived.problem) == (SPAN, 200, None, None)


@pytest.mark.parametrize(
    "error",
    [KafkaFailed("no record came"), OffsetsLost("offsets 1 to 4"), InvalidRecord("orders", 3, 7, 'not "JSON"\n')],
)
def test_a_problem_crosses_with_its_kind_and_words(error: ConnectorError) -> None:
    """Why a range could not be read arrives as a value: the class by name, and the words for the operator."""
    (arrived,) = unpack(with_problem(SPAN, 150, error))
    assert arrived.problem == Problem(type(error).__name__, str(error))
    assert (arrived.span, arrived.next_offset, arrived.block) == (SPAN, 150, None)


def test_rows_are_told_apart_when_spark_puts_them_in_one_batch() -> None:
    """Several rows of several ranges in one batch come out one by one, in order."""
    other = Span("items", 0, 0, 5, "size")
    batch = pa.Table.from_batches(
        [with_block(SPAN, 101, Block.of("orders", 3, [100], [0], [b"1"])), at_end(SPAN), at_end(other)]
    ).combine_chunks()
    arrived = unpack(batch.to_batches()[0])
    assert [(one.span, one.next_offset, one.block is not None) for one in arrived] == [
        (SPAN, 101, True),
        (SPAN, 200, False),
        (other, 5, False),
    ]


def test_spark_and_arrow_agree_on_the_columns() -> None:
    """The schema declared to Spark has the columns that the rows have, in their order."""
    kinds = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "binary": pa.binary()}
    declared = [tuple(column.split()) for column in DDL.split(", ")]
    assert [(name, kinds[kind]) for name, kind in declared] == [(field.name, field.type) for field in ARROW]


def test_a_span_crosses_by_value() -> None:
    """A range travels to workers by pickle."""
    assert pickle.loads(pickle.dumps(SPAN)) == SPAN


@given(
    st.text(max_size=20), st.integers(0, 2**31 - 1), st.integers(0, 2**62), st.integers(0, 2**31), st.text(max_size=9)
)
def test_any_range_crosses(topic: str, partition: int, start: int, length: int, reason: str) -> None:
    """Whatever a topic is called and however large its offsets are, the range arrives unchanged."""
    span = Span(topic, partition, start, start + length, reason)
    assert unpack(at_end(span))[0].span == span


def test_an_invalid_record_comes_with_every_cure() -> None:
    """Where it is, why, and what to do: in the connector's file, at the producer, or with the group's offset."""
    text = str(InvalidRecord("orders", 3, 7, "column id is missing, so it has no primary key"))
    assert text.startswith(
        "topic orders, topic-partition 3, offset 7: column id is missing, so it has no primary key. "
    )
    for cure in ("Correct the connector file", "correct the producer", "resetting the group's offset to 8 with"):
        assert cure in text
