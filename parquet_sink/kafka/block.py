"""A block: up to some thousand records of one topic-partition, as Arrow arrays.

Blocks are what crosses from the reading to the writing side of a Spark task.
"""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Block:
    """Records of one topic-partition in offset order.

    offsets: int64, strictly increasing, no nulls. timestamps: int64, epoch milliseconds, no nulls (0 when the record
    has none). values: binary; null is a tombstone. Values stand in one buffer, each followed by a newline that is not
    part of it (see `lines`), so that JSON can be parsed in place.
    """

    topic: str
    partition: int
    offsets: pa.Int64Array
    timestamps: pa.Int64Array
    values: pa.BinaryArray

    def __len__(self) -> int:
        return len(self.offsets)
