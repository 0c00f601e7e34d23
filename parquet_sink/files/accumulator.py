"""Rows of one topic-partition range become finished, verified local Parquet files.

Rows wait as Arrow in memory until they make a row group, at most 24 MiB of them, so that four writers at once stay
well below the memory bound of the whole program. A row group ends early only when the file is full, its schema can
hold no further row, or the range ends. Row groups and files are cut between Kafka records, never within the rows of
one, so that a file's last offset is complete.

Files are a function of the rows with their schemas, the bytes per row learned before, and the settings: byte for byte
the same however the rows are parted into runs, because each decision is taken as if one record came after the other.
So a range that is repeated with the same knowledge gives the same files. Schemas come from the row builder, which gives
a column to all rows of the block in which it first has a value.
"""

import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from parquet_sink.files import group, rotation
from parquet_sink.files.group import Group, Piece, RecordTimes
from parquet_sink.files.parquet import FinishedFile, OpenFile, Place, footer_bytes
from parquet_sink.files.rotation import GROUP_MEMORY_BYTES, GROUP_ROWS, Fill, GroupEnd, GroupLimits, Limits, Reason
from parquet_sink.files.settings import FileSettings
from parquet_sink.files.storage import remove_unsent
from parquet_sink.rows.run import Run

__all__ = ["GROUP_MEMORY_BYTES", "GROUP_ROWS", "Accumulator", "FinishedFile", "Place"]


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
        self._group_limits = GroupLimits(GROUP_MEMORY_BYTES, GROUP_ROWS, settings.row_group_size_bytes)
        self._group = Group()
        self._open: OpenFile | None = None
        self._files = self._rows = 0
        self._last_offset = -1
        self._finished: list[FinishedFile] = []

    def add(self, run: Run, times: RecordTimes | None = None) -> list[FinishedFile]:
        """Takes the rows of a run; returns the files that became full. times: of all its records, None: not known.

        Raises StorageFailed; then call `abandon`. Raises ValueError for a run that goes on with the last record of the
        one before, which would part that record's rows: a defect of the row builder.
        """
        rest = Piece.of(run, times)
        if len(rest):
            if (first := run.first_offset) <= (last := self._last_offset):
                raise ValueError(f"run of offsets {first} to {run.last_offset} comes after {last}")
            self._last_offset = run.last_offset
        if run.incompatible:
            self._rotate(same_schema=False)
        while len(rest):
            rest = self._take(rest)
        return self._hand_out()

    def finish(self, reason: Reason) -> FinishedFile | None:
        """Ends the range: closes the open file with the range's reason. None when there are no rows left."""
        if self._fill().records:
            self._close(reason)
        return next(iter(self._hand_out()), None)

    def abandon(self) -> None:
        """Throws away what was not handed out; files that were are the caller's."""
        self._group = Group()
        for file in self._hand_out():
            remove_unsent(file.path)
        opened, self._open = self._open, None
        if opened is not None:
            opened.discard()

    def _hand_out(self) -> list[FinishedFile]:
        files, self._finished = self._finished, []
        return files

    def _take(self, piece: Piece) -> Piece:
        """Takes the first records of a piece, up to where anything ends; returns the others.

        None can be taken when the first has columns that the open file cannot have: then that file is closed.
        """
        schema = self._schema_with(piece.rows.schema)
        end = None if schema is None else self._end_of_group(schema)
        fitted = None if end is None else self._fitted(piece, schema, end)
        if end is None or fitted is None:
            self._rotate(same_schema=False)
            return piece
        taken = self._group.take(fitted, end)
        self._open_file()
        if self._group.complete(end):
            self._write_group()
        self._rotate()
        return piece.split(taken)[1]

    def _schema_with(self, schema: pa.Schema) -> pa.Schema | None:
        """The schema of the open file when rows of another schema enter, None when they cannot."""
        on_disk = self._open.schema if self._open else None
        current = self._group.schema if on_disk is None else on_disk
        if current is None or schema.equals(current):
            return schema
        if group.fits(schema, current):
            return current
        return group.unified(current, schema) if on_disk is None else None

    def _fitted(self, piece: Piece, schema: pa.Schema, end: GroupEnd) -> Piece | None:
        """The longest beginning, of no more than can be needed, with the open file's schema to be. None for no record.

        Rows in memory take that schema, too.
        """
        by_records = piece.after_records(self._limits.records - self._fill().records)
        by_rows = piece.after_rows(max(end.rows - self._group.rows, 1))
        fitted = _aligned(piece.split(min(by_records, by_rows))[0], schema)
        return fitted if fitted is not None and (not self._group.rows or self._group.widen(schema)) else None

    def _rotate(self, *, same_schema: bool = True) -> None:
        reason = rotation.should_rotate(self._fill(), self._limits, same_schema=same_schema)
        if reason is not None:
            self._close(reason)

    def _end_of_group(self, schema: pa.Schema) -> GroupEnd:
        return rotation.next_group(
            self._fill_on_disk(),
            self._limits,
            self._group_limits,
            footer_bytes=footer_bytes(schema.names, 1),
            parquet_bytes_per_row=self.bytes_per_row,
        )

    def _write_group(self) -> None:
        opened, group = self._open_file(), self._group
        self._rows += group.rows
        self._group = Group(self._rows)
        opened.write(group)
        self.bytes_per_row, self.bytes_per_record = opened.bytes_per_row, opened.bytes_per_record

    def _close(self, reason: Reason) -> None:
        if self._group.rows:
            self._write_group()
        self._finished.append(self._open_file().close(reason))
        self._open = None

    def _open_file(self) -> OpenFile:
        if self._open is None:
            self._open = OpenFile(self._place, self._settings, self._files, self._clock())
            self._files += 1
        return self._open

    def _fill(self) -> Fill:
        on_disk = self._fill_on_disk()
        return replace(on_disk, records=on_disk.records + self._group.records)

    def _fill_on_disk(self) -> Fill:
        return Fill(0, 0) if self._open is None else self._open.fill


def _aligned(piece: Piece, schema: pa.Schema) -> Piece | None:
    """The longest beginning of a piece whose values the schema can hold exactly, with it; None without a record."""
    rows = group.aligned(piece.rows, schema)
    if rows is not None:
        return piece.with_rows(rows)

    def lossy(records: int) -> bool:
        return group.aligned(piece.rows.slice(0, piece.after_records(records)), schema) is None

    held = bisect_left(range(1, piece.records), True, key=lossy)
    return _aligned(piece.split(piece.after_records(held))[0], schema) if held else None
