"""Records of a replay that have no row: counted and named, and set aside nowhere; that was done the first time."""

from collections.abc import Callable
from typing import Final

from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordParts
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.task.reject_policy import SetAside, Stop, stopped_by

MOST_NAMED: Final = 10


class LeftOut:
    """Each record once, however often it is tried. named: the first of them, with their reasons.

    refused: how many are in files that the target refused.
    """

    def __init__(self) -> None:
        self._offsets: set[tuple[PartitionKey, int]] = set()
        self.named: list[str] = []
        self.refused = 0

    @property
    def count(self) -> int:
        return len(self._offsets)

    def add(self, one: Rejected) -> None:
        key = (one.topic, one.partition), one.offset
        if key in self._offsets:
            return
        self._offsets.add(key)
        self.refused += one.stage is Stage.TASK_PUT
        if len(self.named) < MOST_NAMED:
            where = f"topic {one.topic}, topic-partition {one.partition}, offset {one.offset}"
            self.named.append(f"{where}: {one.reason}")


class LeaveOut:
    """A `RejectPolicy` that cuts files where the connector's own does, and keeps nothing.

    Where the connector would stop, the range ends; `stopped_at` has the offset, and whoever runs it goes on behind it.
    wants: whether a record at this offset was chosen; others are not told.
    """

    needs = RecordParts(single=True)

    def __init__(self, settings: ErrorSettings, found: LeftOut, wants: Callable[[PartitionKey, int], bool]) -> None:
        self.sets_aside, self._found, self._wants = settings.invalid_records, found, wants
        self.stopped_at: dict[PartitionKey, int] = {}

    def decide(self, rejected: Rejected) -> Stop | SetAside:
        """Takes note of the record."""
        key = rejected.topic, rejected.partition
        if self._wants(key, rejected.offset):
            self._found.add(rejected)
        if rejected.stage is Stage.TASK_PUT or (self.sets_aside and rejected.stage is not Stage.OBFUSCATION):
            return SetAside()
        self.stopped_at[key] = rejected.offset
        return Stop(stopped_by(rejected))

    def flush(self, planned: PlannedRange) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""
