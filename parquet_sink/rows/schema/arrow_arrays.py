"""Arrow arrays brought to a changed type, whole columns at once."""

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.arrays import reinterpreted
from parquet_sink.rows.schema.arrow_types import entries, fields


def conformed(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """The array as a type that `arrow_types.doubled` or `arrow_types.storable` made of its own.

    Decimals become the nearest double (ties to even), as Java's BigDecimal.doubleValue: Arrow's own cast is off by the
    last bit for one in some hundred, its way through text is not.
    """
    if array.type.equals(arrow):
        return array
    if pa.types.is_decimal(array.type):
        return array.cast(pa.string()).cast(arrow)
    if pa.types.is_map(array.type):
        as_list = reinterpreted(array, entries(array.type))
        if not pa.types.is_map(arrow):
            return conformed(as_list, arrow)
        return reinterpreted(conformed(as_list, entries(arrow)), arrow)
    if pa.types.is_list(array.type):
        own = array.buffers()[:2]
        return pa.Array.from_buffers(
            arrow, len(array), own, offset=array.offset, children=[conformed(array.values, arrow.value_type)]
        )
    children = [conformed(array.field(array.type.get_field_index(field.name)), field.type) for field in fields(arrow)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(fields(arrow)), mask=mask)


def nulls(count: int, arrow: pa.DataType) -> pa.Array:
    """So many nulls. Below them what is required is not null, unlike in `pa.nulls`: Parquet could not be written."""
    return pa.array([None] * count, arrow) if pa.types.is_struct(arrow) else pa.nulls(count, arrow)


def spans(lists: pa.ListArray) -> tuple[pa.Int32Array, pa.Array]:
    """Offsets from 0 on and exactly the values between them; those of null lists may be among them."""
    offsets = lists.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return (pc.subtract(offsets, offsets[0]) if first else offsets), lists.values.slice(first, last - first)


def where_valid(array: pa.Array, found: pa.Array) -> pa.Array:
    """What was found, null where the array is."""
    return pc.if_else(array.is_valid(), found, pa.scalar(None, found.type)) if array.null_count else found
