"""One local Parquet file, from its first row group to the verified whole.

Figures (200,000 rows of 7 payload and 4 metadata columns, one row group, Snappy, warm process, CPU time; page faults
add up to 0.5 µs per row to the first write of a process, whatever the settings):

    settings                                               µs per row   bytes per row
    PyArrow's defaults                                        0.29          41.3
    no dictionaries                                           0.18          41.3
    dictionaries where they pay                               0.18          37.8
    the same, no statistics, no Arrow schema   <- chosen      0.15          37.7
    the same, 4,096 or 20,000 values at a time                0.15          37.7
    the same, pages of 256 KiB or 8 MiB                       0.15          37.7
    the same, chunks combined first                           0.16          37.7
    the same, integers DELTA_BINARY_PACKED                    0.14          29.1
    the same, kafkaPartitionOffset DELTA_BYTE_ARRAY           0.16          24.6
    zstd instead of Snappy                                    0.21          16.8

A dictionary costs most where values hardly repeat (an id: 0.033 µs against 0.010 plain), so each column gets one only
if a sample of its first rows repeats. Delta encodings are smaller and no dearer, yet not used: several loaders cannot
read them (StarRocks, Iceberg's vectorised reader, Spark before 3.3), the reference connector writes none, and a target
that cannot decode a file says so only after accepting it. Row groups of 20,000 rows and of 500,000 cost the same CPU.

Times of a day are marked as adjusted to UTC, as the reference connector marks them; Arrow's default is the opposite.

Files are not fsynced: until the target has accepted a file its records are still in Kafka, and a file that a crash of
the machine damaged is never sent, because nothing of before a crash is.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_sink.errors import StorageFailed
from parquet_sink.files import naming
from parquet_sink.files.group import Group
from parquet_sink.files.rotation import Fill, Reason
from parquet_sink.files.settings import FileSettings
from parquet_sink.files.storage import remove_unsent, storage_trouble
from parquet_sink.model.frames import FrameSlice
from parquet_sink.model.partitions import PartitionKey

FOOTER_METADATA: Final = {"org.apache.spark.version": "3.1.0"}
"""By this Spark knows that days and times are of the proleptic Gregorian calendar.

