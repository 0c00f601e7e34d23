"""Of a record's key what primary keys are made of: the fields that become their columns, in each form of a piece.

A key that is no record is the only primary key's value. Whatever else a key has counts for nothing: it is left out
before anything looks at it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from parquet_sink.config.key import ems
from parquet_sink.convert.decoded import Float32, Inferred, Int32, Piece, Tree, Trees, Typed
from parquet_sink.rows.flatten.trees import SEPARATOR, column_name
from parquet_sink.rows.schema import arrow_types
from parquet_sink.rows.settings import ShapeSettings

_TYPES = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    Int32: pa.int32(),
    Float32: pa.float32(),
}
_TREE_NAMES = {
    **dict.fromkeys((int, float, Int32, Float32), "a number"),
    str: "a string",
    bool: "a boolean",
    list: "a list",
}


@dataclass(frozen=True)
class NoRecord:
    """Keys that can fill no primary key's column, and why."""

    positions: pa.Int64Array
    reason: str


class KeyFields:
    """names: the primary keys that come from a record, as the settings name them."""

    def __init__(self, names: tuple[str, ...], settings: ShapeSettings) -> None:
        self._names, self._flatten, self._lowercase = names, settings.flatten, settings.lowercase

    def of(self, piece: Piece) -> Iterator[Piece | NoRecord]:
        """The same keys with nothing but those fields, perhaps none; all are records now."""
        if isinstance(piece, Trees):
            yield from self._of_trees(piece)
        elif not pa.types.is_struct(piece.rows.type):
            yield self._alone(piece.positions, piece.rows, arrow_types.name(piece.rows.type))
        elif isinstance(piece, Inferred):
            yield Inferred(piece.positions, self._rows(piece.rows, ""), self._trees_of(piece), piece.lists)
        else:
            yield Typed(piece.positions, self._rows(piece.rows, ""))

    def _of_trees(self, piece: Trees) -> Iterator[Piece | NoRecord]:
        """Keys that are no records by their types: each type is a column at once."""
        by_type: dict[type, tuple[list[int], list[object]]] = {}
        for position, tree in zip(piece.positions.to_pylist(), piece.trees, strict=True):
            positions, trees = by_type.setdefault(type(tree), ([], []))
            positions.append(position)
            trees.append(tree)
        for kind, (positions, trees) in by_type.items():
            at = pa.array(positions, pa.int64())
            if kind is dict:
                yield Trees(at, [self._tree(tree, "") for tree in trees])  # type: ignore[arg-type]
            elif kind in _TYPES:
                yield self._alone(at, pa.array(trees, _TYPES[kind]), _TREE_NAMES[kind])
            else:
                yield NoRecord(at, f"its key is {_TREE_NAMES.get(kind, 'no record')}")

    def _alone(self, positions: pa.Int64Array, values: pa.Array, what: str) -> Typed | NoRecord:
        if len(self._names) > 1:
            several = f"which cannot fill {len(self._names)} columns of {ems('data.primary.key')}"
            return NoRecord(positions, f"its key is not a record but {what}, {several}")
        return Typed(positions, pa.StructArray.from_arrays([values], fields=[pa.field(self._names[0], values.type)]))

    def _trees_of(self, piece: Inferred) -> Callable[[int], Tree]:
        return lambda row: self._tree(piece.tree(row), "")

    def _tree(self, tree: Tree, prefix: str) -> Tree:
        found: Tree = {}
        for name, value in tree.items():
            below = f"{prefix}{name}{SEPARATOR}"
            if self._is_entered(isinstance(value, dict) and bool(value)):
                if self._leads(below) and (inner := self._tree(value, below)):  # type: ignore[arg-type]
                    found[name] = inner
            elif self._is_key(prefix + name):
                found[name] = value
        return found

    def _rows(self, rows: pa.StructArray, prefix: str) -> pa.StructArray:
        children, fields = [], []
        for index, field in enumerate(rows.type):
            below = f"{prefix}{field.name}{SEPARATOR}"
            if self._is_entered(pa.types.is_struct(field.type) and field.type.num_fields > 0):
                inner = self._rows(rows.field(index), below) if self._leads(below) else None
                if inner is not None and inner.type.num_fields:
                    children.append(inner)
                    fields.append(field.with_type(inner.type))
            elif self._is_key(prefix + field.name):
                children.append(rows.field(index))
                fields.append(field)
        if not children:
            return pa.array([{}] * len(rows), pa.struct([]))
        return pa.StructArray.from_arrays(children, fields=fields, mask=rows.is_null() if rows.null_count else None)

    def _is_entered(self, is_object: bool) -> bool:
        return self._flatten and is_object

    def _is_key(self, joined: str) -> bool:
        return self._column(joined) in self._names

    def _leads(self, joined: str) -> bool:
        column = self._column(joined)
        return any(name.startswith(column) for name in self._names)

    def _column(self, joined: str) -> str:
        """Lower case comes first, as for values: it may make characters that no column's name has."""
        text = joined.lower() if self._lowercase else joined
        return column_name(text) if self._flatten else text
