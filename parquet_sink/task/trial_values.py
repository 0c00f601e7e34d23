"""What keys, values and rows hold, as JSON has it; what JSON has no form for is text.

Bytes are hexadecimal digits, dates and times ISO text whatever their year, decimals and NaN their digits and name.
"""

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final, cast

import pyarrow as pa

from parquet_sink.convert import java_dates
from parquet_sink.convert.calendars import DAY_MS
from parquet_sink.transform.fields.plain import to_plain

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def of_array(array: pa.Array) -> list[object]:
    """One for each entry."""
    return [_of_type(array.type, value) for value in to_plain(array)]


def as_json(value: object) -> object:
    """Of a record without a schema, in which Arrow scalars may be."""
    if isinstance(value, pa.Scalar):
        return of_array(pa.array([value], value.type))[0]
    if isinstance(value, dict):
        return {str(name): as_json(below) for name, below in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    return _leaf(value)


def timestamp_text(ms: int) -> str:
    """Epoch milliseconds as ISO text, whatever their year."""
    return _moment(pa.timestamp("ms", "UTC"), ms)


def _of_type(arrow: pa.DataType, value: object) -> object:
    """value: as `to_plain` gives it."""
    if value is None:
        return None
    if pa.types.is_struct(arrow):
        held = cast("dict[str, object]", value)
        return {name: _of_type(arrow.field(name).type, below) for name, below in held.items()}
    if pa.types.is_list(arrow):
        return [_of_type(arrow.value_type, one) for one in cast("list[object]", value)]
    if pa.types.is_map(arrow):
        entries = cast("list[tuple[object, object]]", value)
        return [[_of_type(arrow.key_type, key), _of_type(arrow.item_type, item)] for key, item in entries]
    if isinstance(value, int) and pa.types.is_temporal(arrow):
        return _moment(arrow, value)
    return _leaf(value)


def _moment(arrow: pa.DataType, value: int) -> str:
    """value: days of a date, milliseconds of anything else. Python has no years beyond 9999, nor before 1."""
    kind = "date" if pa.types.is_date(arrow) else "time" if pa.types.is_time(arrow) else "timestamp"
    since = value * DAY_MS if kind == "date" else value
    try:
        found = _EPOCH + timedelta(milliseconds=since)
    except OverflowError:
        return java_dates.text(kind, since)
    return str(_leaf({"date": found.date(), "time": found.time(), "timestamp": found}[kind]))


def _leaf(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime | time):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, date | Decimal) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value
