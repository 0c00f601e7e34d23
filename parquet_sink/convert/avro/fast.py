"""Many Avro datums at once, a field at a time, into one Arrow array.

`decode` gives exactly what the exact decoder gives, or says that a record is for that one: whatever is not as expected,
and lists so long that only a few records still have items.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from parquet_sink.convert.avro.cursor import Batch, Cursor, Flags, Ints
from parquet_sink.convert.avro.decimals import DecimalColumn
from parquet_sink.convert.avro.exact import FREE_CELLS
from parquet_sink.convert.avro.leaves import (
    BooleanColumn,
    Column,
    EnumColumn,
    FloatColumn,
    IntegerColumn,
    SpanColumn,
    Steps,
    bitmap,
)
from parquet_sink.convert.avro.lists import ListColumn, MapColumn
from parquet_sink.convert.avro.types import (
    CELLS_A_BYTE,
    Boolean,
    Bytes,
    Decimal,
    Enum,
    Float,
    Integer,
    Many,
    Node,
    Null,
    Pairs,
    Record,
    Text,
    Union,
)


@dataclass(frozen=True)
class Found:
    """rows: one for each datum. done: whose row counts; the others are for the exact decoder."""

    rows: pa.Array
    done: Flags


def decode(node: Node, values: pa.BinaryArray) -> Found:
    """The rows of all datums. values: at least one, no nulls, less than 2**30 bytes together."""
    offsets = offsets_of(values)
    sizes = np.diff(offsets)
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    margin = 32 * node.leaves * (node.depth + 2)  # what one record or item reads, lengths and block headers included
    batch = Batch(data, offsets[1:] - offsets[0], FREE_CELLS + CELLS_A_BYTE * sizes, margin)
    cursor = Cursor(batch, batch.ends - sizes, batch.ends, np.arange(len(values)))
    columns = column(node)
    columns.read(cursor, None)
    batch.bad |= cursor.at != batch.ends
    rows = columns.finish(len(values), None, None)
    return Found(rows, ~batch.bad)


def offsets_of(values: pa.BinaryArray) -> Ints:
    """Where each value begins in the array's bytes, and where the last one ends."""
    offsets = np.frombuffer(values.buffers()[1] or bytes(4), np.int32)
    return offsets[values.offset : values.offset + len(values) + 1].astype(np.int64)


def column(node: Node) -> Column:
    """The column that reads values of this type."""
    return _COLUMNS[type(node)](node)


class NullColumn:
    """Nothing to read, and only nulls."""

    def __init__(self, node: Null) -> None:
        pass

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        pass

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        return pa.nulls(count)


class RecordColumn:
    """A column for each field."""

    def __init__(self, node: Record) -> None:
        self._node = node
        self._fields = [column(below) for _, below in node.fields]

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        for field in self._fields:
            field.read(cursor, rows)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        fields = [field.finish(count, into, None) for field in self._fields]
        return pa.Array.from_buffers(self._node.arrow, count, [bitmap(valid)], children=fields)


class OptionColumn:
    """A union of at most one type and null."""

    def __init__(self, node: Union) -> None:
        self._node = node
        self._below = column(node.only)
        self._at = node.branches.index(node.only)
        self._branch = Steps(np.int64)

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        index = _branch(cursor, self._node)
        self._branch.add(rows, index)
        _read_branch(self._below, cursor, rows, index == self._at)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        present = self._branch.place(0, count, into) == self._at
        return self._below.finish(count, into, None if present.all() else present)


class UnionColumn:
    """A struct with one field for each branch but null."""

    def __init__(self, node: Union) -> None:
        self._node = node
        self._below = [(at, column(branch)) for at, _, branch in node.named]
        self._branch = Steps(np.int64)

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        index = _branch(cursor, self._node)
        self._branch.add(rows, index)
        for at, below in self._below:
            _read_branch(below, cursor, rows, index == at)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        index = self._branch.place(0, count, into)
        present = np.isin(index, [at for at, _ in self._below]) if self._node.nullable else None
        fields = [below.finish(count, into, index == at) for at, below in self._below]
        return pa.Array.from_buffers(self._node.arrow, count, [bitmap(present)], children=fields)


def _branch(cursor: Cursor, node: Union) -> Ints:
    """The position of each record's branch; -1 for one that is not there, which is marked."""
    index = cursor.varint()
    if index.min() < 0 or index.max() >= len(node.branches):
        wrong = (index < 0) | (index >= len(node.branches))
        cursor.mark(wrong)
        index = np.where(wrong, -1, index)
    return index


def _read_branch(below: Column, cursor: Cursor, rows: Ints | None, chosen: Flags) -> None:
    """Read a branch for the records that have it."""
    if chosen.all():
        below.read(cursor, rows)
        return
    index = np.flatnonzero(chosen)
    if len(index):
        part = cursor.sub(index)
        below.read(part, index if rows is None else rows[index])
        cursor.at[index] = part.at


def _union(node: Union) -> Column:
    return OptionColumn(node) if node.names is None else UnionColumn(node)


_COLUMNS: dict[type[Node], Callable[..., Column]] = {
    Null: NullColumn,
    Boolean: BooleanColumn,
    Integer: IntegerColumn,
    Float: FloatColumn,
    Text: SpanColumn,
    Bytes: SpanColumn,
    Decimal: DecimalColumn,
    Enum: EnumColumn,
    Record: RecordColumn,
    Union: _union,
    Many: lambda node: ListColumn(node, column(node.items)),
    Pairs: lambda node: MapColumn(node, column(node.entry.key), column(node.entry.value)),
}
