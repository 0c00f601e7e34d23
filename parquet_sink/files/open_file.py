"""The file being written, from its first row group to the verified whole."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from parquet_sink.errors import StorageFailed
from parquet_sink.files import naming
from parquet_sink.files.group import Group
from parquet_sink.files.parquet import ParquetFile, footer_bytes, footer_rows, sha256_of
from parquet_sink.files.rotation import Fill, Reason
from parquet_sink.files.settings import FileSettings
from parquet_sink.files.storage import storage_trouble
from parquet_sink.model.frames import FrameSlice
from parquet_sink.model.partitions import PartitionKey


@dataclass(frozen=True)
class FinishedFile:
    """A verified file, ready to be sent. Offsets are those of its first and last row; sizes are bytes on disk.

    records: Kafka records, which have one row each unless they were exploded. opened_at: epoch seconds. write_seconds:
    time spent encoding and writing. oldest_ms: oldest Kafka timestamp (epoch milliseconds) of its own records, None
    when not told, or when none has one. first_ms: that of its first record, likewise. table: at the target, None for
    the connector's one. frame: for rows of a DataFrame; then offsets count rows, from 0 in each Spark task. digest:
    SHA-256 of its bytes, hexadecimal.
    """

    path: str
    name: str
    topic: str
    partition: int
    first_offset: int
    last_offset: int
    records: int
    rows: int
    size_bytes: int
    reason: Reason
    opened_at: float
    write_seconds: float
    oldest_ms: int | None
    frame: FrameSlice | None = None
    table: str | None = None
    digest: str | None = None
    first_ms: int | None = None

    @property
    def origin(self) -> str:
        """Which rows it has, as a message begins."""
        if self.frame is not None:
            return f"{self.frame.described}, rows {self.first_offset} to {self.last_offset}"
        offsets = f"offsets {self.first_offset} to {self.last_offset}"
        return f"Topic {self.topic}, topic-partition {self.partition}, {offsets}"

    @property
    def kept_name(self) -> str:
        """Its local name when it is kept after it was accepted."""
        return naming.kept_name(self.last_offset) if self.frame is None else self.name


@dataclass(frozen=True)
class Place:
    """Where the files of one range go. `attempt`: 32 hexadecimal digits, fresh for each attempt at a range.

    frame: for rows of a DataFrame; topic and partition are its label and partition then. table: see `FinishedFile`.
    """

    connector: str
    topic: str
    partition: int
    attempt: str
    frame: FrameSlice | None = None
    table: str | None = None

    @property
    def described(self) -> str:
        """For messages."""
        return f"topic {self.topic}, topic-partition {self.partition}" if self.frame is None else self.frame.described

    @property
    def topic_partition(self) -> PartitionKey | None:
        """Of its records; None for rows of a DataFrame."""
        return (self.topic, self.partition) if self.frame is None else None

    def file_name(self, first: int, last: int, size_bytes: int, records: int) -> str:
        """The name of a file with these rows."""
        if self.frame is not None:
            return naming.frame_file_name(self.connector, self.frame, first, last, size_bytes, records)
        return naming.file_name(self.topic, self.partition, first, last, size_bytes, records)


class OpenFile:
    """One file of a range, on disk from its first row group on. `number`: how many of the attempt came before."""

    def __init__(self, place: Place, settings: FileSettings, number: int, opened_at: float) -> None:
        self._place, self._opened_at = place, opened_at
        self._folder = naming.partition_folder(settings.tmp_dir, place.connector, place.topic, place.partition)
        path = os.path.join(self._folder, naming.attempt_name(place.attempt, number))
        self._file = ParquetFile(path, settings.codec)
        self._first_offset = self._last_offset = -1
        self._records = 0
        self._oldest_ms: int | None = None
        self._first_ms: int | None = None
        self._write_seconds = 0.0

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def schema(self) -> pa.Schema | None:
        """Schema of the rows on disk, None before the first."""
        return self._file.schema

    @property
    def fill(self) -> Fill:
        """How full it is, by what is on disk."""
        if self._file.schema is None:
            return Fill(0, 0)
        return Fill(self._records, self._file.data_bytes + footer_bytes(self._file.schema.names, self._file.groups))

    @property
    def bytes_per_row(self) -> float:
        """Bytes on disk for each row; for a file with rows."""
        return self._file.data_bytes / self._file.rows

    @property
    def bytes_per_record(self) -> float:
        """Bytes on disk for each Kafka record; for a file with rows."""
        return self._file.data_bytes / self._records

    def write(self, group: Group) -> None:
        """Appends a row group. Raises StorageFailed."""
        started = time.perf_counter()
        with storage_trouble(self._folder, "write a Parquet file"):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            self._file.write_group(group.table())
        self._write_seconds += time.perf_counter() - started
        if not self._records:
            self._first_offset, self._first_ms = group.first_offset, group.first_ms
        self._last_offset = group.last_offset
        self._records += group.records
        self._oldest_ms = min((ms for ms in (self._oldest_ms, group.oldest_ms) if ms is not None), default=None)

    def close(self, reason: Reason) -> FinishedFile:
        """Writes the footer, and verifies the file. Raises StorageFailed."""
        started = time.perf_counter()
        with storage_trouble(self._folder, "finish and verify a Parquet file"):
            self._file.close()
            size = os.stat(self.path).st_size
            found, digest = footer_rows(self.path), sha256_of(self.path)  # from the disk, never the writer's word
        if found != self._file.rows:
            raise StorageFailed(
                f"File {self.path} of {self._place.described} has {found} rows by its footer, "
                f"{self._file.rows} were written; it is not sent. Check the disk."
            ).at(self._place.topic_partition)
        self._write_seconds += time.perf_counter() - started
        return self._described(size, reason, digest)

    def discard(self) -> None:
        """Closes it, whatever could be written, and removes it."""
        self._file.discard()
        remove(self.path)

    def _described(self, size: int, reason: Reason, digest: str) -> FinishedFile:
        topic, partition, first, last = self._place.topic, self._place.partition, self._first_offset, self._last_offset
        return FinishedFile(
            path=self.path,
            name=self._place.file_name(first, last, size, self._records),
            topic=topic,
            partition=partition,
            first_offset=first,
            last_offset=last,
            records=self._records,
            rows=self._file.rows,
            size_bytes=size,
            reason=reason,
            opened_at=self._opened_at,
            write_seconds=self._write_seconds,
            oldest_ms=self._oldest_ms,
            frame=self._place.frame,
            table=self._place.table,
            digest=digest,
            first_ms=self._first_ms,
        )


def remove(path: str) -> None:
    """Removes a file of ours; one that was never made, or is gone, is fine. What stays is swept later."""
    with suppress(OSError):
        os.unlink(path)
