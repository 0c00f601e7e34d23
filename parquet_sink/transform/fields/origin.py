"""Where records come from, for transforms that write it into them."""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.transform.records import DecodedRecords

_NONE = pa.scalar(0, pa.int64())


@dataclass(frozen=True)
class Origin:
    """Of one record. topic: as routing has named it by now. timestamp_ms: epoch milliseconds; None: it has none."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None


class Origins:
    """Of the records of one piece, in its order."""

    def __init__(self, records: DecodedRecords, positions: pa.Int64Array) -> None:
        self._records, self._positions = records, positions
        self.partition = records.batch.partition

    def __len__(self) -> int:
        return len(self._positions)

    def of(self, row: int) -> Origin:
        """Of the record in this row."""
        return self.at(self._positions[row].as_py())

    def at(self, position: int) -> Origin:
        """Of the record at this position of the batch."""
        records, batch = self._records, self._records.batch
        topic = batch.topic if records.topics is None else records.topics[position].as_py()
        timestamp = batch.timestamps[position].as_py()
        return Origin(topic, batch.partition, batch.offsets[position].as_py(), timestamp or None)

    @cached_property
    def topics(self) -> pa.StringArray:
        """As routing has named them by now."""
        if self._records.topics is None:
            return pa.repeat(pa.scalar(self._records.batch.topic, pa.string()), len(self))
        return self._records.topics.take(self._positions)

    @cached_property
    def offsets(self) -> pa.Int64Array:
        """Kafka's."""
        return self._records.batch.offsets.take(self._positions)

    @cached_property
    def timestamps(self) -> pa.Int64Array:
        """Epoch milliseconds, null for none."""
        found = self._records.batch.timestamps.take(self._positions)
        return pc.if_else(pc.equal(found, _NONE), pa.scalar(None, pa.int64()), found)
