"""Rows that wait in memory for the next row group: how they are kept, when there are enough, what schema they share.

All of it follows from the rows, one after the other, and not from how they arrived: Arrow's writer ends a data page
where an array ends, so arrays that end elsewhere would be other bytes, and a file of another size and name.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from parquet_sink.files import schemas
from parquet_sink.files.piece import Piece
from parquet_sink.files.rotation import GroupEnd
from parquet_sink.files.sizes import Sizes

CHUNK_ROWS: Final = 10_000
"""Arrays end at each so-many-th row of the range: as many as a block has, so that most need not be copied."""


class Group:
    """The row group to come, in one schema. before: rows of the range that went into the groups before it."""

    def __init__(self, before: int = 0) -> None:
        self.rows = self.records = 0
        self.first_offset, self.last_offset = -1, -1
        self.oldest_ms: int | None = None
        self.first_ms: int | None = None
        self._before = before
        self._schema: pa.Schema | None = None
        self._sizes = Sizes(pa.schema([]))
        self._variable_bytes = 0
        self._chunks: list[pa.Table] = []
        self._open: list[pa.Table] = []

    @property
    def schema(self) -> pa.Schema | None:
        """Schema of the rows within, None when empty."""
        return self._schema

    def take(self, piece: Piece, end: GroupEnd) -> int:
        """Adds the first records of a piece, until the group is complete; returns how many rows they have.

        The piece has records, and the group's schema. At least one record is taken.
        """
        if self._schema is None:
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
        self._schema, self._sizes = schema, Sizes(schema)

    def widen(self, schema: pa.Schema) -> bool:
        """Gives the rows within another schema; False, and nothing changed, when a value cannot be kept exactly."""
        if schema.equals(self._schema):
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
    found = [schemas.aligned(table, schema) for table in tables]
    return None if any(table is None for table in found) else found
