"""Decodes many Avro datums at once, a field at a time, into one Arrow array.

`decode` gives exactly what the exact decoder gives, or says that a record is for that one: whatever is not as expected,
what has more items than its bytes allow, and lists of which only a few records still have items (`_FEW`, after
`_STEPS`). Of arrays and maps the first items of all are read, then the second ones; their order is restored at the end.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_sink.addons.formats.avro.exact import (
    CELLS_A_BYTE,
    FREE_CELLS,
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
    VariableDecimal,
)
from parquet_sink.addons.formats.avro.leaves import (
    Batch,
    BooleanColumn,
    Column,
    Cursor,
    EnumColumn,
    Flags,
    Ints,
    SpanColumn,
    Steps,
    bitmap,
    fixed_width,
    floats,
    integers,
    word_at,
)
from parquet_sink.convert.decimals import LONGEST_DECIMAL, to_decimal_text

_WORD = 64
_LOW_WORD = 2**_WORD - 1
_DIGITS_IN_A_WORD = 18


class DecimalColumn:
    """Unscaled integers in two's complement. Those longer than the column or to be scaled are for the exact decoder."""

    def __init__(self, node: Decimal) -> None:
        self._node = node
        self._steps = Steps(*[np.int64] * node.words)

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        start, size = cursor.span(self._node.bytes.size)
        words = _words(cursor.batch, start + size, size, self._node.words)
        wrong = (
            (size == 0)
            | (self._node.zeros > 0)
            | (size > 8 * self._node.words)
            | _is_beyond(words, size, self._node.precision)
        )
        if wrong.any():
            cursor.mark(wrong)
            words = [np.where(wrong, 0, word) for word in words]
        self._steps.add(rows, *words)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        words = [self._steps.place(place, count, into) for place in range(self._node.words)]
        return fixed_width(self._node.arrow, np.stack(words, axis=1), valid)


def _words(batch: Batch, end: Ints, size: Ints, number: int) -> list[Ints]:
    """The lowest word first, each with the sign of the whole number above its bytes."""
    found: list[Ints] = []
    sign = np.zeros(len(end), np.int64)
    for place in range(number):
        left = size - 8 * place
        word = sign
        if left.max() > 0:
            read = word_at(batch, np.maximum(end - 8 * (place + 1), 0)).byteswap().view(np.int64)
            unused = np.clip(8 - left, 0, 7) << 3
            word = np.where(left > 0, (read << unused) >> unused, sign)
        found.append(word)
        sign = word >> (_WORD - 1)
    return found


def _is_beyond(words: list[Ints], size: Ints, precision: int) -> Flags:
    """Which numbers have more digits."""
    if size.max() <= 8:
        if precision > _DIGITS_IN_A_WORD:
            return np.zeros(len(size), np.bool_)
        single: Flags = (words[0] >= 10**precision) | (words[0] <= -(10**precision))
        return single
    return _is_at_least(words, 10**precision) | ~_is_at_least(words, 1 - 10**precision)


def _is_at_least(words: list[Ints], bound: int) -> Flags:
    """A comparison of numbers of several words, from the lowest word, which like all but the highest has no sign."""
    result: Flags = np.ones(len(words[0]), np.bool_)
    for place, word in enumerate(words):
        part = (bound >> (_WORD * place)) & _LOW_WORD
        this: npt.NDArray[np.int64] | npt.NDArray[np.uint64] = word.view(np.uint64)
        limit: np.int64 | np.uint64 = np.uint64(part)
        if place == len(words) - 1:
            this, limit = word, np.int64(part - 2**_WORD if part >> (_WORD - 1) else part)
        result = (this > limit) | ((this == limit) & result)
    return result


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
            ambiguous = self._ambiguous(keys, offsets)
            self._bad[self._ids.place(0, count, into)[ambiguous]] = True
        entries = pa.Array.from_buffers(self._node.entry.arrow, total, [None], children=[keys, values])
        return pa.Array.from_buffers(self._node.arrow, count, [bitmap(valid), _offsets(offsets)], children=[entries])

    def _ambiguous(self, keys: pa.Array, offsets: Ints) -> Ints:
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
        ambiguous: Ints = both[1:][both[1:] == both[:-1]] // size
        return ambiguous


def decode(node: Node, values: pa.BinaryArray) -> tuple[pa.Array, Flags]:
    """A row for each datum, and whose row counts: the others are for the exact decoder.

    values: at least one, no nulls, less than 2**30 bytes together.
    """
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
    return rows, ~batch.bad


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


class VariableDecimalColumn:
    """Scales and unscaled integers as text, value by value; what is no decimal is for the exact decoder."""

    def __init__(self, node: VariableDecimal) -> None:
        self._record = RecordColumn(node.record)
        self._ids = Steps(np.int64)
        self._bad: Flags | None = None

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        self._ids.add(rows, cursor.ids + 1)  # 0: nothing was read for the row
        self._bad = cursor.batch.bad
        self._record.read(cursor, rows)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        parts = self._record.finish(count, into, None)
        scales, digits = parts.field("scale").to_pylist(), parts.field("value").to_pylist()
        texts: list[str | None] = [None] * count
        wrong = []
        for row in range(count) if valid is None else np.flatnonzero(valid).tolist():
            if 0 < len(digits[row]) <= LONGEST_DECIMAL:
                texts[row] = to_decimal_text(digits[row], scales[row])
            else:
                texts[row] = ""
                wrong.append(row)
        if wrong and self._bad is not None:
            ids = self._ids.place(0, count, into)[wrong]
            self._bad[ids[ids > 0] - 1] = True
        return pa.array(texts, pa.string())


class UnionColumn:
    """The one type besides null, or a struct with one field for each branch but null."""

    def __init__(self, node: Union) -> None:
        self._node = node
        branches = node.named or ((node.branches.index(node.only), "", node.only),)
        self._below = [(at, column(branch)) for at, _, branch in branches]
        self._branch = Steps(np.int64)

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        index = cursor.within(0, len(self._node.branches) - 1, otherwise=-1)
        self._branch.add(rows, index)
        for at, below in self._below:
            _read_branch(below, cursor, rows, index == at)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        index = self._branch.place(0, count, into)
        if self._node.names is None:
            (at, below), *_ = self._below
            present = index == at
            return below.finish(count, into, None if present.all() else present)
        some = np.isin(index, [at for at, _ in self._below]) if self._node.nullable else None
        fields = [below.finish(count, into, index == at) for at, below in self._below]
        return pa.Array.from_buffers(self._node.arrow, count, [bitmap(some)], children=fields)


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


_COLUMNS: dict[type[Node], Callable[..., Column]] = {
    Null: NullColumn,
    Boolean: BooleanColumn,
    Integer: integers,
    Float: floats,
    Text: SpanColumn,
    Bytes: SpanColumn,
    Decimal: DecimalColumn,
    Enum: EnumColumn,
    Record: RecordColumn,
    VariableDecimal: VariableDecimalColumn,
    Union: UnionColumn,
    Many: lambda node: ListColumn(node, column(node.items)),
    Pairs: lambda node: MapColumn(node, column(node.entry.key), column(node.entry.value)),
}
