"""Rows on their way into a row group of a Parquet file: how they are cut, kept, sized, and fitted to a schema.

A Kafka record may have several rows (explode). They are never parted: every cut falls between two records.

All of it follows from the rows, one after the other, and not from how they arrived: Arrow's writer ends a data page
where an array ends, so arrays that end elsewhere would be other bytes, and a file of another size and name.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.files.rotation import GroupEnd
from parquet_sink.rows.run import Run
from parquet_sink.rows.schema import evolution
from parquet_sink.rows.schema.evolution import Change


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


@dataclass(frozen=True)
class Piece:
    """All rows of consecutive records; `offsets` has one entry for each row. `times`: of these records, and of others.

    starts: where each record begins, counted in rows from `base` rows before the first one here; None when every
    record has one row, which then costs nothing.
    """

    rows: pa.Table
    offsets: pa.Int64Array
    times: RecordTimes | None = None
    starts: pa.Int64Array | None = None
    base: int = 0

    @classmethod
    def of(cls, run: Run, times: RecordTimes | None) -> "Piece":
        """Raises ValueError when the run's counts contradict each other: that would be a defect of shaping."""
        rows = run.rows
        starts = _starts(run.offsets) if run.records != len(run.offsets) else None
        records = len(run.offsets) if starts is None else len(starts)
        if not rows.num_rows == len(run.offsets) or run.records != records:
            raise ValueError(
                f"run of offsets {run.first_offset} to {run.last_offset} has {rows.num_rows} rows, {run.records} "
                f"records and {len(run.offsets)} offsets, {records} of them different; it needs an offset for each "
                f"row, and as many different ones as records"
            )
        return cls(rows.replace_schema_metadata(None), run.offsets, times, starts)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def records(self) -> int:
        """How many Kafka records the rows are of."""
        return len(self) if self.starts is None else len(self.starts)

    @property
    def oldest_ms(self) -> int | None:
        """Smallest Kafka timestamp of the records, epoch milliseconds; None when not told, or none has one."""
        return None if self.times is None else self.times.oldest_ms(self.offsets, self.records)

    @property
    def first_ms(self) -> int | None:
        """Kafka timestamp of the first record, epoch milliseconds; None when not told, or it has none."""
        return None if self.times is None else self.times.of_record(self.offset(0))

    def after_records(self, count: int) -> int:
        """How many rows the first `count` records have, all rows when there are not so many."""
        if count >= self.records:
            return len(self)
        return count if self.starts is None else int(self.starts[count].as_py()) - self.base

    def after_rows(self, count: int) -> int:
        """The first row at or behind that many with which a record begins, all rows when there is none."""
        if self.starts is None or count >= len(self):
            return min(count, len(self))
        return self.after_records(_first(self.starts, self.base + count))

    def split(self, at: int) -> tuple["Piece", "Piece"]:
        """The first `at` rows, and the rest; a record must begin there. Nothing is copied."""
        head, tail = None, None
        if self.starts is not None:
            count = _first(self.starts, self.base + at)
            head, tail = self.starts[:count], self.starts[count:]
        return (
            Piece(self.rows.slice(0, at), self.offsets[:at], self.times, head, self.base),
            Piece(self.rows.slice(at), self.offsets[at:], self.times, tail, self.base + at),
        )

    def with_rows(self, rows: pa.Table) -> "Piece":
        """The same records with these rows, one for each of before."""
        return replace(self, rows=rows)

    def offset(self, index: int) -> int:
        """Kafka offset of one row; -1 is the last."""
        return int(self.offsets[index].as_py())


def _first(starts: pa.Int64Array, wanted: int) -> int:
    """The index of the first of them that is not below `wanted`."""
    return bisect_left(range(len(starts)), wanted, key=lambda index: int(starts[index].as_py()))


def _starts(offsets: pa.Int64Array) -> pa.Int64Array:
    """The rows with which records begin. Raises ValueError when offsets decrease."""
    if not len(offsets):
        return pa.array([], pa.int64())
    before, after = offsets[:-1], offsets[1:]
    if pc.any(pc.less(after, before)).as_py():
        raise ValueError("offsets of a run decrease")
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.add(pc.indices_nonzero(pc.not_equal(after, before)), 1)])


