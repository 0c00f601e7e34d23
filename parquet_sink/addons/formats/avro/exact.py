"""Avro types as a tree: each node decodes one datum to a Python value, the definition, and has its Arrow type.

Types are those that Confluent's AvroData gives. A named type that is used twice is one node; no node is below itself.
Values are what `pyarrow.array` takes for the node's Arrow type: dates, times and timestamps as integers, maps as lists
of pairs, general unions as a dict with the one branch that is there.

Limits, beyond the format's own: a varint has at most 10 bytes; an array or map may announce no more items than its
bytes can hold; where items can be far larger in columns than in bytes (null, empty records, absent wide records), a
datum may hold FREE_CELLS plus CELLS_A_BYTE for each of its bytes.
"""

import struct
from decimal import Decimal as Number

import pyarrow as pa

from parquet_sink.convert.decimals import LONGEST_DECIMAL, fit_decimal, to_decimal_text
from parquet_sink.convert.decoded import decimal_type
from parquet_sink.convert.invalid import InvalidValue, Unfit

INT32 = pa.int32()
INT64 = pa.int64()
DATE = pa.date32()
TIME = pa.time32("ms")
TIMESTAMP = pa.timestamp("ms", tz="UTC")
MILLIS_OF_A_DAY = 86_400_000

CELLS_A_BYTE = 16
"""Cells that a value may cost for each of its bytes before its items are counted."""

FREE_CELLS = 1_000
_CELLS_OF_ZEROS = 20
_MAX_SHIFT = 63
_SYMBOL_CELL = 8
_NAME_CELL = 16
"""Characters of a field's name that count as a cell: where lists become text, each item has all names in it."""


