"""A block: up to some thousand records of one topic-partition, as Arrow arrays.

Blocks are what crosses from the reading to the writing side of a Spark task. `Block.of` builds one from what a
consumer returns, `encode` and `decode` carry it across as an Arrow IPC stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

_VERSION = b"1"


@dataclass(frozen=True)
class Block:
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
                f"Block of topic {self.topic}, topic-partition {self.partition}: {len(self.offsets)} offsets, "
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
    ) -> "Block":
        """A block from one entry per record. Raises ValueError when lengths differ or the values exceed 2 GiB."""
        array = pa.array(values, pa.binary())
        if isinstance(array, pa.ChunkedArray):
            raise ValueError(f"Block of topic {topic}, topic-partition {partition}: the values exceed 2 GiB.")
        return cls(topic, partition, pa.array(offsets, pa.int64()), pa.array(timestamps, pa.int64()), array)


def encode(block: Block) -> bytes:
    """The block as one Arrow IPC stream; contiguous offsets are stored as the first one alone."""
    columns = {"timestamp": block.timestamps, "value": block.values}
    metadata = {b"version": _VERSION, b"topic": block.topic.encode(), b"partition": b"%d" % block.partition}
    count = len(block)
    first = block.offsets[0].as_py() if count else 0
    if count and block.offsets[count - 1].as_py() - first == count - 1:
        metadata[b"first_offset"] = b"%d" % first
    else:
        columns["offset"] = block.offsets
    schema = pa.schema([(name, array.type) for name, array in columns.items()], metadata=metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays(list(columns.values()), schema=schema))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode(data: bytes | pa.Buffer) -> Block:
    """The block that `encode` wrote; its arrays refer to `data` and copy nothing but the offsets.

    Raises pyarrow.ArrowInvalid when `data` is not such a stream.
    """
    with pa.ipc.open_stream(data) as stream:
        metadata = stream.schema.metadata or {}
        if metadata.get(b"version") != _VERSION:
            raise pa.ArrowInvalid("Not an encoded block, or one of another version.")
        batch = stream.read_next_batch()
    if b"first_offset" in metadata:
        first = int(metadata[b"first_offset"])
        offsets = pa.array(range(first, first + batch.num_rows), pa.int64())
    else:
        offsets = batch.column("offset")
    return Block(
        metadata[b"topic"].decode(),
        int(metadata[b"partition"]),
        offsets,
        batch.column("timestamp"),
        batch.column("value"),
    )