_OFFSET = 4
_BITS = 8
CHUNK_ROWS: Final = 10_000
"""Arrays end at each so-many-th row of the range: as many as a block has, so that most need not be copied."""


def unified(older: pa.Schema, newer: pa.Schema) -> pa.Schema | None:
    """A schema that can hold rows of both, None when there is none; `rows.schema.evolution` says which types can.

    Nothing is ever altered: an integer that a double cannot hold exactly makes two schemas incompatible.

    Columns stand in the order of the newer schema when it has all columns of the older, otherwise new ones follow.
    """
    if older.equals(newer):
        return older
    if not older.names:
        return pa.schema([field.with_nullable(True) for field in newer])
    columns, change = evolution.merged(tuple(older), tuple(newer))
    if change is Change.INCOMPATIBLE:
        return None
    if len(columns) == len(newer):
        places = {name: place for place, name in enumerate(newer.names)}
        columns = tuple(sorted(columns, key=lambda field: places[field.name]))
    return pa.schema(columns)


def fits(schema: pa.Schema, into: pa.Schema) -> bool:
    """Whether rows of `schema` can enter a file of schema `into` as that is now."""
    if schema.equals(into):
        return True
    both = unified(into, schema)
    if both is None or set(both.names) != set(into.names):
        return False
    return all(both.field(name).equals(into.field(name)) for name in both.names)


def aligned(rows: pa.Table, schema: pa.Schema) -> pa.Table | None:
    """`rows` with exactly the columns of `schema`, None when a value cannot be kept exactly."""
    if rows.schema.equals(schema):
        return rows
    nulls: dict[pa.DataType, pa.Array] = {}
    try:
        columns = [_column(rows, field, nulls) for field in schema]
    except pa.ArrowInvalid:
        return None
    return pa.Table.from_arrays(columns, schema=schema)


def _column(rows: pa.Table, field: pa.Field, nulls: dict[pa.DataType, pa.Array]) -> pa.ChunkedArray | pa.Array:
    """One array of nulls serves all columns of a type that the rows lack: they may be thousands."""
    position = rows.schema.get_field_index(field.name)
    if position >= 0:
        return evolution.aligned(rows.column(position), field.type)
    if field.type not in nulls:
        nulls[field.type] = pa.nulls(rows.num_rows, field.type)
    return nulls[field.type]


