"""Records without a schema to rows, one by one: lower case, flattened or nested, their types, their arrays.

Records that were read as columns are held equal to these rows (`columns.inferred_flat`, `columns.inferred_nested`).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from parquet_sink.config.key import ems
from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue, Path, show
from parquet_sink.convert.json.exact import text_of, walk
from parquet_sink.rows.added_columns import why_reserved
from parquet_sink.rows.run import ColumnBatch
from parquet_sink.rows.schema.arrow_types import clash
from parquet_sink.rows.schema.evolution import Columns, Incompatible
from parquet_sink.rows.schema.topic_columns import (
    MAX_COLUMNS,
    MAX_NAME,
    SEPARATOR,
    EmptyMap,
    Row,
    ValueTypes,
    column_name,
    count,
    shared,
    too_long,
)
from parquet_sink.rows.settings import ShapeSettings


def flatten(tree: Tree, discard_collections: bool) -> Row:
    """One value per leaf: int, float, bool or str; lists and empty objects as JSON text, or dropped.

    Raises InvalidValue for an empty key and for two fields that become one column.
    """
    row: Row = {}
    _flatten(row, tree, "", discard_collections, tree)
    return row


def _flatten(row: Row, below: Tree, prefix: str, discard: bool, tree: Tree) -> None:
    for key, value in below.items():
        if not key:
            raise InvalidValue(_empty_key(tree))
        if value is None:
            continue
        kind = type(value)
        if kind is dict and value:
            _flatten(row, value, prefix + key + SEPARATOR, discard, tree)  # type: ignore[arg-type]
            continue
        is_collection = kind is dict or kind is list
        if is_collection and discard:
            continue
        joined = prefix + key
        if len(joined) > MAX_NAME:  # before it is made, kept, or made for a hundred thousand fields below it
            raise InvalidValue(too_long(column_name(joined[:MAX_NAME])))
        name = column_name(joined)
        if name in row:
            raise InvalidValue(_duplicate(tree, name, discard))
        row[name] = text_of(value) if is_collection else value


def nest(tree: Tree, discard_collections: bool) -> Row:
    """The tree as it is, without nulls and without objects that hold nothing else; lists as JSON text, or dropped.

    Empty objects stay, or are dropped with the lists. Raises InvalidValue for an empty key.
    """
    return _nest(tree, discard_collections, tree)


def _nest(below: Tree, discard: bool, tree: Tree) -> Row:
    row: Row = {}
    for key, value in below.items():
        if not key:
            raise InvalidValue(_empty_key(tree))
        if value is None:
            continue
        if isinstance(value, list):
            if not discard:
                row[key] = text_of(value)
        elif isinstance(value, dict):
            inner = _nest(value, discard, tree)
            if inner or (not value and not discard):
                row[key] = inner
        else:
            row[key] = value
    return row


def _empty_key(tree: Tree) -> str:
    for path, _ in walk(tree):
        if path[-1] == "" and not any(isinstance(step, int) for step in path):
            where = f"the object at {show(path[:-1])}" if path[:-1] else "the record"
            return f"{where} has a field with an empty name"
    raise AssertionError("no empty key")


def _duplicate(tree: Tree, name: str, discard: bool) -> str:
    leaves = (path for path, value in walk(tree) if _is_leaf(path, value, discard))
    joined = ((path, SEPARATOR.join(map(str, path))) for path in leaves)
    paths = [show(path) for path, text in joined if len(text) <= MAX_NAME and column_name(text) == name]
    return one_column(paths[0], paths[1], name)


def one_column(first: str, second: str, name: str) -> str:
    """The message for two fields that flattening makes one column."""
    return (
        f"fields {first} and {second} would both become column {name}; {ems('flattener.enable')}=false keeps them apart"
    )


def _is_leaf(path: Path, value: object, discard: bool) -> bool:
    if value is None or any(isinstance(step, int) for step in path):
        return False
    if isinstance(value, list) or value == {}:
        return not discard
    return not isinstance(value, dict)


_SPARSE = 8
"""Where fewer than one cell in so many has a value, columns are made from the values alone."""
_CELLS = 1_000_000
"""Cells of sparse columns that are made at once: each call costs some microseconds, and there may be 2,500 columns."""
_EXPLODED = f"{ems('explode.mode')}=List: its elements"
NOT_SHARED = f"{_EXPLODED} cannot share columns"
_FREE_CELLS = 1_000_000
_CELLS_A_VALUE = 64
"""Cells that the rows of one exploded record may have for each value in them."""


def arrays_of(rows: Sequence[Row], columns: Sequence[pa.Field]) -> list[pa.Array]:
    """One array for each column; a row that lacks it is null there. The columns are all that the rows have."""
    values = sum(map(len, rows))
    if values * _SPARSE >= len(rows) * len(columns):
        return [pa.array([row.get(column.name) for row in rows], column.type) for column in columns]
    return _sparse(rows, columns)


def _sparse(rows: Sequence[Row], columns: Sequence[pa.Field]) -> list[pa.Array]:
    found: dict[str, tuple[list[int], list[object]]] = {column.name: ([], []) for column in columns}
    for number, row in enumerate(rows):
        for name, value in row.items():
            places, values = found[name]
            places.append(number)
            values.append(value)
    arrays: dict[str, pa.Array] = {}
    for some in _alike(columns, max(1, _CELLS // len(rows))):
        arrays |= zip((column.name for column in some), _columns(some, found, len(rows)), strict=True)
    return [arrays[column.name] for column in columns]


def _alike(columns: Sequence[pa.Field], most: int) -> Iterator[Sequence[pa.Field]]:
    """The columns by type, at most so many together."""
    by_type: dict[pa.DataType, list[pa.Field]] = {}
    for column in columns:
        by_type.setdefault(column.type, []).append(column)
    for alike in by_type.values():
        yield from (alike[start : start + most] for start in range(0, len(alike), most))


def _columns(
    columns: Sequence[pa.Field], found: dict[str, tuple[list[int], list[object]]], count: int
) -> Iterator[pa.Array]:
    """Columns of one type as slices of one array that holds them one after the other."""
    values = pa.array([value for column in columns for value in found[column.name][1]], columns[0].type)
    places = [at * count + place for at, column in enumerate(columns) for place in found[column.name][0]]
    which, absent = np.zeros(len(columns) * count, np.int32), np.ones(len(columns) * count, np.bool_)
    which[places], absent[places] = np.arange(len(places)), False
    whole = values.take(pa.array(which, mask=absent))
    return (whole.slice(at * count, count) for at in range(len(columns)))


# Null counts as if its field were not there; so does what discarding leaves out: lists, and objects without fields.
# Two fields of one object that count and become one make a record invalid. For records with a schema `arrow_types` has
# the same rule.
def lowercased(tree: Tree, *, discard: bool = False) -> Tree:
    """The tree with the names of all fields in lower case, at every depth, inside lists too.

    discard: lists are left out later, and not looked into. Raises InvalidValue when two fields become one.
    """
    return _object(tree, (), discard)


def _object(tree: Tree, path: Path, discard: bool) -> Tree:
    found: Tree = {}
    origin: dict[str, str] = {}
    for key, value in tree.items():
        lower = key.lower()
        if lower in found:
            if _is_left_out(value, discard):
                continue
            if not _is_left_out(found.pop(lower), discard):
                raise InvalidValue(clash((*path, origin[lower]), (*path, key), (*path, lower)))
        origin[lower] = key
        is_plain = type(value) is not dict and type(value) is not list
        found[lower] = value if is_plain else _below(value, (*path, key), discard)
    return found


def _below(value: object, path: Path, discard: bool) -> object:
    if isinstance(value, dict):
        return _object(value, path, discard)
    if isinstance(value, list) and not discard:
        return [_below(element, (*path, index), discard) for index, element in enumerate(value)]
    return value


def _is_left_out(value: object, discard: bool) -> bool:
    return value is None or (discard and (isinstance(value, list) or value == {}))


def rows_of(trees: Sequence[Tree], settings: ShapeSettings) -> list[Row]:
    """One row for each tree of a record. Raises InvalidValue when one of them is none."""
    build = flatten if settings.flatten else nest
    if not all(trees):
        raise InvalidValue(f"{_EXPLODED} are not all records with fields: one is an empty object")
    made = [build(tree, settings.discard_collections) for tree in trees]
    if len(made) > 1:
        _check_cells(made)
    return made


def value_types_of(rows: Sequence[Row], reserved: frozenset[str]) -> ValueTypes:
    """The types of the rows of one record. Raises InvalidValue when they have none in common, or are beyond limits."""
    own: ValueTypes = {}
    try:
        for row in rows:
            _take_in(own, row)
    except Incompatible:
        raise InvalidValue(NOT_SHARED) from None
    _check_limits(own, reserved)
    return own


def _check_limits(own: ValueTypes, reserved: frozenset[str]) -> None:
    """Raise InvalidValue for too many columns, names too long, or names that are ours."""
    columns = count(own)
    if columns > MAX_COLUMNS:
        raise InvalidValue(f"it has {columns:,} columns, more than the limit of {MAX_COLUMNS:,}")
    for name in own:
        if name in reserved:
            raise InvalidValue(why_reserved(name))
    _check_names(own)


def _check_names(own: ValueTypes) -> None:
    for name, kind in own.items():
        if len(name) > MAX_NAME:
            raise InvalidValue(too_long(name))
        if isinstance(kind, dict):
            _check_names(kind)


class PendingRows:
    """Rows that wait to become arrays, in the order of their records."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._positions: list[int] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, position: int, rows: Sequence[Row]) -> None:
        """The rows of one record, fit for their columns."""
        self._rows += rows
        self._positions += [position] * len(rows)

    def batch(self, columns: Columns) -> ColumnBatch:
        """All of them, with those of the columns that they have values in."""
        names: set[str] = set().union(*self._rows)
        used = tuple(column for column in columns if column.name in names)
        return ColumnBatch(pa.array(self._positions, pa.int64()), used, tuple(arrays_of(self._rows, used)))


