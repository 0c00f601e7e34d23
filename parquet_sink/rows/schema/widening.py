"""Whole numbers as doubles where nothing is lost by it: which ones, in columns of any depth.

Arrow's own cast refuses every number beyond 2**53, also those that a double holds (2**60), and for slices of some
nested arrays also because of what is outside the slice.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.arrays import reinterpreted
from parquet_sink.rows.schema.arrow_arrays import nulls
from parquet_sink.rows.schema.arrow_types import entries, fields

_BEYOND = pa.scalar(2.0**63, pa.float64())
"""The double that the largest int64 would be rounded to, which is none."""

_GALLOP = 16


def aligned(array: pa.Array, to: pa.DataType) -> pa.Array:
    """The array as the type that `evolution.unified` gave for its own and another, fields that it lacks as nulls.

    Also takes chunked arrays. Raises pa.ArrowInvalid for an int64 that a double cannot hold.
    """
    if array.type.equals(to):
        return array
    try:
        return array.cast(to)
    except pa.ArrowInvalid:
        if isinstance(array, pa.ChunkedArray):
            return pa.chunked_array([aligned(chunk, to) for chunk in array.chunks], to)
        return _converted(_compact(array), to)


def first_misfit(array: pa.Array, to: pa.DataType) -> int | None:
    """The first entry for which `aligned` raises, None when there is none."""
    good, size = 0, 1
    while good < len(array):
        if _fits(array.slice(good, size), to):
            good, size = good + size, size * _GALLOP
        elif size == 1:
            return good
        else:
            size = max(1, min(size, len(array) - good) // 2)
    return None


def _fits(array: pa.Array, to: pa.DataType) -> bool:
    try:
        aligned(array, to)
    except pa.ArrowInvalid:
        return False
    return True


def _compact(array: pa.Array) -> pa.Array:
    """The array with nothing below it but what belongs to its entries."""
    return array.take(pa.array(np.arange(len(array)))) if pa.types.is_nested(array.type) else array


def _converted(array: pa.Array, to: pa.DataType) -> pa.Array:
    if array.type.equals(to):
        return array
    if pa.types.is_map(array.type):
        return reinterpreted(_converted(reinterpreted(array, entries(array.type)), entries(to)), to)
    if pa.types.is_list(array.type):
        values = _converted(array.values, to.value_type)
        return pa.Array.from_buffers(to, len(array), array.buffers()[:2], offset=array.offset, children=[values])
    if pa.types.is_struct(array.type):
        return _struct(array, to)
    return _doubles(array) if _is_widened(array.type, to) else array.cast(to)


def _struct(array: pa.StructArray, to: pa.DataType) -> pa.StructArray:
    children = []
    for field in fields(to):
        index = array.type.get_field_index(field.name)
        missing = index < 0
        children.append(nulls(len(array), field.type) if missing else _converted(array.field(index), field.type))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(fields(to)), mask=mask)


def _is_widened(own: pa.DataType, to: pa.DataType) -> bool:
    return bool(own.equals(pa.int64()) and to.equals(pa.float64()))


def _doubles(array: pa.Int64Array) -> pa.DoubleArray:
    found = array.cast(pa.float64(), safe=False)
    same = pc.and_(pc.less(found, _BEYOND), pc.equal(found.cast(pa.int64(), safe=False), array))
    if pc.all(same).as_py() is False:
        raise pa.ArrowInvalid("a whole number that no double holds")
    return found
