"""What a query makes of records with a schema: records with another."""

import pyarrow as pa

from parquet_sink.addons.sql import fields
from parquet_sink.addons.sql.computing import Results
from parquet_sink.addons.sql.fields import expanded
from parquet_sink.addons.sql.parts import Item, KeptColumn, Star
from parquet_sink.addons.sql.query import Query
from parquet_sink.convert.decoded import SchemaColumns
from parquet_sink.convert.invalid import InvalidValue, show


def made(query: Query, piece: SchemaColumns, results: Results) -> SchemaColumns:
    """The rows. Raises InvalidValue when records of this type have none."""
    chosen = pa.array(results.rows)
    rows = piece.rows if _is_all(results, piece) else piece.rows.take(chosen)
    found: list[tuple[pa.Field, pa.Array]] = []
    for item in query.items:
        found += _columns(item, rows, results)
    names = [field.name for field, _ in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidValue(duplicate_column(twice))
    if not found:
        raise InvalidValue("the query leaves no column of it")
    structs = pa.StructArray.from_arrays([array for _, array in found], fields=[field for field, _ in found])
    return SchemaColumns(piece.positions.take(chosen), structs)


def duplicate_column(name: str) -> str:
    """Why two columns may not have one name."""
    return f"the query gives two columns {show((name,))}; take one out by EXCLUDE, or rename it by AS"


def _is_all(results: Results, piece: SchemaColumns) -> bool:
    rows = results.rows
    return len(rows) == len(piece.positions) and bool((rows[1:] > rows[:-1]).all())


def _columns(item: Item, rows: pa.Array, results: Results) -> list[tuple[pa.Field, pa.Array]]:
    if isinstance(item, KeptColumn):
        steps = fields.of_type(rows.type, item.names)
        array = fields.taken(rows, steps)
        return [(pa.field(item.name, array.type, nullable=_nullable(rows.type, steps)), array)]
    if isinstance(item, Star):
        return _star(item, rows, results)
    array = results.arrays[item.index]
    return [(pa.field(item.name, array.type), array)]


def _star(star: Star, rows: pa.Array, results: Results) -> list[tuple[pa.Field, pa.Array]]:
    if not pa.types.is_struct(rows.type):
        raise InvalidValue("the value is not a record, and the query asks for all its fields")
    found = []
    for name, source in expanded(star, rows.type.names):
        array = rows.field(source) if isinstance(source, str) else results.arrays[source.index]
        nullable = not isinstance(source, str) or rows.type.field(source).nullable
        found.append((pa.field(name, array.type, nullable=nullable), array))
    return found


def _nullable(arrow: pa.DataType, steps: tuple[int, ...]) -> bool:
    for step in steps:
        if arrow.field(step).nullable:
            return True
        arrow = arrow.field(step).type
    return False