Without it Spark 3 refuses dates before 1582 and timestamps before 1900: older versions wrote them otherwise.
"""

SAMPLE_ROWS: Final = 1024
MOST_DISTINCT_SHARE: Final = 0.25
# Serialized footer, measured: 55 to 60 bytes and the name for each column of each row group, without statistics.
FOOTER_BYTES_PER_CHUNK: Final = 60
FOOTER_BYTES_PER_COLUMN: Final = 20


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
    """One file of a range, on disk from its first row group on. `number`: how many of the attempt came before.

    Dictionary columns are chosen at the first row group.
    """

    def __init__(self, place: Place, settings: FileSettings, number: int, opened_at: float) -> None:
        self._place, self._opened_at, self._codec = place, opened_at, settings.codec
        self._folder = naming.partition_folder(settings.tmp_dir, place.connector, place.topic, place.partition)
        self.path = os.path.join(self._folder, naming.attempt_name(place.attempt, number))
        self.schema: pa.Schema | None = None
        """Of the rows on disk, None before the first."""
        self._sink: pa.NativeFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._rows = self._groups = self._records = 0
        self._first_offset = self._last_offset = -1
        self._oldest_ms: int | None = None
        self._first_ms: int | None = None
        self._write_seconds = 0.0

    @property
    def fill(self) -> Fill:
        """How full it is, by what is on disk."""
        if self.schema is None:
            return Fill(0, 0)
        return Fill(self._records, self._data_bytes + footer_bytes(self.schema.names, self._groups))

    @property
    def bytes_per_row(self) -> float:
        """Bytes on disk for each row; for a file with rows."""
        return self._data_bytes / self._rows

    @property
    def bytes_per_record(self) -> float:
        """Bytes on disk for each Kafka record; for a file with rows."""
        return self._data_bytes / self._records

    @property
    def _data_bytes(self) -> int:
        """Bytes written so far, without footer."""
        return self._sink.tell() if self._sink is not None else 0

    def write(self, group: Group) -> None:
        """Appends a row group. Raises StorageFailed."""
        started = time.perf_counter()
        with storage_trouble(self._folder, "write a Parquet file"):
            rows = group.table()
            writer = self._writer or self._open(rows)
            writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        self._rows += rows.num_rows
        self._groups += 1
        self._write_seconds += time.perf_counter() - started
        if not self._records:
            self._first_offset, self._first_ms = group.first_offset, group.first_ms
        self._last_offset = group.last_offset
        self._records += group.records
        self._oldest_ms = min((ms for ms in (self._oldest_ms, group.oldest_ms) if ms is not None), default=None)

    def _open(self, rows: pa.Table) -> pq.ParquetWriter:
        self.schema = rows.schema
        try:
            self._sink = pa.OSFile(self.path, "wb")
        except FileNotFoundError:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            self._sink = pa.OSFile(self.path, "wb")
        self._writer = pq.ParquetWriter(
            self._sink,
            rows.schema,
            version="2.6",
            compression=self._codec,
            use_dictionary=list(dictionary_columns(rows)),
            write_statistics=False,
            store_schema=False,
            write_time_adjusted_to_utc=True,
        )
        return self._writer

    def close(self, reason: Reason) -> FinishedFile:
        """Writes the footer, and verifies the file. Raises StorageFailed."""
        assert self._writer is not None
        assert self._sink is not None
        started = time.perf_counter()
        with storage_trouble(self._folder, "finish and verify a Parquet file"):
            self._writer.add_key_value_metadata(FOOTER_METADATA)
            self._writer.close()
            self._sink.close()
            size = os.stat(self.path).st_size
            found, digest = footer_rows(self.path), sha256_of(self.path)  # from the disk, never the writer's word
        if found != self._rows:
            raise StorageFailed(
                f"File {self.path} of {self._place.described} has {found} rows by its footer, "
                f"{self._rows} were written; it is not sent. Check the disk."
            ).at(self._place.topic_partition)
        self._write_seconds += time.perf_counter() - started
        return self._described(size, reason, digest)

    def discard(self) -> None:
        """Closes it, whatever could be written, and removes it. Never raises for the disk."""
        for part in (self._writer, self._sink):
            if part is not None:
                with suppress(OSError, pa.ArrowException):
                    part.close()
        if self._writer is not None:
            self._writer.is_open = False  # or the garbage collector would try once more to write the footer
        remove_unsent(self.path)

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
            rows=self._rows,
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


def dictionary_columns(rows: pa.Table) -> tuple[str, ...]:
    """Columns whose values repeat enough for a dictionary, from a look at the first rows. Nested columns get none."""
    sample = rows.slice(0, SAMPLE_ROWS)
    if MOST_DISTINCT_SHARE * sample.num_rows < 1:
        return ()
    return tuple(name for name, column in zip(sample.schema.names, sample.columns, strict=True) if _repeats(column))


def _repeats(column: pa.ChunkedArray) -> bool:
    if pa.types.is_nested(column.type) or pa.types.is_boolean(column.type):
        return False
    return len(column.unique()) <= MOST_DISTINCT_SHARE * len(column)


def footer_bytes(names: Sequence[str], groups: int) -> int:
    """Estimated size of the footer of a file with these columns and so many row groups."""
    of_names = sum(map(len, names))
    return (
        64 + of_names + FOOTER_BYTES_PER_COLUMN * len(names) + groups * (FOOTER_BYTES_PER_CHUNK * len(names) + of_names)
    )


def sha256_of(path: str) -> str:
    """SHA-256 of a finished file, hexadecimal. Raises OSError.

    It is read again from the page cache, right after it was written: about 1 ms for each megabyte, as much as a digest
    of what passes by on its way to the disk (which Arrow would have to hand to Python piece by piece).
    """
    with open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def footer_rows(path: str) -> int:
    """Rows that the footer of a finished file states, read from disk. Raises OSError or pa.ArrowException."""
    return int(pq.read_metadata(path).num_rows)
