"""Rejected records into parked files: a `SetAsideStore`."""

import time
from collections.abc import Callable
from typing import Final

from parquet_sink.errors import ParkedFull
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.rejected import Rejected
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.parked.table import raw_bytes

WAITING_BYTES: Final = 4 << 20
"""Of records that wait in memory, in one Spark task; then those of the topic-partition at hand are written."""


class ParkedStore:
    """Of one Spark task. Records are written when they are many, and at the latest when their range is flushed.

    What a crash leaves behind of a range that did not count is there already when the range comes again. clock: epoch
    seconds.
    """

    def __init__(self, folder: ParkedFolder, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._clock = folder, clock
        self._waiting: dict[PartitionKey, list[Rejected]] = {}
        self._bytes = 0

    def put(self, rejected: Rejected) -> None:
        """Raises ParkedFull, StorageFailed."""
        key = (rejected.topic, rejected.partition)
        self._waiting.setdefault(key, []).append(rejected)
        self._bytes += raw_bytes(rejected)
        if self._bytes >= WAITING_BYTES:
            self._write(key)

    def flush(self, planned: PlannedRange) -> None:
        """Raises ParkedFull, StorageFailed; then what could not be written still waits."""
        self._write((planned.topic, planned.partition))

    def close(self) -> None:
        self._waiting.clear()

    def _write(self, key: PartitionKey) -> None:
        records = self._waiting.get(key, [])
        self._park(key, records)
        self._waiting.pop(key, None)
        self._bytes -= sum(map(raw_bytes, records))

    def _park(self, key: PartitionKey, records: list[Rejected]) -> None:
        """Where there is no room for all, as many as there is room for; the error names the first of the others."""
        try:
            self._folder.append(*key, records, int(self._clock() * 1000))
        except ParkedFull:
            if len(records) < 2:
                raise
            middle = len(records) // 2
            self._park(key, records[:middle])
            self._park(key, records[middle:])