class Source:
    """The bytes of one datum, and what is left of its budget of cells."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.end = data, 0, len(data)
        self.cells = FREE_CELLS + CELLS_A_BYTE * len(data)

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if size > self.end - self.at:
            raise Unfit("is cut off")
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        """An integer within int64, in zigzag."""
        value, shift = 0, 0
        while True:
            if self.at == self.end:
                raise Unfit("is cut off")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > _MAX_SHIFT:
                raise Unfit("holds an integer of more than 10 bytes")
        if value >> 64:
            raise Unfit("holds an integer beyond 64 bits")
        return (value >> 1) ^ -(value & 1)

    def sized(self) -> bytes:
        """A length and as many bytes."""
        size = self.varint()
        if size < 0:
            raise Unfit("has a negative length")
        return self.take(size)


class Node:
    """One type.

    arrow: of its column. nullable: null is one of its values. least: bytes that any value takes. cells: what one value
    may cost in columns, a cell being about 8 bytes; items of lists are counted by themselves. leaves: columns of values
    below, an empty record counted as one. depth: levels of records, lists and maps.
    """

    nullable: bool = False
    least: int = 1
    cells: int = 1
    leaves: int = 1
    depth: int = 0

    def __init__(self, arrow: pa.DataType) -> None:
        self.arrow = arrow

    def read(self, source: Source) -> object:
        """The value that comes next. Raises Unfit."""
        raise NotImplementedError

    @property
    def expands(self) -> bool:
        """Whether a list of these may become far larger than its bytes, so that items are counted."""
        return self.cells > CELLS_A_BYTE * self.least


class Null(Node):
    """No bytes, always null."""

    nullable = True
    least = 0

    def __init__(self) -> None:
        super().__init__(pa.null())

    def read(self, source: Source) -> None:
        return None


class Boolean(Node):
    """One byte, 0 or 1."""

    def __init__(self) -> None:
        super().__init__(pa.bool_())

    def read(self, source: Source) -> bool:
        byte = source.take(1)[0]
        if byte > 1:
            raise Unfit("holds a boolean that is neither 0 nor 1")
        return byte == 1


class Integer(Node):
    """A varint in zigzag. arrow: int32, int64, DATE, TIME or TIMESTAMP. limits: the smallest and the largest."""

    def __init__(self, arrow: pa.DataType) -> None:
        super().__init__(arrow)
        bits = arrow.bit_width
        self.limits: tuple[int, int] = (
            (0, MILLIS_OF_A_DAY - 1) if arrow == TIME else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )
        self._low, self._high = self.limits

    def read(self, source: Source) -> int:
        value = source.varint()
        if not self._low <= value <= self._high:
            raise Unfit(
                f"holds {'a time that is not within a day' if self.arrow == TIME else 'an integer beyond 32 bits'}"
            )
        return value


class Float(Node):
    """Little-endian IEEE 754. least: 4 or 8 bytes."""

    def __init__(self, arrow: pa.DataType) -> None:
        super().__init__(arrow)
        self.least = arrow.bit_width // 8
        self._unpack = struct.Struct("<f" if self.least == 4 else "<d").unpack

    def read(self, source: Source) -> object:
        return self._unpack(source.take(self.least))[0]


class Text(Node):
    """A length and UTF-8."""

    def __init__(self) -> None:
        super().__init__(pa.string())

    def read(self, source: Source) -> str:
        try:
            return source.sized().decode()
        except UnicodeDecodeError:
            raise Unfit("holds text that is not UTF-8") from None


class Bytes(Node):
    """A length and bytes, or `size` bytes where that is not None."""

    def __init__(self, size: int | None = None) -> None:
        super().__init__(pa.binary())
        self.size = size
        self.least = 1 if size is None else size

    def read(self, source: Source) -> bytes:
        return source.sized() if self.size is None else source.take(self.size)


class Decimal(Node):
    """Bytes that hold an unscaled integer: two's complement, the highest byte first.

    words: of 64 bits, in one value of the column. zeros: behind the integer, for a negative scale.
    """

    def __init__(self, stored: Bytes, precision: int, scale: int) -> None:
        self.bytes, self.zeros = stored, max(-scale, 0)
        self.precision, self.scale = fit_decimal(precision, scale)
        super().__init__(decimal_type(self.precision, self.scale))
        self.least = stored.least
        self.words: int = self.arrow.byte_width // 8
        self._limit, self._factor = 10**self.precision, 10**self.zeros

    def read(self, source: Source) -> Number:
        digits = self.bytes.read(source)
        if not digits:
            raise Unfit("holds a decimal of no bytes")
        unscaled = int.from_bytes(digits, signed=True) * self._factor
        if not -self._limit < unscaled < self._limit:
            raise Unfit(f"holds a decimal of more than {self.precision} digits")
        return Number((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -self.scale))


class Enum(Node):
    """The position of a symbol, as a varint."""

    def __init__(self, symbols: tuple[str, ...]) -> None:
        super().__init__(pa.string())
        self.symbols = symbols
        self.cells = 1 + max((len(symbol.encode()) for symbol in symbols), default=0) // _SYMBOL_CELL

    def read(self, source: Source) -> str:
        index = source.varint()
        if not 0 <= index < len(self.symbols):
            raise Unfit("holds an enum's symbol that the schema does not have")
        return self.symbols[index]


def _items(source: Source, item: Node) -> list[object]:
    """Items of an array or a map: blocks that begin with the number of their items, up to an empty one."""
    values: list[object] = []
    read = item.read
    while count := _count(source, item):
        try:
            for _ in range(count):
                values.append(read(source))  # noqa: PERF401 - the position of the item that fails is wanted
        except Unfit as unfit:
            raise unfit.below(len(values)) from None
    return values


def _count(source: Source, item: Node) -> int:
    """Items in the next block. After a negative number comes the size of the block in bytes, which is not needed."""
    count = source.varint()
    if count < 0:
        count = -count
        source.varint()
    if item.least and count > (source.end - source.at) // item.least:
        raise Unfit("announces more items than it has bytes for")
    if item.expands:
        source.cells -= count * item.cells
        if source.cells < 0:
            raise Unfit("announces more items than a record of its size may have")
    return count


class Many(Node):
    """An array: blocks of items, each with their number."""

    def __init__(self, items: Node) -> None:
        super().__init__(pa.list_(pa.field("item", items.arrow, items.nullable)))
        self.items = items
        self.leaves, self.depth = items.leaves, 1 + items.depth

    def read(self, source: Source) -> list[object]:
        return _items(source, self.items)


class Entry(Node):
    """One entry of a map. key_first: false for an array of records that have their value before their key."""

    def __init__(self, key: Node, value: Node, key_first: bool = True) -> None:
        value_field = pa.field("value", value.arrow, value.nullable)
        super().__init__(pa.struct([pa.field("key", key.arrow, False), value_field]))
        self.key, self.value, self.key_first, self.value_field = key, value, key_first, value_field
        self.least = key.least + value.least
        self.cells = key.cells + value.cells
        self.leaves = key.leaves + value.leaves
        self.depth = max(key.depth, value.depth)

    def read(self, source: Source) -> tuple[object, object]:
        """Both parts, as their bytes follow each other."""
        key = value = None
        name = ""
        try:
            for name in ("key", "value") if self.key_first else ("value", "key"):
                if name == "key":
                    key = self.key.read(source)
                else:
                    value = self.value.read(source)
        except Unfit as unfit:
            raise unfit.below(name) from None
        if key is None and self.key.nullable:
            raise Unfit("has no key")
        return key, value


class Pairs(Node):
    """A map, or an array of key/value records that AvroData takes for one; of equal keys the last one counts."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(pa.map_(entry.key.arrow, entry.value_field))
        self.entry = entry
        self.leaves, self.depth = entry.leaves, 1 + entry.depth
        self._is_plain = isinstance(entry.key, Text | Integer | Boolean | Enum | Bytes)

    def read(self, source: Source) -> list[object]:
        entries = _items(source, self.entry)
        last = {(entry[0] if self._is_plain else repr(entry[0])): entry for entry in entries}  # type: ignore[index]
        return entries if len(last) == len(entries) else list(last.values())


