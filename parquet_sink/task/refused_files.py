"""The records of a file that the target refused: which they are, and read again so that they can be set aside."""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from parquet_sink.errors import OffsetsLost
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.model.receipts import Receipt
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.model.rejected import Rejected, Stage

ALL_PARTS: Final = RecordParts(keys=True, headers=True)


class FileRecords:
    """Which records have rows in each file of one range. Told of all rows, then of each file, in order.

    A file of consecutive records, which most are, takes nothing but its bounds.
    """

    def __init__(self) -> None:
        self._open: list[np.ndarray] = []
        self._files: dict[int, np.ndarray | None] = {}

    def add(self, offsets: pa.Int64Array) -> None:
        """Of rows that follow those of before."""
        self._open.append(offsets.to_numpy())

    def finished(self, file: FinishedFile) -> None:
        """The rows up to the file's last offset are in it."""
        rows = np.concatenate(self._open) if self._open else np.empty(0, np.int64)
        end = int(np.searchsorted(rows, file.last_offset, side="right"))
        own = np.unique(rows[:end])
        self._open = [rows[end:]]
        self._files[file.first_offset] = None if len(own) == file.last_offset - file.first_offset + 1 else own

    def of(self, receipt: Receipt) -> np.ndarray:
        """The offsets of the records in a file, increasing."""
        own = self._files[receipt.first_offset]
        return np.arange(receipt.first_offset, receipt.last_offset + 1) if own is None else own


def rejected_of(receipt: Receipt, wanted: np.ndarray, batches: Iterable[RecordBatch]) -> Iterator[Rejected]:
    """The records of a refused file, in order. wanted: their offsets. batches: what Kafka has from the first on.

    Raises OffsetsLost when Kafka no longer has one of them, after all others were given, and what reading raises.
    """
    missing = wanted
    for batch in batches:
        offsets = batch.offsets.to_numpy()
        for index in np.flatnonzero(np.isin(offsets, wanted)).tolist():
            yield Rejected(
                topic=batch.topic,
                partition=batch.partition,
                offset=int(offsets[index]),
                stage=Stage.TASK_PUT,
                reason=str(receipt.passed_over),
                key=batch.key_of(index),
                value=batch.values[index].as_py(),
                headers=batch.headers_of(index),
                timestamp_ms=batch.timestamps[index].as_py(),
            )
        missing = missing[~np.isin(missing, offsets)]
    if len(missing):
        raise OffsetsLost(
            f"Topic {receipt.topic}, topic-partition {receipt.partition}: {receipt.passed_over}. {len(missing)} of its "
            f"records, the first at offset {missing[0]}, are no longer in Kafka, so they cannot be set aside. Nothing "
            f"from offset {receipt.first_offset} on is committed; start the connector again: what is left there is "
            f"read anew."
        ).at((receipt.topic, receipt.partition))
