"""A block: up to some thousand records of one topic-partition, as Arrow arrays.

Blocks are what the reading thread of a Spark task hands to the one that writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class RecordBatch:
    """Records of one topic-partition in offset order.

    offsets: int64, strictly increasing, no nulls; gaps are fine (transaction markers, compaction). timestamps: int64,
    epoch milliseconds, no nulls (0 when the record has none). values: binary, the bytes of the record's value as Kafka
    had them; null is a tombstone. All three have one entry per record; together the values stay below 2 GiB.
    """

    topic: str
    partition: int
    offsets: pa.Int64Array
    timestamps: pa.Int64Array
    values: pa.BinaryArray

    def __post_init__(self) -> None:
        if not len(self.offsets) == len(self.timestamps) == len(self.values):
            raise ValueError(
                f"RecordBatch of topic {self.topic}, topic-partition {self.partition}: {len(self.offsets)} offsets, "
                f"{len(self.timestamps)} timestamps and {len(self.values)} values do not match."
            )

    def __len__(self) -> int:
        return len(self.offsets)

    @classmethod
    def of(
        cls,
        topic: str,
        partition: int,
        offsets: Sequence[int],
        timestamps: Sequence[int],
        values: Sequence[bytes | None],
    ) -> "RecordBatch":
        """A block from one entry per record. Raises ValueError when lengths differ or the values exceed 2 GiB."""
        array = pa.array(values, pa.binary())
        if isinstance(array, pa.ChunkedArray):
            raise ValueError(f"RecordBatch of topic {topic}, topic-partition {partition}: the values exceed 2 GiB.")
        return cls(topic, partition, pa.array(offsets, pa.int64()), pa.array(timestamps, pa.int64()), array)
