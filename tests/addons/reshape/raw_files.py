"""Raw files for tests."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.raw import RawRowBuilder
from parquet_sink.rows.run import Run


def raw_table(batch: RecordBatch) -> pa.Table:
    """The rows of a block as raw mode has them."""
    (run,) = RawRowBuilder().shape(batch)
    assert isinstance(run, Run)
    return run.rows


def orders(offsets: Sequence[int], topic: str = "orders", partition: int = 0, text: bytes = b"") -> pa.Table:
    """Raw rows of JSON objects; text: what makes them unlike others of the same offsets."""
    values = [b'{"n": %d, "text": "%s"}' % (offset, text) for offset in offsets]
    keys = [b"%d" % offset for offset in offsets]
    stamps, headers = [1 + offset for offset in offsets], [()] * len(offsets)
    return raw_table(
        RecordBatch.of(topic, partition, offsets, stamps, values, keys, headers, timestamp_types="CreateTime")
    )


def write(table: pa.Table, path: Path, rows: int = 3) -> Path:
    """A Parquet file in row groups of so many rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=rows, store_schema=False)
    return path
