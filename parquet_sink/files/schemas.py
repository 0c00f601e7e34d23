"""Rows of different but compatible schemas in one file: null columns are added, integers become doubles.

Nothing is ever altered: an integer that a double cannot hold exactly makes two schemas incompatible.
"""

import pyarrow as pa


def unified(older: pa.Schema, newer: pa.Schema) -> pa.Schema | None:
    """A schema that can hold rows of both, None when there is none.

    Columns stand in the order of the newer schema when it has all columns of the older, otherwise new ones follow.
    """
    if older.equals(newer):
        return older
    has_all = set(older.names) <= set(newer.names)
    names = newer.names if has_all else [*older.names, *(n for n in newer.names if n not in set(older.names))]
    fields = [_unified_field(name, older, newer) for name in names]
    return None if any(f is None for f in fields) else pa.schema(fields)


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
    try:
        columns = [_column(rows, field) for field in schema]
    except pa.ArrowInvalid:
        return None
    return pa.Table.from_arrays(columns, schema=schema)


def _column(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    position = rows.schema.get_field_index(field.name)
    if position < 0:
        return pa.nulls(rows.num_rows, field.type)
    column = rows.column(position)
    return column if column.type.equals(field.type) else column.cast(field.type, safe=True)


def _unified_field(name: str, older: pa.Schema, newer: pa.Schema) -> pa.Field | None:
    sides = [schema.field(name) for schema in (older, newer) if name in schema.names]
    kind = sides[0].type if len(sides) == 1 else _unified_type(sides[0].type, sides[1].type)
    if kind is None:
        return None
    return pa.field(name, kind, nullable=len(sides) == 1 or any(f.nullable for f in sides))


def _unified_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    for whole, fraction in ((one, other), (other, one)):
        if pa.types.is_signed_integer(whole) and pa.types.is_float64(fraction):
            return fraction
    return None


def _same_columns(one: pa.Schema, other: pa.Schema) -> bool:
    return set(one.names) == set(other.names) and all(one.field(n).equals(other.field(n)) for n in one.names)
