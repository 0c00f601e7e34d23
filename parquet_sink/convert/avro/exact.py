"""Decodes one Avro datum to one Python value: the definition of what is accepted, and why not.

Values are what `pyarrow.array` takes for the node's Arrow type: dates, times and timestamps as integers, maps as lists
of pairs, general unions as a dict with the one branch that is there.

Limits, beyond the format's own: a varint has at most 10 bytes; an array or map may announce no more items than its
bytes can hold; where items can be far larger in columns than in bytes (null, empty records, absent wide records), a
datum may hold FREE_CELLS plus 16 for each of its bytes.
"""

import struct
from collections.abc import Callable
from decimal import Decimal as Number

from parquet_sink.convert.avro.types import (
    CELLS_A_BYTE,
    TIME,
    Boolean,
    Bytes,
    Decimal,
    Entry,
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
from parquet_sink.convert.invalid import InvalidValue, Path, show

FREE_CELLS = 1_000
_MAX_SHIFT = 63


class Wrong(Exception):
    """Why a datum is invalid, with the path to the place, which grows on the way up."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.path: Path = ()


class Source:
    """The bytes of one datum, and what is left of its budget of cells."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.end = data, 0, len(data)
        self.cells = FREE_CELLS + CELLS_A_BYTE * len(data)

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if size > self.end - self.at:
            raise Wrong("is cut off")
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        """An integer within int64, in zigzag."""
        value, shift = 0, 0
        while True:
            if self.at == self.end:
                raise Wrong("is cut off")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > _MAX_SHIFT:
                raise Wrong("holds an integer of more than 10 bytes")
        if value >> 64:
            raise Wrong("holds an integer beyond 64 bits")
        return (value >> 1) ^ -(value & 1)

    def sized(self) -> bytes:
        """A length and as many bytes."""
        size = self.varint()
        if size < 0:
            raise Wrong("has a negative length")
        return self.take(size)


Reader = Callable[[Source], object]


class Exact:
    """Reads datums of one schema."""

    def __init__(self, node: Node) -> None:
        self._read = reader(node)

    def value(self, datum: bytes) -> object:
        """The value; None is a null datum. Raises InvalidValue."""
        source = Source(datum)
        try:
            value = self._read(source)
        except Wrong as wrong:
            where = f"field {show(wrong.path)}" if wrong.path else "the datum"
            raise InvalidValue(f"the bytes are not of its Avro schema: {where} {wrong.why}") from None
        if source.at < source.end:
            left = source.end - source.at
            more = f"{left} byte{'s' * (left > 1)} more than the schema has"
            raise InvalidValue(f"the bytes are not of its Avro schema: {more}")
        return value


def reader(node: Node) -> Reader:
    """What reads a value of this type. Readers raise Wrong."""
    return _MAKERS[type(node)](node)


def _boolean(node: Boolean) -> Reader:
    def read(source: Source) -> bool:
        byte = source.take(1)[0]
        if byte > 1:
            raise Wrong("holds a boolean that is neither 0 nor 1")
        return byte == 1

    return read


def _integer(node: Integer) -> Reader:
    if not node.is_int32:
        return Source.varint
    low, high = node.limits
    why = "holds a time that is not within a day" if node.arrow == TIME else "holds an integer beyond 32 bits"

    def read(source: Source) -> int:
        value = source.varint()
        if not low <= value <= high:
            raise Wrong(why)
        return value

    return read


def _float(node: Float) -> Reader:
    layout = struct.Struct("<f" if node.least == 4 else "<d")

    def read(source: Source) -> object:
        return layout.unpack(source.take(layout.size))[0]

    return read


def _text(node: Text) -> Reader:
    def read(source: Source) -> str:
        try:
            return source.sized().decode()
        except UnicodeDecodeError:
            raise Wrong("holds text that is not UTF-8") from None

    return read


def _bytes(node: Bytes) -> Callable[[Source], bytes]:
    size = node.size
    if size is None:
        return Source.sized
    return lambda source: source.take(size)


def _decimal(node: Decimal) -> Reader:
    read_bytes, scale, limit = _bytes(node.bytes), node.scale, 10**node.precision

    def read(source: Source) -> Number:
        digits = read_bytes(source)
        if not digits:
            raise Wrong("holds a decimal of no bytes")
        unscaled = int.from_bytes(digits, signed=True)
        if not -limit < unscaled < limit:
            raise Wrong(f"holds a decimal of more than {node.precision} digits")
        return Number((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))

    return read


def _enum(node: Enum) -> Reader:
    symbols = node.symbols

    def read(source: Source) -> str:
        index = source.varint()
        if not 0 <= index < len(symbols):
            raise Wrong("holds an enum's symbol that the schema does not have")
        return symbols[index]

    return read


def _record(node: Record) -> Reader:
    fields = [(name, reader(below)) for name, below in node.fields]

    def read(source: Source) -> dict[str, object]:
        values, name = {}, ""
        try:
            for name, read_field in fields:
                values[name] = read_field(source)
        except Wrong as wrong:
            wrong.path = (name, *wrong.path)
            raise
        return values

    return read


def _union(node: Union) -> Reader:
    branches = [reader(branch) for branch in node.branches]
    names = node.names or (None,) * len(branches)

    def read(source: Source) -> object:
        index = source.varint()
        if not 0 <= index < len(branches):
            raise Wrong("holds a union's branch that the schema does not have")
        value, name = branches[index](source), names[index]
        return value if name is None else {name: value}

    return read


def _blocks(items: Node) -> Callable[[Source], list[object]]:
    """Items of an array or a map: blocks that begin with the number of their items, up to an empty one."""
    read_item = reader(items)

    def read_block(source: Source, count: int, values: list[object]) -> None:
        try:
            for _ in range(count):
                values.append(read_item(source))  # noqa: PERF401 - the position of the item that fails is wanted
        except Wrong as wrong:
            wrong.path = (len(values), *wrong.path)
            raise

    def read(source: Source) -> list[object]:
        values: list[object] = []
        while count := _count(source, items):
            read_block(source, count, values)
        return values

    return read


def _count(source: Source, items: Node) -> int:
    """Items in the next block. After a negative number comes the size of the block in bytes, which is not needed."""
    count = source.varint()
    if count < 0:
        count = -count
        source.varint()
    if items.least and count > (source.end - source.at) // items.least:
        raise Wrong("announces more items than it has bytes for")
    if items.expands:
        source.cells -= count * items.cells
        if source.cells < 0:
            raise Wrong("announces more items than a record of its size may have")
    return count


def _entry(node: Entry) -> Reader:
    (first, first_node), (second, second_node) = node.in_order
    read_first, read_second, optional = reader(first_node), reader(second_node), node.key.nullable

    def read(source: Source) -> tuple[object, object]:
        name = first
        try:
            one = read_first(source)
            name = second
            other = read_second(source)
        except Wrong as wrong:
            wrong.path = (name, *wrong.path)
            raise
        key, value = (one, other) if node.key_first else (other, one)
        if optional and key is None:
            raise Wrong("has no key")
        return key, value

    return read


def _pairs(node: Pairs) -> Reader:
    read_entries = _blocks(node.entry)
    plain = isinstance(node.entry.key, Text | Integer | Boolean | Enum | Bytes)

    def read(source: Source) -> list[object]:
        entries = read_entries(source)
        last = {(entry[0] if plain else repr(entry[0])): entry for entry in entries}  # type: ignore[index]
        return entries if len(last) == len(entries) else list(last.values())

    return read


_MAKERS: dict[type[Node], Callable[..., Reader]] = {
    Null: lambda node: lambda source: None,
    Boolean: _boolean,
    Integer: _integer,
    Float: _float,
    Text: _text,
    Bytes: _bytes,
    Decimal: _decimal,
    Enum: _enum,
    Record: _record,
    Union: _union,
    Many: lambda node: _blocks(node.items),
    Entry: _entry,
    Pairs: _pairs,
}
