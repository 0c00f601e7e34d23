"""Rows of different but compatible schemas in one file; `rows.schema.evolution` says which types can share a column.

Nothing is ever altered: an integer that a double cannot hold exactly makes two schemas incompatible.
"""

import pyarrow as pa

from parquet_sink.rows.schema import evolution
from parquet_sink.rows.schema.value_types import Change


def unified(older: pa.Schema, newer: pa.Schema) -> pa.Schema | None:
    """A schema that can hold rows of both, None when there is none.

    Columns stand in the order of the newer schema when it has all columns of the older, otherwise new ones follow.
    """
    if older.equals(newer):
        return older
    if not older.names:
        return pa.schema([field.with_nullable(True) for field in newer])
    columns, change = evolution.merged(tuple(older), tuple(newer))
    if change is Change.INCOMPATIBLE:
        return None
    if len(columns) == len(newer):
        places = {name: place for place, name in enumerate(newer.names)}
        columns = tuple(sorted(columns, key=lambda field: places[field.name]))
    return pa.schema(columns)


def fits(schema: pa.Schema, into: pa.Schema) -> bool:
    """Whether rows of `schema` can enter a file of schema `into` as that is now."""
    if schema.equals(into):
        return True
    both = unified(into, schema)
    return both is not None and _same_columns(both, into)


def aligned(rows: pa.Table, schema: pa.Schema) -> pa.Table | None:
    """`rows` with exactly the columns of `schema`, None when a value cannot be kept exactly."""
    if rows.schema.equals(schema):
        return rows
    nulls: dict[pa.DataType, pa.Array] = {}
    try:
        columns = [_column(rows, field, nulls) for field in schema]
    except pa.ArrowInvalid:
        return None
    return pa.Table.from_arrays(columns, schema=schema)


def _column(rows: pa.Table, field: pa.Field, nulls: dict[pa.DataType, pa.Array]) -> pa.ChunkedArray | pa.Array:
    """One array of nulls serves all columns of a type that the rows lack: they may be thousands."""
    position = rows.schema.get_field_index(field.name)
    if position >= 0:
        return evolution.aligned(rows.column(position), field.type)
    if field.type not in nulls:
        nulls[field.type] = pa.nulls(rows.num_rows, field.type)
    return nulls[field.type]


def _same_columns(one: pa.Schema, other: pa.Schema) -> bool:
    return set(one.names) == set(other.names) and all(one.field(n).equals(other.field(n)) for n in one.names)
