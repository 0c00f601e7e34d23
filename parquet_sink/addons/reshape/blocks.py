"""Raw rows as the blocks of records that Kafka's reader would have made of them, however files cut them. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.model.records import NO_TIMESTAMP, RecordBatch

BLOCK_RECORDS: Final = 10_000
BLOCK_BYTES: Final = 4 << 20
"""Of keys and values in a block, unless a single record has more."""


def blocks(tables: Iterable[pa.Table]) -> Iterator[RecordBatch]:
    """The rows of tables of type RAW, all of one topic-partition, in blocks that end at the same records always."""
    waiting: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        sizes, begin = _sizes(table), 0
        while begin < table.num_rows:
            end = _end(sizes, begin, BLOCK_RECORDS - rows, BLOCK_BYTES - size, empty=not rows)
            if end > begin:
                waiting.append(table.slice(begin, end - begin))
                rows, size, begin = rows + end - begin, size + int(sizes[begin:end].sum()), end
            if begin < table.num_rows:
                yield _block(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield _block(waiting)


def _end(sizes: np.ndarray, begin: int, records: int, room: int, *, empty: bool) -> int:
    """Up to which row a block takes rows. empty: whether it has none yet; then it takes one, however large."""
    fitting = int(np.searchsorted(np.cumsum(sizes[begin : begin + records]), room, side="right"))
    return begin + max(fitting, int(empty))


def _sizes(table: pa.Table) -> np.ndarray:
    lengths = [pc.fill_null(pc.binary_length(table.column(name)), 0).to_numpy() for name in ("key", "value")]
    return np.asarray(np.add(*lengths, dtype=np.int64))


def _block(tables: list[pa.Table]) -> RecordBatch:
    (rows,) = pa.concat_tables(tables).combine_chunks().to_batches()
    kinds = pc.fill_null(rows.column("timestamp_type"), NO_TIMESTAMP)
    return RecordBatch(
        topic=rows.column("topic")[0].as_py(),
        partition=rows.column("partition")[0].as_py(),
        offsets=rows.column("offset"),
        timestamps=pc.fill_null(rows.column("timestamp"), 0),
        values=rows.column("value"),
        keys=rows.column("key"),
        headers=rows.column("headers"),
        timestamp_types=kinds,
    )
