"""Kafka's timestamps of a block of records, to tell how old the oldest is of those that went into one file."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class RecordTimes:
    """offsets: increasing. ms: the timestamp of each record, epoch milliseconds; 0 and less where it has none."""

    offsets: np.ndarray[Any, np.dtype[np.int64]]
    ms: np.ndarray[Any, np.dtype[np.int64]]

    @classmethod
    def of(cls, offsets: pa.Int64Array, timestamps: pa.Int64Array) -> "RecordTimes":
        """Of the columns of a block. Nothing is copied."""
        return cls(offsets.to_numpy(zero_copy_only=False), timestamps.to_numpy(zero_copy_only=False))

    def oldest_ms(self, wanted: pa.Int64Array, records: int) -> int | None:
        """The smallest timestamp of these records, None when none has one.

        wanted: their offsets, not decreasing, at least one, all of this block. records: how many different ones.
        """
        first, last = wanted[0].as_py(), wanted[-1].as_py()
        start, end = np.searchsorted(self.offsets, first, "left"), np.searchsorted(self.offsets, last, "right")
        ms = self.ms[start:end]
        if len(ms) != records:  # others between them have no row
            ms = self.ms[np.searchsorted(self.offsets, wanted.to_numpy(zero_copy_only=False))]
        if (oldest := int(ms.min())) > 0:
            return oldest
        timed = ms[ms > 0]
        return int(timed.min()) if len(timed) else None

    def of_record(self, offset: int) -> int | None:
        """The timestamp of one record of this block, None when it has none."""
        ms = int(self.ms[np.searchsorted(self.offsets, offset)])
        return ms if ms > 0 else None
