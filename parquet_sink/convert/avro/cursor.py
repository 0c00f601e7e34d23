"""Many Avro datums read side by side: a position in each, and primitive values of all of them at once.

Nothing here raises for what the bytes hold. A record that is not read as expected is marked in `Batch.bad`, and what
is read of it from then on means nothing; the exact decoder has the word on it. Positions may therefore run past the
end of their record, a bounded way: what follows the last record is padding. Texts and bytes never do, because lengths
are compared with what is left, so none reaches into another record.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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

    def byte(self) -> npt.NDArray[np.uint8]:
        """One byte of each."""
        found = self.batch.data[self.at]
        self.at = self.at + 1
        return found

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

    def sized(self) -> tuple[Ints, Ints]:
        """A length of each and as many bytes: where they begin, and how many they are."""
        size = self.varint()
        return self._span(size)

    def fixed(self, size: int) -> tuple[Ints, Ints]:
        """So many bytes of each: where they begin, and how many they are."""
        return self._span(np.full(len(self.at), size, np.int64))

    def _span(self, size: Ints) -> tuple[Ints, Ints]:
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
