"""Records as their columns, and columns as records."""

from collections.abc import Mapping, Sequence

import pyarrow as pa


def fields_of(arrow: pa.DataType) -> list[pa.Field]:
    """The fields of a struct, in order."""
    return [arrow.field(index) for index in range(arrow.num_fields)]


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
