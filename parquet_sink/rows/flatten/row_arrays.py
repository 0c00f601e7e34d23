"""Rows to columns of arrays: value by value where most cells have one, else from the values that there are."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from parquet_sink.rows.schema.value_types import Row

_SPARSE = 8
"""Where fewer than one cell in so many has a value, columns are made from the values alone."""

_CELLS = 1_000_000
"""Cells of sparse columns that are made at once: each call costs some microseconds, and there may be 2,500 columns."""


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
