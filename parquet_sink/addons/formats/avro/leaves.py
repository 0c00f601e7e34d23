"""Columns of primitive Avro values: read from many datums at once, put in their rows, made into Arrow arrays.

A column is read in one or more steps (one for each item of a list), and finished once. What it read may stand in any
rows of its own: `rows` says in which, None meaning row for record; `into` says at the end where each of these rows
comes to stand among `count`, None meaning where it is. Rows that nothing was read for hold zeros.

Nothing here raises for what the bytes hold. A record that is not read as expected is marked in `Batch.bad`, and what
is read of it from then on means nothing; the exact decoder has the word on it. Positions may therefore run past the
end of their record, a bounded way: what follows the last record is padding. Texts and bytes never do, because lengths
are compared with what is left, so none reaches into another record.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.formats.avro.exact import Boolean, Bytes, Enum, Float, Integer, Text
from parquet_sink.convert.arrays import are_utf8

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Values = npt.NDArray[Any]

FRONT = 32
"""Bytes before the first record, so that a decimal may be read from its end backwards."""

_ONE = np.uint64(1)
_STOPS = np.uint64(0x8080808080808080)
_PAYLOAD = np.uint64(0x7F7F7F7F7F7F7F7F)
_FOLDS = tuple(
    (np.uint64(keep), np.uint64(move), np.uint64(by))
    for keep, move, by in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)


class Batch:
    """The bytes of some records, one after the other, and what is known of each record."""

    def __init__(self, data: npt.NDArray[np.uint8], ends: Ints, cells: Ints, margin: int) -> None:
        """data: of all records. ends: where each ends in it. margin: how far a position may run past an end."""
        size = len(data)
        room = (FRONT + size + margin + 16) // 8 * 8
        self.data = np.empty(room, np.uint8)
        self.data[:FRONT] = 0
        self.data[FRONT : FRONT + size] = data
        self.data[FRONT + size :] = 0
        self.words = self.data.view("<u8")
        self.buffer = pa.py_buffer(self.data)
        self.ends = ends + FRONT
        self.bad = np.zeros(len(ends), np.bool_)
        self.cells = cells
        self.steps = size // 32 + 1_000
        """Columns that lists may still read, an item at a time: the bound on time where few records have many items."""


class Cursor:
    """Positions in some records of a batch. at, end: in the batch's data; ids: which records, increasing."""

    def __init__(self, batch: Batch, at: Ints, end: Ints, ids: Ints) -> None:
        self.batch, self.at, self.end, self.ids = batch, at, end, ids

    def sub(self, index: Ints) -> "Cursor":
        """The same positions in some of these records."""
        return Cursor(self.batch, self.at[index], self.end[index], self.ids[index])

    def mark(self, wrong: Flags) -> None:
        """These records are for the exact decoder."""
        self.batch.bad[self.ids[wrong]] = True

    def flag(self) -> Flags:
        """One byte of each, 0 or 1."""
        found = self.batch.data[self.at]
        self.at = self.at + 1
        if found.max() > 1:
            self.mark(found > 1)
        return found.astype(np.bool_)

    def word(self, size: int) -> Words:
        """Eight bytes of each, the first byte lowest; the position moves by `size`."""
        found = word_at(self.batch, self.at)
        self.at = self.at + size
        return found

    def varint(self) -> Ints:
        """An integer of each, in zigzag. Most are one byte; the others are read eight bytes at a time."""
        first = self.batch.data[self.at]
        if first.max() < 0x80:
            self.at = self.at + 1
            short = first.astype(np.int64)
            return (short >> 1) ^ -(short & 1)
        value = self._long()
        return ((value >> _ONE) ^ (np.uint64(0) - (value & _ONE))).view(np.int64)

    def _long(self) -> Words:
        word = word_at(self.batch, self.at)
        stop = ~word & _STOPS
        payload = stop ^ (stop - _ONE)  # all bits up to the first byte that ends a number, or all there are
        value = word & payload & _PAYLOAD
        for keep, move, by in _FOLDS:
            value = (value & keep) | ((value & move) >> by)
        size = (np.bitwise_count(payload) >> 3).astype(np.int64)
        if not stop.all():
            self._longest(np.flatnonzero(stop == 0), value, size)
        self.at = self.at + size
        return value

    def _longest(self, index: Ints, value: Words, size: Ints) -> None:
        """Put in the ninth and the tenth byte where there is one."""
        ninth = self.batch.data[self.at[index] + 8].astype(np.uint64)
        tenth = self.batch.data[self.at[index] + 9].astype(np.uint64)
        more = ninth >= 0x80
        value[index] |= (ninth & np.uint64(0x7F)) << np.uint64(56)
        value[index] |= np.where(more, tenth, np.uint64(0)) << np.uint64(63)
        size[index] += np.where(more, 2, 1)
        self.batch.bad[self.ids[index[more & (tenth > 1)]]] = True

    def within(self, low: int, high: int, otherwise: int = 0) -> Ints:
        """An integer of each; `otherwise` for one beyond these bounds, whose record is marked."""
        found = self.varint()
        if found.min() < low or found.max() > high:
            wrong = (found < low) | (found > high)
            self.mark(wrong)
            found = np.where(wrong, otherwise, found)
        return found

    def span(self, fixed: int | None) -> tuple[Ints, Ints]:
        """A length of each, or `fixed`, and as many bytes: where they begin, and how many they are."""
        size = self.varint() if fixed is None else np.full(len(self.at), fixed, np.int64)
        start = self.at
        wrong = (size < 0) | (size > self.end - start)
        if wrong.any():
            self.mark(wrong)
            size = np.where(wrong, 0, size)
        self.at = start + size
        return start, size