class Sizes:
    """Counts the bytes of rows of one schema, from their values alone, so that it does not depend on how rows arrived.

    Arrow's own count (`nbytes`) depends on how rows are cut into arrays: it has an offset more and some bits of padding
    for each, and the bits that tell nulls only where there are some.
    fixed: bytes that each row takes whatever its values: numbers, and what tells where texts and lists begin.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.fixed = sum(_fixed(field.type) for field in schema)
        self._varying = [place for place, field in enumerate(schema) if _varies(field.type)]

    def variable(self, rows: pa.Table) -> int:
        """Bytes of texts, and of what is in lists and maps, in all these rows together."""
        return sum(_variable(chunk) for place in self._varying for chunk in rows.column(place).chunks)


def _fixed(of: pa.DataType) -> int:
    if pa.types.is_null(of):
        return 0
    if pa.types.is_struct(of):
        return sum(_fixed(of.field(index).type) for index in range(of.num_fields))
    if _varies(of):
        return _OFFSET
    return max(int(of.bit_width) // _BITS, 1)


def _varies(of: pa.DataType) -> bool:
    if pa.types.is_struct(of):
        return any(_varies(of.field(index).type) for index in range(of.num_fields))
    return _is_text(of) or pa.types.is_list(of) or pa.types.is_map(of)


def _is_text(of: pa.DataType) -> bool:
    return of in (pa.string(), pa.binary())


def _variable(array: pa.Array) -> int:
    """Null is not a value: what lies below it in the array does not count."""
    of = array.type
    if array.null_count == len(array) or not _varies(of):
        return 0
    if _is_text(of):
        return _text_bytes(array)
    if pa.types.is_struct(of):
        return sum(map(_variable, array.flatten()))
    there = array.drop_null() if array.null_count else array
    if pa.types.is_map(of):
        return _between(there, there.keys) + _between(there, there.items)
    return _between(there, there.values)


def _text_bytes(array: pa.Array) -> int:
    if array.null_count:
        return int(pc.sum(pc.binary_length(array)).as_py() or 0)
    ends = memoryview(array.buffers()[1]).cast("i")
    return int(ends[array.offset + len(array)] - ends[array.offset])


def _between(lists: pa.Array, items: pa.Array) -> int:
    """All bytes of the items that belong to these lists, none of which is null."""
    first, last = lists.offsets[0].as_py(), lists.offsets[len(lists)].as_py()
    mine = items.slice(first, last - first)
    return len(mine) * _fixed(mine.type) + _variable(mine)


class Group:
    """The row group to come, in one schema. before: rows of the range that went into the groups before it."""

    def __init__(self, before: int = 0) -> None:
        self.rows = self.records = 0
        self.first_offset, self.last_offset = -1, -1
        self.oldest_ms: int | None = None
        self.first_ms: int | None = None
        self._before = before
        self.schema: pa.Schema | None = None
        """Of the rows within, None when empty."""
        self._sizes = Sizes(pa.schema([]))
        self._variable_bytes = 0
        self._chunks: list[pa.Table] = []
        self._open: list[pa.Table] = []

    def take(self, piece: Piece, end: GroupEnd) -> int:
        """Adds the first records of a piece, until the group is complete; returns how many rows they have.

        The piece has records, and the group's schema. At least one record is taken.
        """
        if self.schema is None:
            self._set_schema(piece.rows.schema)
        taken = piece.after_rows(max(end.rows - self.rows, 1))
        variable, room = self._variable(piece, taken), end.memory_bytes - self._bytes
        if variable + taken * self._sizes.fixed >= room and taken > piece.after_rows(1):
            taken = self._rows_until(piece, taken, room)
            variable = self._variable(piece, taken)
        self._append(piece if taken == len(piece) else piece.split(taken)[0], variable)
        return taken

    def complete(self, end: GroupEnd) -> bool:
        """Whether the group has reached its end."""
        return self.rows >= end.rows or self._bytes >= end.memory_bytes

    @property
    def _bytes(self) -> int:
        return self._variable_bytes + self.rows * self._sizes.fixed

    def _variable(self, piece: Piece, rows: int) -> int:
        return self._sizes.variable(piece.rows if rows == len(piece) else piece.rows.slice(0, rows))

    def _rows_until(self, piece: Piece, most: int, room: float) -> int:
        """How many rows the first records have that fill the room, at most so many."""

        def size(rows: int) -> int:
            return rows * self._sizes.fixed + self._variable(piece, rows)

        return piece.after_rows(1 + bisect_left(range(1, most), room, key=size))

    def _append(self, piece: Piece, variable: int) -> None:
        if not self.rows:
            self.first_offset, self.first_ms = piece.offset(0), piece.first_ms
        self.last_offset = piece.offset(-1)
        self.records += piece.records
        self.oldest_ms = min((ms for ms in (self.oldest_ms, piece.oldest_ms) if ms is not None), default=None)
        self._variable_bytes += variable
        rest = piece.rows
        while rest.num_rows:
            room = CHUNK_ROWS - (self._before + self.rows) % CHUNK_ROWS
            head, rest = rest.slice(0, room), rest.slice(room)
            self._open.append(head)
            self.rows += head.num_rows
            if head.num_rows == room:
                self._end_chunk()

    def _set_schema(self, schema: pa.Schema) -> None:
        self.schema, self._sizes = schema, Sizes(schema)

    def widen(self, schema: pa.Schema) -> bool:
        """Gives the rows within another schema; False, and nothing changed, when a value cannot be kept exactly."""
        if schema.equals(self.schema):
            return True
        chunks, opened = _aligned(self._chunks, schema), _aligned(self._open, schema)
        if chunks is None or opened is None:
            return False
        self._chunks, self._open = chunks, opened
        self._set_schema(schema)
        return True

    def table(self) -> pa.Table:
        """All rows; columns are in arrays that end where they always end."""
        self._end_chunk()
        return pa.concat_tables(self._chunks)

    def _end_chunk(self) -> None:
        if self._open:
            self._chunks.append(pa.concat_tables(self._open).combine_chunks())
            self._open = []


def _aligned(tables: Sequence[pa.Table], schema: pa.Schema) -> list[pa.Table] | None:
    found = [aligned(table, schema) for table in tables]
    return None if any(table is None for table in found) else found
