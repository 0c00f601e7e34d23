"""Columns of primitive Avro values: read from many datums at once, put in their rows, made into Arrow arrays.

A column is read in one or more steps (one for each item of a list), and finished once. What it read may stand in any
rows of its own: `rows` says in which, None meaning row for record; `into` says at the end where each of these rows
comes to stand among `count`, None meaning where it is. Rows that nothing was read for hold zeros.
"""

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.avro.cursor import Batch, Cursor, Flags, Ints, Values, gather
from parquet_sink.convert.avro.types import (
    MILLIS_OF_A_DAY,
    TIME,
    Boolean,
    Bytes,
    Enum,
    Float,
    Integer,
    Text,
)
from parquet_sink.convert.utf8 import are_utf8

_INT32 = (-(2**31), 2**31 - 1)


class Column(Protocol):
    """Values of one node of the schema."""

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        """One value of each record of the cursor, which is not empty. rows: increasing."""
        ...

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        """All rows. valid: which are not null, None for all; asked only of what is not null by itself."""
        ...


class Steps:
    """What was read, step by step: some arrays, and the rows of their values."""

    def __init__(self, *kinds: type[np.generic]) -> None:
        self._kinds = kinds
        self._rows: list[Ints | None] = []
        self._parts: list[tuple[Values, ...]] = []

    def add(self, rows: Ints | None, *parts: Values) -> None:
        self._rows.append(rows)
        self._parts.append(parts)

    def place(self, position: int, count: int, into: Ints | None) -> Values:
        """One of the arrays, each value in its row."""
        kind = self._kinds[position]
        if self._rows and self._rows[0] is None and into is None:
            return self._parts[0][position].astype(kind, copy=False)
        out = np.zeros(count, kind)
        for rows, parts in zip(self._rows, self._parts, strict=True):
            out[_into(rows, len(parts[position]), into)] = parts[position]
        return out


def _into(rows: Ints | None, size: int, into: Ints | None) -> Ints:
    if rows is None:
        return np.arange(size) if into is None else into
    return rows if into is None else into[rows]


def bitmap(valid: Flags | None) -> pa.Buffer | None:
    """Arrow's validity buffer."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def fixed_width(kind: pa.DataType, values: Values, valid: Flags | None) -> pa.Array:
    """Numbers, as they are in memory, one after the other."""
    return pa.Array.from_buffers(kind, len(values), [bitmap(valid), pa.py_buffer(values)])


class BooleanColumn:
    """Bytes 0 and 1."""

    def __init__(self, node: Boolean) -> None:
        self._steps = Steps(np.bool_)

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        found = cursor.byte()
        if found.max() > 1:
            cursor.mark(found > 1)
        self._steps.add(rows, found.astype(np.bool_))

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        bits = np.packbits(self._steps.place(0, count, into).view(np.uint8), bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), count, [bitmap(valid), pa.py_buffer(bits)])


class IntegerColumn:
    """Varints, within their limits."""

    def __init__(self, node: Integer) -> None:
        self._node = node
        self._limits = (0, MILLIS_OF_A_DAY - 1) if node.column == TIME else _INT32
        self._steps = Steps(np.int32 if node.bits == 32 else np.int64)

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        found = cursor.varint()
        low, high = self._limits
        if self._node.bits == 32 and (found.min() < low or found.max() > high):
            wrong = (found < low) | (found > high)
            cursor.mark(wrong)
            found = np.where(wrong, 0, found)
        self._steps.add(rows, found)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        return fixed_width(self._node.arrow, self._steps.place(0, count, into), valid)


class FloatColumn:
    """Four or eight bytes."""

    def __init__(self, node: Float) -> None:
        self._node = node
        self._steps = Steps(np.uint32 if node.size == 4 else np.uint64)

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        found = cursor.word(self._node.size)
        self._steps.add(rows, found.astype(np.uint32) if self._node.size == 4 else found)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        return fixed_width(self._node.arrow, self._steps.place(0, count, into), valid)


class EnumColumn:
    """Positions of symbols, which become the symbols."""

    def __init__(self, node: Enum) -> None:
        self._node = node
        self._steps = Steps(np.int64)

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        found = cursor.varint()
        if found.min() < 0 or found.max() >= len(self._node.symbols):
            wrong = (found < 0) | (found >= len(self._node.symbols))
            cursor.mark(wrong)
            found = np.where(wrong, 0, found)
        self._steps.add(rows, found)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        symbols = pa.array(self._node.symbols or ("",), pa.string())
        return _with_validity(symbols.take(pa.array(self._steps.place(0, count, into))), pa.string(), valid)


def _with_validity(found: pa.Array, kind: pa.DataType, valid: Flags | None) -> pa.Array:
    """Texts or bytes, whose array begins at 0, with another type and with nulls."""
    return pa.Array.from_buffers(kind, len(found), [bitmap(valid), *found.buffers()[1:]])


class SpanColumn:
    """Bytes or texts. All texts are validated at once, and one by one only if that fails."""

    def __init__(self, node: Bytes | Text) -> None:
        self._kind = node.arrow
        self._size = node.size if isinstance(node, Bytes) else None
        self._batch: Batch | None = None
        self._steps = Steps(np.int64, np.int64, np.int64)

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        self._batch = cursor.batch
        start, size = cursor.sized() if self._size is None else cursor.fixed(self._size)
        self._steps.add(rows, start, size, cursor.ids)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        if self._batch is None:
            return _with_validity(pa.array([b""] * count, pa.binary()), self._kind, valid)
        found = gather(self._batch, self._steps.place(0, count, into), self._steps.place(1, count, into))
        if self._kind == pa.string() and not _is_utf8(found):
            found = self._repaired(self._batch, found, self._steps.place(2, count, into))
        return _with_validity(found, self._kind, valid)

    def _repaired(self, batch: Batch, found: pa.Array, ids: Ints) -> pa.Array:
        """The texts that are UTF-8; records with another one are marked, and it is left out."""
        fine = are_utf8(found)
        batch.bad[ids[~fine]] = True
        return pc.if_else(pa.array(fine), found, pa.scalar(b"", pa.binary()))


def _is_utf8(found: pa.Array) -> bool:
    try:
        _with_validity(found, pa.string(), None).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
