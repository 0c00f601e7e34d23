"""Typed values as they stand in records without a schema.

Dates and times are text (ISO 8601, UTC), decimals text with all digits, bytes base64; a float32 has as few digits as
tell it from its neighbours; a number that is none is `NaN`, `Infinity` or `-Infinity` as text; a map with text for keys
is an object, any other a list of [key, value].
"""

import binascii
from math import isfinite, isnan
from typing import cast

import numpy as np
import pyarrow as pa

from parquet_sink.convert import calendars
from parquet_sink.convert.calendars import DAY_MS
from parquet_sink.transform.fields.plain import to_plain


def as_trees(array: pa.Array) -> list[object]:
    """One for each entry; null is None."""
    arrow = array.type
    if pa.types.is_string(arrow) or pa.types.is_boolean(arrow) or pa.types.is_integer(arrow) or pa.types.is_null(arrow):
        return cast("list[object]", array.to_pylist())
    return [_tree(arrow, value) for value in to_plain(array)]


def _tree(arrow: pa.DataType, value: object) -> object:
    if value is None:
        return None
    if pa.types.is_struct(arrow):
        fields = (arrow.field(index) for index in range(arrow.num_fields))
        held = cast("dict[str, object]", value)
        return {field.name: _tree(field.type, held[field.name]) for field in fields}
    if pa.types.is_list(arrow):
        return [_tree(arrow.value_type, one) for one in cast("list[object]", value)]
    if pa.types.is_map(arrow):
        entries = cast("list[tuple[object, object]]", value)
        pairs = [(_tree(arrow.key_type, key), _tree(arrow.item_type, item)) for key, item in entries]
        return dict(pairs) if pa.types.is_string(arrow.key_type) else [list(pair) for pair in pairs]
    return _leaf(arrow, value)


def _leaf(arrow: pa.DataType, value: object) -> object:
    if isinstance(value, float):
        return _number(float(str(np.float32(value))) if pa.types.is_float32(arrow) else value)
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode()
    if pa.types.is_decimal(arrow):
        return f"{value:f}"
    if isinstance(value, int) and pa.types.is_date(arrow):
        return calendars.text("date", value * DAY_MS)
    if isinstance(value, int) and pa.types.is_temporal(arrow):
        return calendars.text("time" if pa.types.is_time(arrow) else "timestamp", value)
    return value


def _number(value: float) -> object:
    if isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
