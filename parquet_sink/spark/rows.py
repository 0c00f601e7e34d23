"""The rows of the data source: a Spark row for each range that is due, or one for each record."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordBatch

DDL: Final = "topic string, partition int, start long, end long, reason string, work string"
"""topic-partition and range [start, end) with its reason; work: the whole `PlannedRange` as JSON."""

ARROW: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("reason", pa.string()),
        ("work", pa.string()),
    ]
)
RECORDS_DDL: Final = "topic string, partition int, offset long, timestamp long, value binary"
"""One row for each record; timestamp in epoch milliseconds, 0 when the record has none; value null for a tombstone."""
WARM_UP: Final = "warm-up"
"""The reason of a range that exists only to load and compile everything before the first real one."""


def of_range(planned: PlannedRange) -> pa.RecordBatch:
    """The row of one range."""
    row = (planned.topic, planned.partition, planned.start, planned.end, planned.reason, planned.to_json())
    arrays = [pa.array([value], field.type) for value, field in zip(row, ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def ranges_in(batch: pa.RecordBatch) -> Iterator[PlannedRange]:
    """The ranges that a batch of rows stands for; warm-up rows are none."""
    for work, reason in zip(batch.column("work").to_pylist(), batch.column("reason").to_pylist(), strict=True):
        if reason != WARM_UP:
            yield PlannedRange.from_json(work)


def of_records(block: RecordBatch) -> pa.RecordBatch:
    """The records of a block as rows of RECORDS_DDL."""
    count = len(block)
    names = ["topic", "partition", "offset", "timestamp", "value"]
    topic, partition = (
        pa.repeat(pa.scalar(block.topic), count),
        pa.repeat(pa.scalar(block.partition, pa.int32()), count),
    )
    arrays = [topic, partition, block.offsets, block.timestamps, block.values]
    return pa.RecordBatch.from_arrays(arrays, names=names)
