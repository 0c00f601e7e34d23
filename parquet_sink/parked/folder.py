"""The folder of a connector's parked records, and the store that writes rejected records into it.

Each topic-partition has files of its own, numbered as they were begun. What is added goes into the last one, which is
written again beside it and takes its place, until that holds FILE_BYTES; so one record at a time makes no more files
than many at once. A crash leaves the file of before or the one of after. Records that are there already, because a
range is repeated, are not added again.
"""

import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.errors import ParkedFull, StorageFailed
from parquet_sink.files import naming
from parquet_sink.files.storage import storage_trouble, sync_folder
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.rejected import Rejected
from parquet_sink.parked.files import PARKING, ParkedFile, Staged, raw_bytes, table_of
from parquet_sink.parked.locks import changing
from parquet_sink.parked.names import is_unfinished, name_of, number_in
from parquet_sink.parked.scan import MARKER, scan_partition, used_bytes
from parquet_sink.parked.settings import DIR, MAX_BYTES

FILE_BYTES: Final = 8 << 20
"""Of records before they are compressed, in one file, unless one record has more."""
_IDENTITY: Final = ("offset", "timestamp", "key", "value")
WAITING_BYTES: Final = 4 << 20
"""Of records that wait in memory, in one Spark task; then those of the topic-partition at hand are written."""


class ParkedFolder:
    """Of one connector. path: `ParkedSettings.folder`. max_bytes: on the disk."""

    def __init__(self, path: str, connector: str, max_bytes: int) -> None:
        self.path, self._connector, self._max_bytes = path, connector, max_bytes

    def prepare(self) -> None:
        """Makes it with its marker, and proves that it can be written; called when the connector starts.

        Raises StorageFailed.
        """
        with storage_trouble(self.path, "make the folder for parked records", PARKING):
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            found = os.lstat(self.path)
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
            raise StorageFailed(
                f"Folder {self.path} ({DIR}) is a symbolic link or belongs to another user, so no records are parked "
                f"there. Remove it, or name a folder of your own."
            )
        with storage_trouble(self.path, "make the folder for parked records", PARKING):
            marker = Path(self.path, MARKER)
            marker.write_text(f"Records that connector {self._connector} parked: parquet-sink parked list\n")
            sync_folder(self.path)
        for parent in Path(self.path).parents:
            with suppress(OSError):  # those far above were there before, and may be nobody's to open
                sync_folder(str(parent))

    def append(self, topic: str, partition: int, records: Sequence[Rejected], parked_at_ms: int) -> int:
        """Adds records of one topic-partition; returns how many were new.

        All of them are on the disk for good then, or none. Raises ParkedFull, StorageFailed.
        """
        if not records:
            return 0
        self._check_there()
        table = table_of(records, self._connector, parked_at_ms)
        with changing(self.path):
            place = self._partition_folder(topic, partition)
            with storage_trouble(place, "read parked records", PARKING):
                _remove_unfinished(place)
                files, _ = scan_partition(place)
                fresh = _without_known(table, files)
                if not fresh.num_rows:
                    return 0
                last = files[-1] if files and files[-1].raw_bytes + fresh.nbytes <= FILE_BYTES else None
                whole = fresh if last is None else pa.concat_tables([last.read().cast(fresh.schema), fresh])
                path = os.path.join(place, _next_name(place)) if last is None else last.path
            staged = Staged(path, whole, topic, partition)
            self._check_room(staged, 0 if last is None else last.size_bytes, records[0])
            staged.commit()
            return int(fresh.num_rows)

    def change(self, file: ParkedFile, changed: Callable[[pa.Table], pa.Table]) -> None:
        """Puts other records in the place of a file's; without any the file goes. Raises StorageFailed."""
        folder = os.path.dirname(file.path)
        with changing(self.path):
            with storage_trouble(folder, "read parked records", PARKING):
                table = changed(file.read())
            if table.num_rows:
                Staged(file.path, table, file.topic, file.partition).commit()
                return
            with storage_trouble(folder, "remove replayed records", PARKING):
                os.unlink(file.path)
                sync_folder(folder)
            for empty in (folder, os.path.dirname(folder)):
                with suppress(OSError):
                    os.rmdir(empty)

    def _check_there(self) -> None:
        if not os.path.isfile(os.path.join(self.path, MARKER)):
            raise StorageFailed(
                f"The folder for parked records, {self.path} ({DIR}), is not there any more, or not on this machine. "
                f"Bring it back, or start the connector again to have it made; on a cluster name a folder that all "
                f"machines share. {PARKING.kept}"
            )

    def _partition_folder(self, topic: str, partition: int) -> str:
        """Made where it is not there, for good."""
        above = os.path.join(self.path, naming.component(topic))
        place = os.path.join(above, str(partition))
        with storage_trouble(place, "make a folder for parked records", PARKING):
            if not os.path.isdir(place):
                os.makedirs(place, mode=0o700, exist_ok=True)
                sync_folder(above)
                sync_folder(self.path)
        return place

    def _check_room(self, staged: Staged, replaced_bytes: int, first: Rejected) -> None:
        with storage_trouble(self.path, "measure parked records", PARKING):
            used = used_bytes(self.path)
        if used - replaced_bytes + staged.size_bytes <= self._max_bytes:
            return
        staged.discard()
        where = f"Topic {first.topic}, topic-partition {first.partition}, offset {first.offset}"
        cure = f"Raise {MAX_BYTES}, or name a dead-letter topic"
        if used:
            cure = (
                "Look at them with parquet-sink parked list, correct the cause, and send them with parquet-sink parked "
                f"replay, or give them up with parquet-sink parked drop; or raise {MAX_BYTES}"
            )
        raise ParkedFull(
            f"{where}: {first.reason}. The record cannot be parked, because {MAX_BYTES}={self._max_bytes}: "
            f"{used:,} bytes are parked in {self.path}, and {staged.size_bytes - replaced_bytes:,} more would be too "
            f"many. {cure}. Nothing is lost: nothing from this record on is committed."
        ).at((first.topic, first.partition))


