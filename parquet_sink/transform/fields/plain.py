"""Typed records as plain Python values, and back; records as their columns, and back.

Dates, times and timestamps are the whole numbers that they are stored as (days, milliseconds), because Python has no
dates beyond the year 9999. Maps are lists of pairs, structs are dicts with all fields, decimals are `decimal.Decimal`.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from parquet_sink.convert.arrays import reinterpreted


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """The type with whole numbers for dates, times and timestamps, at every depth: the same bytes."""
    if pa.types.is_date32(arrow) or pa.types.is_time32(arrow):
        return pa.int32()
    if pa.types.is_timestamp(arrow):
        return pa.int64()
    if pa.types.is_struct(arrow):
        return pa.struct([field.with_type(plain_type(field.type)) for field in arrow])
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(plain_type(arrow.value_type)))
    if pa.types.is_map(arrow):
        return pa.map_(plain_type(arrow.key_type), arrow.item_field.with_type(plain_type(arrow.item_type)))
    return arrow


def to_plain(rows: pa.Array) -> list[object]:
    """One Python value for each row."""
    plain = plain_type(rows.type)
    values: list[object] = (rows if plain.equals(rows.type) else reinterpreted(rows, plain)).to_pylist()
    return values


def from_plain(values: Sequence[object], arrow: pa.DataType) -> pa.Array:
    """The reverse of `to_plain`."""
    plain = plain_type(arrow)
    made = pa.array(values, plain)
    return made if plain.equals(arrow) else reinterpreted(made, arrow)


def columns_of(rows: pa.StructArray) -> dict[str, pa.Array]:
    """The columns of records by name, in order."""
    return dict(zip((field.name for field in rows.type), rows.flatten(), strict=True))


def records(fields: Sequence[pa.Field], arrays: Sequence[pa.Array], count: int) -> pa.StructArray:
    """Records of these fields, none of them null; there may be no field."""
    if not fields:
        return pa.array([{}] * count, pa.struct([]))
    return pa.StructArray.from_arrays(arrays, fields=fields)


def read_as(arrays: Mapping[str, pa.Array], count: int) -> pa.StructArray:
    """Records without a schema that were read as these columns."""
    return records([pa.field(name, array.type) for name, array in arrays.items()], list(arrays.values()), count)