def word_at(batch: Batch, at: Ints) -> Words:
    """Eight bytes from each of these positions, put together from two aligned reads, which are faster than one."""
    place = at >> 3
    shift = ((at & 7) << 3).view(np.uint64)
    low, high = batch.words[place], batch.words[place + 1]
    found: Words = (low >> shift) | ((high << _ONE) << (np.uint64(63) - shift))
    return found


def gather(batch: Batch, start: Ints, size: Ints) -> pa.BinaryArray:
    """The bytes of many spans as one array. start: ascending but where the size is 0.

    Spans and the gaps between them are the values of one array over the batch, of which every other is taken.
    """
    if not size.all():
        start = np.maximum.accumulate(np.where(size > 0, start, 0))
    cuts = np.empty(2 * len(start) + 1, np.int32)
    cuts[0:-1:2] = start
    cuts[1::2] = start + size
    cuts[-1] = cuts[-2] if len(start) else 0
    every = pa.Array.from_buffers(pa.binary(), 2 * len(start), [None, pa.py_buffer(cuts), batch.buffer])
    return every.take(pa.array(np.arange(0, 2 * len(start), 2)))


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
            if rows is None:
                out[slice(len(parts[position])) if into is None else into] = parts[position]
            else:
                out[rows if into is None else into[rows]] = parts[position]
        return out


def bitmap(valid: Flags | None) -> pa.Buffer | None:
    """Arrow's validity buffer."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def fixed_width(kind: pa.DataType, values: Values, valid: Flags | None) -> pa.Array:
    """Numbers, as they are in memory, one after the other."""
    return pa.Array.from_buffers(kind, len(values), [bitmap(valid), pa.py_buffer(values)])


class NumberColumn:
    """Numbers as they are in memory."""

    def __init__(self, arrow: pa.DataType, kind: type[np.generic], read: Callable[[Cursor], Values]) -> None:
        """kind: of one number. read: one of each record of a cursor."""
        self._arrow, self._read = arrow, read
        self._steps = Steps(kind)

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        self._steps.add(rows, self._read(cursor))

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        return fixed_width(self._arrow, self._steps.place(0, count, into), valid)


def integers(node: Integer) -> NumberColumn:
    """Varints, within their limits."""
    low, high = node.limits
    if node.arrow.bit_width == 32:
        return NumberColumn(node.arrow, np.int32, lambda cursor: cursor.within(low, high))
    return NumberColumn(node.arrow, np.int64, Cursor.varint)


def floats(node: Float) -> NumberColumn:
    """Four or eight bytes."""
    kind = np.uint32 if node.least == 4 else np.uint64
    return NumberColumn(node.arrow, kind, lambda cursor: cursor.word(node.least).astype(kind, copy=False))


class BooleanColumn(NumberColumn):
    """Bytes 0 and 1."""

    def __init__(self, node: Boolean) -> None:
        super().__init__(node.arrow, np.bool_, Cursor.flag)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        return pa.Array.from_buffers(pa.bool_(), count, [bitmap(valid), bitmap(self._steps.place(0, count, into))])


class EnumColumn(NumberColumn):
    """Positions of symbols, which become the symbols."""

    def __init__(self, node: Enum) -> None:
        super().__init__(node.arrow, np.int64, lambda cursor: cursor.within(0, len(node.symbols) - 1))
        self._symbols = pa.array(node.symbols or ("",), pa.string())

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        found = self._symbols.take(pa.array(self._steps.place(0, count, into)))
        return _with_validity(found, pa.string(), valid)


def _with_validity(found: pa.Array, kind: pa.DataType, valid: Flags | None) -> pa.Array:
    """Texts or bytes, whose array begins at 0, with another type and with nulls."""
    return pa.Array.from_buffers(kind, len(found), [bitmap(valid), *found.buffers()[1:]])


class SpanColumn:
    """Bytes or texts. A record with a text that is not UTF-8 is marked, and the text left out."""

    def __init__(self, node: Bytes | Text) -> None:
        self._kind = node.arrow
        self._size = node.size if isinstance(node, Bytes) else None
        self._batch: Batch | None = None
        self._steps = Steps(np.int64, np.int64, np.int64)

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        self._batch = cursor.batch
        start, size = cursor.span(self._size)
        self._steps.add(rows, start, size, cursor.ids)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        if self._batch is None:
            return _with_validity(pa.array([b""] * count, pa.binary()), self._kind, valid)
        found = gather(self._batch, self._steps.place(0, count, into), self._steps.place(1, count, into))
        fine = are_utf8(found) if self._kind == pa.string() else None
        if fine is not None and not fine.all():
            self._batch.bad[self._steps.place(2, count, into)[~fine]] = True
            found = pc.if_else(pa.array(fine), found, pa.scalar(b"", pa.binary()))
        return _with_validity(found, self._kind, valid)
