"""Avro types as a tree: what each node reads, and the Arrow type that Confluent's AvroData gives it.

A named type that is used twice is one node; no node is below itself.
"""

import pyarrow as pa

from parquet_sink.convert.decoded import decimal_type

INT32 = pa.int32()
INT64 = pa.int64()
DATE = pa.date32()
TIME = pa.time32("ms")
TIMESTAMP = pa.timestamp("ms", tz="UTC")
MILLIS_OF_A_DAY = 86_400_000

CELLS_A_BYTE = 16
"""Cells that a value may cost for each of its bytes before its items are counted."""

_SYMBOL_CELL = 8
_NAME_CELL = 16
"""Characters of a field's name that count as a cell: where lists become text, each item has all names in it."""


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


class Boolean(Node):
    """One byte, 0 or 1."""

    def __init__(self) -> None:
        super().__init__(pa.bool_())


class Integer(Node):
    """A varint in zigzag. arrow: int32, int64, DATE, TIME or TIMESTAMP. limits: of what has 32 bits."""

    def __init__(self, arrow: pa.DataType) -> None:
        super().__init__(arrow)
        self.is_int32 = arrow.bit_width == 32
        self.limits = (0, MILLIS_OF_A_DAY - 1) if arrow == TIME else (-(2**31), 2**31 - 1)


class Float(Node):
    """Little-endian IEEE 754. least: 4 or 8 bytes."""

    def __init__(self, arrow: pa.DataType) -> None:
        super().__init__(arrow)
        self.least = arrow.bit_width // 8


class Text(Node):
    """A length and UTF-8."""

    def __init__(self) -> None:
        super().__init__(pa.string())


class Bytes(Node):
    """A length and bytes, or `size` bytes where that is not None."""

    def __init__(self, size: int | None = None) -> None:
        super().__init__(pa.binary())
        self.size = size
        self.least = 1 if size is None else size


class Decimal(Node):
    """Bytes that hold an unscaled integer: two's complement, the highest byte first.

    words: of 64 bits, in one value of the column.
    """

    def __init__(self, stored: Bytes, precision: int, scale: int) -> None:
        super().__init__(decimal_type(precision, scale))
        self.bytes, self.precision, self.scale = stored, precision, scale
        self.least = stored.least
        self.words: int = self.arrow.byte_width // 8


class Enum(Node):
    """The position of a symbol, as a varint."""

    def __init__(self, symbols: tuple[str, ...]) -> None:
        super().__init__(pa.string())
        self.symbols = symbols
        self.cells = 1 + max((len(symbol.encode()) for symbol in symbols), default=0) // _SYMBOL_CELL


class Many(Node):
    """An array: blocks of items, each with their number."""

    def __init__(self, items: Node) -> None:
        super().__init__(pa.list_(pa.field("item", items.arrow, items.nullable)))
        self.items = items
        self.leaves, self.depth = items.leaves, 1 + items.depth


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

    @property
    def in_order(self) -> tuple[tuple[str, Node], tuple[str, Node]]:
        """Both parts as their bytes follow each other."""
        key, value = ("key", self.key), ("value", self.value)
        return (key, value) if self.key_first else (value, key)


class Pairs(Node):
    """A map, or an array of key/value records that AvroData takes for one; of equal keys the last one counts."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(pa.map_(entry.key.arrow, entry.value_field))
        self.entry = entry
        self.leaves, self.depth = entry.leaves, 1 + entry.depth


class Record(Node):
    """Fields, one after the other. An empty one counts as one leaf."""

    def __init__(self, fields: tuple[tuple[str, Node], ...]) -> None:
        super().__init__(pa.struct([pa.field(name, node.arrow, node.nullable) for name, node in fields]))
        self.fields = fields
        self.least = sum(node.least for _, node in fields)
        self.cells = 1 + sum(node.cells + len(name) // _NAME_CELL for name, node in fields)
        self.leaves = sum(node.leaves for _, node in fields) or 1
        self.depth = 1 + max((node.depth for _, node in fields), default=0)


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
