"""Records without a schema to rows: their types, which the elements of one record share, and their arrays."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from parquet_sink.config.key import ems
from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.rows.column_batch import ColumnBatch
from parquet_sink.rows.flatten import trees as one_row
from parquet_sink.rows.schema.evolution import Columns
from parquet_sink.rows.schema.value_types import EmptyMap, Incompatible, Row, ValueTypes, check, shared
from parquet_sink.rows.settings import ShapeSettings

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


def rows_of(trees: Sequence[Tree], settings: ShapeSettings) -> list[Row]:
    """One row for each tree of a record. Raises InvalidValue when one of them is none."""
    build = one_row.flatten if settings.flatten else one_row.nest
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
    check(own, reserved)
    return own


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