class Record(Node):
    """Fields, one after the other. An empty one counts as one leaf."""

    def __init__(self, fields: tuple[tuple[str, Node], ...]) -> None:
        super().__init__(pa.struct([pa.field(name, node.arrow, node.nullable) for name, node in fields]))
        self.fields = fields
        self.least = sum(node.least for _, node in fields)
        self.cells = 1 + sum(node.cells + len(name) // _NAME_CELL for name, node in fields)
        self.leaves = sum(node.leaves for _, node in fields) or 1
        self.depth = 1 + max((node.depth for _, node in fields), default=0)
        self._readers = [(name, node.read) for name, node in fields]

    def read(self, source: Source) -> dict[str, object]:
        values, name = {}, ""
        try:
            for name, read in self._readers:
                values[name] = read(source)
        except Unfit as unfit:
            raise unfit.below(name) from None
        return values


class VariableDecimal(Node):
    """Debezium's record of a scale and an unscaled integer: text of all digits, for each value has its own scale."""

    def __init__(self, record: Record) -> None:
        super().__init__(pa.string())
        self.record = record
        self.least, self.cells, self.leaves, self.depth = record.least, _CELLS_OF_ZEROS, record.leaves, record.depth

    @staticmethod
    def fits(record: Record) -> bool:
        """Return True for a record of `scale` and `value` of the types that Debezium gives them."""
        return {name: node.arrow for name, node in record.fields} == {"scale": INT32, "value": pa.binary()}

    def read(self, source: Source) -> str:
        parts = self.record.read(source)
        digits, scale = parts["value"], parts["scale"]
        assert isinstance(digits, bytes)
        assert isinstance(scale, int)
        if not digits or len(digits) > LONGEST_DECIMAL:
            raise Unfit("holds a decimal of no bytes, or of too many")
        return to_decimal_text(digits, scale)


class Union(Node):
    """The position of a branch, as a varint, and a value of that branch.

    names: for each branch the field that holds it, None for null; or None when there is at most one branch besides
    null, whose values then stand for themselves. only: that branch, null itself if there is none. named: position,
    name and type of the branches besides null; empty where `names` is None.
    """

    def __init__(self, branches: tuple[Node, ...], names: tuple[str | None, ...] | None = None) -> None:
        others = [branch for branch in branches if not isinstance(branch, Null)]
        triples = zip(range(len(branches)), names or (), branches, strict=False)
        self.branches, self.names, self.only = branches, names, (others or branches)[0]
        self.named = tuple((index, name, branch) for index, name, branch in triples if name is not None)
        fields = [pa.field(name, branch.arrow) for _, name, branch in self.named]
        super().__init__(self.only.arrow if names is None else pa.struct(fields))
        self.nullable = len(others) < len(branches)
        self.cells = 1 + sum(branch.cells for branch in branches)
        self.leaves = sum(branch.leaves for branch in others) or 1
        self.depth = max(branch.depth for branch in branches) + (names is not None)
        self._readers = [branch.read for branch in branches]

    def read(self, source: Source) -> object:
        index = source.varint()
        if not 0 <= index < len(self.branches):
            raise Unfit("holds a union's branch that the schema does not have")
        value = self._readers[index](source)
        name = None if self.names is None else self.names[index]
        return value if name is None else {name: value}


class Exact:
    """Reads datums of one schema."""

    def __init__(self, node: Node) -> None:
        self._read = node.read

    def value(self, datum: bytes) -> object:
        """The value; None is a null datum. Raises InvalidValue."""
        source = Source(datum)
        try:
            value = self._read(source)
        except Unfit as unfit:
            raise InvalidValue(f"the bytes are not of its Avro schema: {unfit.said_of('the datum')}") from None
        if source.at < source.end:
            left = source.end - source.at
            more = f"{left} byte{'s' * (left > 1)} more than the schema has"
            raise InvalidValue(f"the bytes are not of its Avro schema: {more}")
        return value
