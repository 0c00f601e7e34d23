"""What crosses from the reading to the writing side of a Spark task: one Spark row for each block of records.

A range ends with a row without a block whose `next` equals `end`, or with a row whose `problem` says why it could not
be read to the end: outcomes the driver must act on travel as values, exceptions are for defects.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from parquet_sink.errors import ConnectorError
from parquet_sink.kafka.block import Block, encode

DDL: Final = (
    "topic string, partition int, start long, end long, reason string, next long, count int, block binary, "
    "problem string"
)
"""topic-partition and range [start, end) with its reason; `next`: offset after this block; `count`: records in it."""

ARROW: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("reason", pa.string()),
        ("next", pa.int64()),
        ("count", pa.int32()),
        ("block", pa.binary()),
        ("problem", pa.string()),
    ]
)
RECORDS_DDL: Final = "topic string, partition int, offset long, timestamp long, value binary"
"""One row for each record; timestamp in epoch milliseconds, 0 when the record has none; value null for a tombstone."""
WARM_UP: Final = "warm-up"
"""The reason of a range that exists only to load and compile everything before the first real one."""


@dataclass(frozen=True)
class Span:
    """A range of one topic-partition, as work for a Spark task."""

    topic: str
    partition: int
    start: int
    end: int
    reason: str


@dataclass(frozen=True)
class Problem:
    """Why a range could not be read, or what was passed over: the error's class by name, and its words."""

    kind: str
    message: str


def with_block(span: Span, next_offset: int, block: Block) -> pa.RecordBatch:
    """The row of one block; next_offset: the offset after its last record, or after a gap behind it."""
    return _row(span, next_offset, len(block), encode(block), None)


def at_end(span: Span) -> pa.RecordBatch:
    """The row that says: the range was read to its end."""
    return _row(span, span.end, 0, None, None)


def with_problem(span: Span, next_offset: int, error: ConnectorError) -> pa.RecordBatch:
    """The row that says why the range was not read beyond next_offset."""
    body = json.dumps({"kind": type(error).__name__, "message": str(error)})
    return _row(span, next_offset, 0, None, body)


def _row(span: Span, next_offset: int, count: int, block: bytes | None, problem: str | None) -> pa.RecordBatch:
    values: list[Any] = [
        span.topic, span.partition, span.start, span.end, span.reason, next_offset, count, block, problem,
    ]  # fmt: skip
    arrays = [pa.array([value], field.type) for value, field in zip(values, ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def of_records(block: Block) -> pa.RecordBatch:
    """The records of a block as rows of RECORDS_DDL."""
    count = len(block)
    names = ["topic", "partition", "offset", "timestamp", "value"]
    topic, partition = (
        pa.repeat(pa.scalar(block.topic), count),
        pa.repeat(pa.scalar(block.partition, pa.int32()), count),
    )
    arrays = [topic, partition, block.offsets, block.timestamps, block.values]
    return pa.RecordBatch.from_arrays(arrays, names=names)


@dataclass(frozen=True)
class Arrived:
    """One Spark row on the writing side. `block` is a view of the encoded block, not decoded yet."""

    span: Span
    next_offset: int
    block: pa.Buffer | None
    problem: Problem | None


def unpack(batch: pa.RecordBatch) -> list[Arrived]:
    """The rows of a batch, blocks not copied."""
    small = batch.drop_columns(["block"]).to_pylist()
    blocks = batch.column("block")
    return [_arrived(row, blocks[index]) for index, row in enumerate(small)]


def _arrived(row: dict[str, Any], block: pa.BinaryScalar) -> Arrived:
    span = Span(row["topic"], row["partition"], row["start"], row["end"], row["reason"])
    problem = None if row["problem"] is None else Problem(**json.loads(row["problem"]))
    return Arrived(span, row["next"], block.as_buffer() if block.is_valid else None, problem)
