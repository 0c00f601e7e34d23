"""Rows of one topic-partition range become finished, verified local Parquet files.

Rows wait as Arrow in memory until they make a row group, at most 24 MiB of them, so that four writers at once stay
well below the memory bound of the whole program. A row group ends early only when the file is full, its schema can
hold no further row, or the range ends. Row groups and files are cut between Kafka records, never within the rows of
one, so that a file's last offset is complete.
"""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from parquet_sink.config.settings import FileSettings
from parquet_sink.errors import StorageFailed
from parquet_sink.files import naming, rotation, schemas
from parquet_sink.files.buffer import Buffer, Piece, RunLike
from parquet_sink.files.parquet import ParquetFile, footer_bytes, footer_rows
from parquet_sink.files.rotation import Fill, GroupLimits, Limits, Reason
from parquet_sink.files.storage import storage_trouble

GROUP_MEMORY_BYTES: Final = 24 << 20
GROUP_ROWS: Final = 1_000_000


@dataclass(frozen=True)
class FinishedFile:
    """A verified file, ready to be sent. Offsets are those of its first and last row; sizes are bytes on disk.

    records: Kafka records, which have one row each unless they were exploded. opened_at: epoch seconds. write_seconds:
    time spent encoding and writing. oldest_ms: oldest Kafka timestamp (epoch milliseconds) of the runs within, None
    when not told.
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


@dataclass(frozen=True)
class Place:
    """Where the files of one range go. `attempt`: 32 hexadecimal digits, fresh for each attempt at a range."""

    connector: str
    topic: str
    partition: int
    attempt: str


@dataclass
class _Open:
    """The file being written. It exists on disk from its first row group on."""

    file: ParquetFile
    opened_at: float
    first_offset: int | None = None
    last_offset: int = -1
    records: int = 0
    oldest_ms: int | None = None
    write_seconds: float = 0.0


class Accumulator:
    """One for each topic-partition range. Used by one thread.

    bytes_per_row: Parquet bytes per row learned earlier (size_bytes / rows of a receipt), None when unknown.
    bytes_per_record: the same for each Kafka record, None until a row group was written.
    """

    def __init__(
        self,
        place: Place,
        limits: Limits,
        settings: FileSettings,
        *,
        bytes_per_row: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.bytes_per_row = bytes_per_row
        self.bytes_per_record: float | None = None
        self._place, self._limits, self._settings, self._clock = place, limits, settings, clock
        self._group = GroupLimits(GROUP_MEMORY_BYTES, GROUP_ROWS, settings.row_group_size_bytes)
        self._folder = naming.partition_folder(settings.tmp_dir, place.connector, place.topic, place.partition)
        self._buffer = Buffer()
        self._open: _Open | None = None
        self._files = 0
        self._last_offset = -1
        self._finished: list[FinishedFile] = []

    def add(self, run: RunLike, oldest_ms: int | None = None) -> list[FinishedFile]:
        """Takes the rows of a run; returns the files that became full. oldest_ms: smallest Kafka timestamp in it.

        Raises StorageFailed; then call `abandon`. Raises ValueError for a run that goes on with the last record of the
        one before, which would part that record's rows: a defect of shaping.
        """
        rest = Piece.of(run, oldest_ms)
        if len(rest):
            self._check_order(run)
        if run.incompatible:
            self._rotate(same_schema=False)
        while len(rest):
            head, rest = rest.split(rest.after_records(self._limits.records - self._fill().records))
            self._take_in(head)
            self._write_full_groups()
            self._rotate()
        return self._hand_out()

    def _check_order(self, run: RunLike) -> None:
        if run.first_offset <= self._last_offset:
            raise ValueError(f"run of offsets {run.first_offset} to {run.last_offset} comes after {self._last_offset}")
        self._last_offset = run.last_offset

    def finish(self, reason: Reason) -> FinishedFile | None:
        """Ends the range: closes the open file with the range's reason. None when there are no rows left."""
        if self._fill().records:
            self._close(reason)
        return next(iter(self._hand_out()), None)

    def abandon(self) -> None:
        """Throws away what was not handed out; files that were are the caller's."""
        self._buffer = Buffer()
        for file in self._hand_out():
            _remove(file.path)
        opened, self._open = self._open, None
        if opened is not None:
            opened.file.discard()
            _remove(opened.file.path)

    def _hand_out(self) -> list[FinishedFile]:
        files, self._finished = self._finished, []
        return files

    def _take_in(self, piece: Piece) -> None:
        """Brings a piece to the schema of the open file, or that file, while in memory, to a schema for both."""
        fitted = self._fitted(piece)
        if fitted is None:
            self._rotate(same_schema=False)
        self._buffer.append(fitted or piece)
        self._open_file()

    def _fitted(self, piece: Piece) -> Piece | None:
        on_disk = self._open.file.schema if self._open else None
        current = on_disk if on_disk is not None else self._buffer.schema
        if current is None or piece.rows.schema.equals(current):
            return piece
        target = current if schemas.fits(piece.rows.schema, current) else None
        if target is None and on_disk is None:
            target = schemas.unified(current, piece.rows.schema)
        rows = None if target is None else schemas.aligned(piece.rows, target)
        if rows is None or target is None or not (target.equals(current) or self._buffer.widen(target)):
            return None
        return replace(piece, rows=rows)

    def _rotate(self, *, same_schema: bool = True) -> None:
        reason = rotation.should_rotate(self._fill(), self._limits, same_schema=same_schema)
        if reason is not None:
            self._close(reason)

    def _write_full_groups(self) -> None:
        """Writes row groups while there are rows for a whole one, and rotates whenever that fills the file."""
        while self._buffer.rows >= (rows := self._planned_rows()):
            self._write_group(rows)
            if rotation.holds_enough_bytes(self._fill(), self._limits):
                self._close_file(Reason.SIZE)

    def _planned_rows(self) -> int:
        if not self._buffer.rows:
            return 1  # more than there are
        names = self._buffer.schema.names if self._buffer.schema is not None else []
        return rotation.rows_of_next_group(
            self._fill(),
            self._limits,
            self._group,
            footer_bytes=footer_bytes(names, 1),
            arrow_bytes_per_row=self._buffer.bytes_per_row,
            parquet_bytes_per_row=self.bytes_per_row,
        )

    def _write_group(self, rows: int) -> None:
        opened = self._open_file()
        pieces = self._buffer.take(rows)
        started = time.perf_counter()
        with self._trouble("write a Parquet file"):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            opened.file.write_group(pa.concat_tables([piece.rows for piece in pieces]))
        opened.write_seconds += time.perf_counter() - started
        if opened.first_offset is None:
            opened.first_offset = pieces[0].offset(0)
        opened.last_offset = pieces[-1].offset(-1)
        opened.records += sum(piece.records for piece in pieces)
        ages = [ms for ms in (opened.oldest_ms, *(piece.oldest_ms for piece in pieces)) if ms is not None]
        opened.oldest_ms = min(ages, default=None)
        self.bytes_per_row = opened.file.data_bytes / opened.file.rows
        self.bytes_per_record = opened.file.data_bytes / opened.records

    def _close(self, reason: Reason) -> None:
        while self._buffer.rows:
            self._write_group(self._planned_rows())
        self._close_file(reason)

    def _close_file(self, reason: Reason) -> None:
        opened = self._open_file()
        started = time.perf_counter()
        with self._trouble("finish and verify a Parquet file"):
            opened.file.close()
            size = os.stat(opened.file.path).st_size
            found = footer_rows(opened.file.path)
        if found != opened.file.rows:
            raise StorageFailed(
                f"File {opened.file.path} of topic {self._place.topic}, topic-partition {self._place.partition} has "
                f"{found} rows by its footer, {opened.file.rows} were written; it is not sent. Check the disk."
            )
        self._open = None
        opened.write_seconds += time.perf_counter() - started
        self._finished.append(self._described(opened, size, reason))

    def _described(self, opened: _Open, size: int, reason: Reason) -> FinishedFile:
        place, records, first = self._place, opened.records, opened.first_offset
        assert first is not None
        return FinishedFile(
            path=opened.file.path,
            name=naming.file_name(place.topic, place.partition, first, opened.last_offset, size, records),
            topic=place.topic,
            partition=place.partition,
            first_offset=first,
            last_offset=opened.last_offset,
            records=records,
            rows=opened.file.rows,
            size_bytes=size,
            reason=reason,
            opened_at=opened.opened_at,
            write_seconds=opened.write_seconds,
            oldest_ms=opened.oldest_ms,
        )

    def _open_file(self) -> _Open:
        if self._open is None:
            name = naming.attempt_name(self._place.attempt, self._files)
            self._files += 1
            file = ParquetFile(os.path.join(self._folder, name), self._settings.codec)
            self._open = _Open(file, self._clock())
        return self._open

    def _fill(self) -> Fill:
        if self._open is None or self._open.file.schema is None:
            return Fill(self._buffer.records, 0)
        file = self._open.file
        footer = footer_bytes(file.schema.names if file.schema is not None else [], file.groups)
        return Fill(self._buffer.records + self._open.records, file.data_bytes + footer)

    def _trouble(self, doing: str) -> AbstractContextManager[None]:
        return storage_trouble(self._folder, doing)


def _remove(path: str) -> None:
    with suppress(OSError):  # never made, or gone; what stays is removed at the next start
        os.unlink(path)