def _take_in(own: ValueTypes, row: Row) -> None:
    """Take a row's types into those of its record, whatever the order. Raises Incompatible."""
    for name, value in row.items():
        kind = own.get(name)
        if kind is type(value):
            continue
        if isinstance(value, dict):
            if kind is None or (kind is EmptyMap and value):
                own[name] = {} if value else EmptyMap
            elif kind is not EmptyMap and not isinstance(kind, dict):
                raise Incompatible
            if value:
                below = own[name]
                assert isinstance(below, dict)
                _take_in(below, value)
        elif kind is None:
            own[name] = type(value)
        elif (both := shared(kind, type(value))) is not None:
            own[name] = both
        else:
            raise Incompatible


def _check_cells(rows: Sequence[Row]) -> None:
    """Raise InvalidValue where the rows of a record have too little in common."""
    values = sum(map(_size, rows))
    if len(rows) * values <= _FREE_CELLS:
        return
    columns: set[tuple[str, ...]] = set()
    for row in rows:
        columns.update(_leaves(row, ()))
    if len(rows) * len(columns) > _FREE_CELLS + _CELLS_A_VALUE * values:
        raise InvalidValue(f"{_EXPLODED} have too many columns that most of them lack")


def _size(row: Row) -> int:
    """Values in a row, those in objects included."""
    return len(row) + sum(_size(value) - 1 for value in row.values() if isinstance(value, dict) and value)


def _leaves(row: Row, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, value in row.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name)
