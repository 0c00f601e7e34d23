"""Records as they came, each a row: nothing is decoded, and tombstones are rows, too."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.model.records import HEADERS, NO_TIMESTAMP, RecordBatch, RecordParts
from parquet_sink.model.rejected import Rejected
from parquet_sink.rows.run import Run

RAW: Final = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS),
        pa.field("timestamp", pa.int64()),
        pa.field("timestamp_type", pa.string()),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
    ]
)
"""The columns of a raw file.

key, value: null is none, which an empty one is not. headers: an empty list for none, null where they cannot be read
because a name is not UTF-8. timestamp: epoch milliseconds, null where the record has none. timestamp_type: null for
parked records that are sent again, with which it is not kept.
"""
RAW_PARTS: Final = RecordParts(keys=True, headers=True, timestamp_types=True)
"""What of a record is read beside its value."""


class RawRowBuilder:
    """Gives a run for each block. It learns nothing, and rejects nothing."""

    known: Final = None

    def begin_again(self) -> bool:
        """To make another one costs nothing."""
        return False

    def shape(self, block: RecordBatch, *, across_rejected: bool = False) -> Iterator[Run | Rejected]:
        """All records of a block that was read with RAW_PARTS, or at least with keys and headers."""
        count = len(block)
        if not count:
            return
        arrays = [
            *(block.keys, block.values, block.headers, *_timestamps(block), pa.repeat(block.topic, count)),
            *(pa.repeat(pa.scalar(block.partition, pa.int32()), count), block.offsets),
        ]
        first, last = block.offsets[0].as_py(), block.offsets[count - 1].as_py()
        yield Run(pa.Table.from_arrays(arrays, schema=RAW), count, first, last, False, block.offsets)

    def unmatched(self) -> tuple[str, ...]:
        """Nothing is obfuscated."""
        return ()


def _timestamps(block: RecordBatch) -> tuple[pa.Int64Array, pa.StringArray]:
    """Timestamps, null where there is none, and their types, null where nobody kept them."""
    stamps, kinds = block.timestamps, block.timestamp_types
    if kinds is None:
        return pc.if_else(pc.equal(stamps, 0), None, stamps), pa.nulls(len(block), pa.string())
    none = pc.equal(kinds, NO_TIMESTAMP)
    return (pc.if_else(none, None, stamps) if pc.any(none).as_py() else stamps), kinds
