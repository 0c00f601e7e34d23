"""A writer's schema as a tree: what each node reads, and the Arrow type that Confluent's AvroData gives it.

A named type that is used twice is one node; no node is below itself.
"""

from dataclasses import dataclass
from functools import cached_property

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
    """One type. Leaves have these defaults."""

    @cached_property
    def arrow(self) -> pa.DataType:
        """The type of its column."""
        raise NotImplementedError

    @cached_property
    def nullable(self) -> bool:
        """Whether null is one of its values."""
        return False

    @cached_property
    def least(self) -> int:
        """Bytes that any value takes."""
        return 1

    @cached_property
    def cells(self) -> int:
        """What one value may cost in columns, a cell being about 8 bytes; items of lists are counted by themselves."""
        return 1

    @cached_property
    def leaves(self) -> int:
        """Columns of values below, an empty record counted as one."""
        return 1

    @cached_property
    def depth(self) -> int:
        """Levels of records, lists and maps."""
        return 0

    @cached_property
    def expands(self) -> bool:
        """Whether a list of these may become far larger than its bytes, so that items are counted."""
        return self.cells > CELLS_A_BYTE * self.least


@dataclass(frozen=True)
class Null(Node):
    """No bytes, always null."""

    @cached_property
    def nullable(self) -> bool:
        return True

    @cached_property
    def least(self) -> int:
        return 0

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.null()


@dataclass(frozen=True)
class Boolean(Node):
    """One byte, 0 or 1."""

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.bool_()


@dataclass(frozen=True)
class Integer(Node):
    """A varint in zigzag. bits: 32 or 64. column: int32, int64, DATE, TIME or TIMESTAMP."""

    bits: int
    column: pa.DataType

    @cached_property
    def arrow(self) -> pa.DataType:
        return self.column


@dataclass(frozen=True)
class Float(Node):
    """Little-endian IEEE 754. size: 4 or 8 bytes."""

    size: int

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.float32() if self.size == 4 else pa.float64()

    @cached_property
    def least(self) -> int:
        return self.size


@dataclass(frozen=True)
class Text(Node):
    """A length and UTF-8."""

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.string()


@dataclass(frozen=True)
class Bytes(Node):
    """A length and bytes, or `size` bytes where that is not None."""

    size: int | None = None

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.binary()

    @cached_property
    def least(self) -> int:
        return 1 if self.size is None else self.size


@dataclass(frozen=True)
class Decimal(Node):
    """Bytes that hold an unscaled integer: two's complement, the highest byte first."""

    bytes: Bytes
    precision: int
    scale: int

    @cached_property
    def arrow(self) -> pa.DataType:
        return decimal_type(self.precision, self.scale)

    @cached_property
    def least(self) -> int:
        return self.bytes.least

    @property
    def words(self) -> int:
        """64-bit words of one value in the column."""
        return int(self.arrow.byte_width) // 8


@dataclass(frozen=True)
class Enum(Node):
    """The position of a symbol, as a varint."""

    symbols: tuple[str, ...]

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.string()

    @cached_property
    def cells(self) -> int:
        return 1 + max((len(symbol.encode()) for symbol in self.symbols), default=0) // _SYMBOL_CELL


@dataclass(frozen=True)
class Many(Node):
    """An array: blocks of items, each with their number."""

    items: Node

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.list_(pa.field("item", self.items.arrow, self.items.nullable))

    @cached_property
    def leaves(self) -> int:
        return self.items.leaves

    @cached_property
    def depth(self) -> int:
        return 1 + self.items.depth


@dataclass(frozen=True)
class Entry(Node):
    """One entry of a map. key_first: false for an array of records that have their value before their key."""

    key: Node
    value: Node
    key_first: bool = True

    @cached_property
    def arrow(self) -> pa.DataType:
        fields = [pa.field("key", self.key.arrow, False), pa.field("value", self.value.arrow, self.value.nullable)]
        return pa.struct(fields)

    @cached_property
    def least(self) -> int:
        return self.key.least + self.value.least

    @cached_property
    def cells(self) -> int:
        return self.key.cells + self.value.cells

    @cached_property
    def leaves(self) -> int:
        return self.key.leaves + self.value.leaves

    @cached_property
    def depth(self) -> int:
        return max(self.key.depth, self.value.depth)

    @property
    def in_order(self) -> tuple[tuple[str, Node], tuple[str, Node]]:
        """Both parts as their bytes follow each other."""
        key, value = ("key", self.key), ("value", self.value)
        return (key, value) if self.key_first else (value, key)


@dataclass(frozen=True)
class Pairs(Node):
    """A map, or an array of key/value records that AvroData takes for one; of equal keys the last one counts."""

    entry: Entry

    @cached_property
    def arrow(self) -> pa.DataType:
        value = self.entry.value
        return pa.map_(self.entry.key.arrow, pa.field("value", value.arrow, value.nullable))

    @cached_property
    def leaves(self) -> int:
        return self.entry.leaves

    @cached_property
    def depth(self) -> int:
        return 1 + self.entry.depth


@dataclass(frozen=True)
class Record(Node):
    """Fields, one after the other. An empty one counts as one leaf."""

    fields: tuple[tuple[str, Node], ...]

    @cached_property
    def arrow(self) -> pa.DataType:
        return pa.struct([pa.field(name, node.arrow, node.nullable) for name, node in self.fields])

    @cached_property
    def least(self) -> int:
        return sum(node.least for _, node in self.fields)

    @cached_property
    def cells(self) -> int:
        return 1 + sum(node.cells + len(name) // _NAME_CELL for name, node in self.fields)

    @cached_property
    def leaves(self) -> int:
        return sum(node.leaves for _, node in self.fields) or 1

    @cached_property
    def depth(self) -> int:
        return 1 + max((node.depth for _, node in self.fields), default=0)


@dataclass(frozen=True)
class Union(Node):
    """The position of a branch, as a varint, and a value of that branch.

    names: for each branch the field that holds it, None for null; or None when there is at most one branch besides
    null, whose values then stand for themselves.
    """

    branches: tuple[Node, ...]
    names: tuple[str | None, ...] | None = None

    @cached_property
    def nullable(self) -> bool:
        return any(isinstance(branch, Null) for branch in self.branches)

    @property
    def only(self) -> Node:
        """The one branch besides null (null itself if there is none); asked only where `names` is None."""
        return next((branch for branch in self.branches if not isinstance(branch, Null)), self.branches[0])

    @property
    def named(self) -> tuple[tuple[int, str, Node], ...]:
        """Position, name and type of the branches besides null; empty where `names` is None."""
        triples = zip(range(len(self.branches)), self.names or (), self.branches, strict=False)
        return tuple((index, name, branch) for index, name, branch in triples if name is not None)

    @cached_property
    def arrow(self) -> pa.DataType:
        if self.names is None:
            return self.only.arrow
        return pa.struct([pa.field(name, branch.arrow) for _, name, branch in self.named])

    @cached_property
    def cells(self) -> int:
        return 1 + sum(branch.cells for branch in self.branches)

    @cached_property
    def leaves(self) -> int:
        return sum(branch.leaves for branch in self.branches if not isinstance(branch, Null)) or 1

    @cached_property
    def depth(self) -> int:
        return max(branch.depth for branch in self.branches) + (self.names is not None)