def _next_name(place: str) -> str:
    return name_of(max((number_in(name) or 0 for name in os.listdir(place)), default=0) + 1)


def _remove_unfinished(place: str) -> None:
    """What a crash left of files that were being written; nobody writes any now."""
    for name in filter(is_unfinished, os.listdir(place)):
        with suppress(OSError):
            os.unlink(os.path.join(place, name))


def _without_known(table: pa.Table, files: Sequence[ParkedFile]) -> pa.Table:
    """The records that are in none of the files: another topic of the same name may have other ones at an offset."""
    bounds = pc.min_max(table.column("offset")).as_py()
    near = [file for file in files if file.first_offset <= bounds["max"] and file.last_offset >= bounds["min"]]
    if not near:
        return table
    known: set[tuple[object, ...]] = set()
    for file in near:
        found = file.read(_IDENTITY)
        found = found.filter(pc.is_in(found.column("offset"), table.column("offset")))
        known |= set(_identities(found))
    return table.filter(pa.array([one not in known for one in _identities(table)], pa.bool_()))


def _identities(table: pa.Table) -> list[tuple[object, ...]]:
    columns = [table.column(name).cast(pa.int64()) if name == "timestamp" else table.column(name) for name in _IDENTITY]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


class ParkedStore:
    """Of one Spark task. Records are written when they are many, and at the latest when their range is flushed.

    What a crash leaves behind of a range that did not count is there already when the range comes again.
    """

    def __init__(self, folder: ParkedFolder) -> None:
        self._folder = folder
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
            self._folder.append(*key, records, int(time.time() * 1000))
        except ParkedFull:
            if len(records) < 2:
                raise
            middle = len(records) // 2
            self._park(key, records[:middle])
            self._park(key, records[middle:])
