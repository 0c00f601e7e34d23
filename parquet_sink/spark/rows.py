"""The rows of the data source: a Spark row for each range that is due, or one for each record."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from parquet_sink.model.ranges import PlannedRange

if TYPE_CHECKING:  # Arrow is not loaded by the program, which knows the data sources by name alone
    import pyarrow as pa

    from parquet_sink.model.records import RecordBatch

DDL: Final = "topic string, partition int, start long, end long, reason string, work string"
"""topic-partition and range [start, end) with its reason; work: the whole `PlannedRange` as JSON."""

RECORDS_DDL: Final = "topic string, partition int, offset long, timestamp long, value binary, key binary"
"""One row for each record; timestamp in epoch milliseconds, 0 when the record has none; value null for a tombstone."""
HEADERS_DDL: Final = f"{RECORDS_DDL}, headers array<struct<key: string, value: binary>>"
"""The same with the headers, null where a header's name is not UTF-8."""
TOGETHER: Final = 100
"""Ranges of one batch at most: each carries what is known of its topic, 10 kB and more where it has many columns."""
WARM_UP: Final = "warm-up"
"""The reason of a range that exists only to load and compile everything before the first real one.

The first micro-batch takes several times as long as the next; an empty one comes before it when nothing is due."""


def of_ranges(ranges: Sequence[PlannedRange]) -> "pa.RecordBatch":
    """The rows of these ranges, in one batch: one of its own for each costs 0.1 ms before anything is read."""
    import pyarrow as pa

    names = [column.split()[0] for column in DDL.split(", ")]
    types = (pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.string(), pa.string())
    rows = [(one.topic, one.partition, one.start, one.end, one.reason, one.to_json()) for one in ranges]
    arrays = [pa.array([row[at] for row in rows], type_) for at, type_ in enumerate(types)]
    return pa.RecordBatch.from_arrays(arrays, names)


def ranges_in(batch: "pa.RecordBatch") -> Iterator[PlannedRange]:
    """The ranges that a batch of rows stands for; warm-up rows are none."""
    for work, reason in zip(batch.column("work").to_pylist(), batch.column("reason").to_pylist(), strict=True):
        if reason != WARM_UP:
            yield PlannedRange.from_json(work)


def of_records(batch: "RecordBatch") -> "pa.RecordBatch":
    """The records of a batch that has keys, as rows of RECORDS_DDL, or of HEADERS_DDL if it has headers."""
    import pyarrow as pa

    count = len(batch)
    columns = {
        "topic": pa.repeat(pa.scalar(batch.topic), count),
        "partition": pa.repeat(pa.scalar(batch.partition, pa.int32()), count),
        "offset": batch.offsets,
        "timestamp": batch.timestamps,
        "value": batch.values,
        "key": batch.keys,
    }
    if batch.headers is not None:
        columns["headers"] = batch.headers
    return pa.RecordBatch.from_pydict(columns)
