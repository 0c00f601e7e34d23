"""Arrays and maps of many Avro datums at once: the first items of all, then the second ones, and so on.

What is left to the exact decoder: a list of which only a few records still have items (`_FEW`, after `_STEPS`), and
everything that has more items than its bytes allow. The order of items is restored at the end.
"""

import numpy as np
import pyarrow as pa

from parquet_sink.convert.avro.cursor import Cursor, Flags, Ints
from parquet_sink.convert.avro.leaves import Column, Steps, bitmap
from parquet_sink.convert.avro.types import Enum, Integer, Many, Node, Pairs, Text

_FEW = 48
"""With so few records an item takes longer here than in the exact decoder."""

_STEPS = 16


class Blocks:
    """How many items each row has, and where each item that was read belongs."""

    def __init__(self, items: Node, columns: list[Column]) -> None:
        """columns: what reads an item, one after the other."""
        self._items = items
        self._columns = columns
        self._lengths = Steps(np.int64)
        self._owners: list[Ints] = []
        self._nth: list[Ints] = []
        self._total = 0

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        """All items of all records, those of the same position together."""
        lengths = np.zeros(len(cursor.at), np.int64)
        active = _Active(cursor)
        step = 0
        while active.open(self._items):
            step += 1
            if self._is_for_the_exact(active.work, step):
                active.give_up()
                break
            self._read_items(active, lengths, rows)
        cursor.at = active.at
        self._lengths.add(rows, lengths)

    def _is_for_the_exact(self, work: Cursor, step: int) -> bool:
        work.batch.steps -= self._items.leaves
        return work.batch.steps < 0 or (step > _STEPS and len(work.at) < _FEW)

    def _read_items(self, active: "_Active", lengths: Ints, rows: Ints | None) -> None:
        """The next item of each record that has one."""
        who = active.who
        self._owners.append(who if rows is None else rows[who])
        self._nth.append(lengths[who])
        lengths[who] += 1
        own_rows = np.arange(self._total, self._total + len(who))
        self._total += len(who)
        for column in self._columns:
            column.read(active.work, own_rows)
        active.left = active.left - 1
        active.drop(active.work.at > active.work.end)

    def place(self, count: int, into: Ints | None) -> tuple[Ints, int, Ints]:
        """Where the items of each row begin (and the last ones end), how many there are, and where each belongs."""
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(self._lengths.place(0, count, into), out=offsets[1:])
        if not self._total:
            return offsets, 0, np.zeros(0, np.int64)
        owners = np.concatenate(self._owners)
        starts = offsets[owners if into is None else into[owners]]
        return offsets, self._total, starts + np.concatenate(self._nth)


class _Active:
    """Records of a cursor that are not at the end of their list."""

    def __init__(self, cursor: Cursor) -> None:
        self.at = cursor.at.copy()
        self.who = np.arange(len(self.at))
        self.left = np.zeros(len(self.at), np.int64)
        self.work = Cursor(cursor.batch, self.at.copy(), cursor.end, cursor.ids)

    def open(self, items: Node) -> bool:
        """Begin the next block where one ended; whether a record has an item left."""
        ended = np.flatnonzero(self.left == 0)
        if len(ended):
            part = self.work if len(ended) == len(self.left) else self.work.sub(ended)
            self.left[ended] = _block(part, items)
            self.work.at[ended] = part.at
            self.drop(self.left == 0)
        return len(self.who) > 0

    def drop(self, over: Flags) -> None:
        """Records that have no more items here, or none that can be read."""
        if over.any():
            self.at[self.who[over]] = self.work.at[over]
            self.work.mark(over & (self.work.at > self.work.end))
            rest = np.flatnonzero(~over)
            self.who, self.left, self.work = self.who[rest], self.left[rest], self.work.sub(rest)

    def give_up(self) -> None:
        """The rest is for the exact decoder."""
        self.work.batch.bad[self.work.ids] = True
        self.at[self.who] = self.work.at


def _block(cursor: Cursor, items: Node) -> Ints:
    """Items in the next block of each, within the limits of the exact decoder; 0 where it is none or marked."""
    count = cursor.varint()
    if count.min() < 0:
        sized = np.flatnonzero(count < 0)
        part = cursor.sub(sized)
        part.varint()
        cursor.at[sized] = part.at
        count = np.abs(count)
    wrong = count < 0
    if items.least:
        wrong |= count > (cursor.end - cursor.at) // items.least
    if items.expands:
        wrong |= count > cursor.batch.cells[cursor.ids] // items.cells
        cursor.batch.cells[cursor.ids] -= np.where(wrong, 0, count * items.cells)
    if wrong.any():
        cursor.mark(wrong)
        count = np.where(wrong, 0, count)
    return count


def _offsets(offsets: Ints) -> pa.Buffer:
    return pa.py_buffer(offsets.astype(np.int32))


class ListColumn:
    """Arrays."""

    def __init__(self, node: Many, items: Column) -> None:
        self._node = node
        self._column = items
        self._blocks = Blocks(node.items, [items])

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        self._blocks.read(cursor, rows)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        offsets, total, belongs = self._blocks.place(count, into)
        items = self._column.finish(total, belongs, None)
        return pa.Array.from_buffers(self._node.arrow, count, [bitmap(valid), _offsets(offsets)], children=[items])


class MapColumn:
    """Maps. A record with equal keys is for the exact decoder, and so is one whose keys cannot be compared here."""

    def __init__(self, node: Pairs, key: Column, value: Column) -> None:
        self._node = node
        self._key, self._value = key, value
        self._blocks = Blocks(node.entry, [key, value] if node.entry.key_first else [value, key])
        self._ids = Steps(np.int64)
        self._bad: Flags | None = None

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        self._ids.add(rows, cursor.ids)
        self._bad = cursor.batch.bad
        self._blocks.read(cursor, rows)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        offsets, total, belongs = self._blocks.place(count, into)
        keys, values = self._key.finish(total, belongs, None), self._value.finish(total, belongs, None)
        if self._bad is not None and total:
            doubtful = self._doubtful(keys, offsets)
            self._bad[self._ids.place(0, count, into)[doubtful]] = True
        entries = pa.Array.from_buffers(self._node.entry.arrow, total, [None], children=[keys, values])
        return pa.Array.from_buffers(self._node.arrow, count, [bitmap(valid), _offsets(offsets)], children=[entries])

    def _doubtful(self, keys: pa.Array, offsets: Ints) -> Ints:
        """Rows that may have equal keys, or a null key."""
        lengths = np.diff(offsets)
        if self._node.entry.key.nullable:
            return np.flatnonzero(lengths)
        if not isinstance(self._node.entry.key, Text | Integer | Enum):
            return np.flatnonzero(lengths > 1)
        coded = keys.dictionary_encode()
        size = len(coded.dictionary)
        owners = np.repeat(np.arange(len(lengths)), lengths)
        both = np.sort(owners * size + coded.indices.to_numpy())
        doubtful: Ints = both[1:][both[1:] == both[:-1]] // size
        return doubtful
