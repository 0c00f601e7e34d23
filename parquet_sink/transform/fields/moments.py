"""Dates, times and timestamps: as epoch milliseconds, as they are stored in columns, and in trees as Arrow scalars."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from parquet_sink.convert.calendars import DAY_MS
from parquet_sink.transform.protocol import RecordFault

TYPES: Final[Mapping[str, pa.DataType]] = {
    "Date": pa.date32(),
    "Time": pa.time32("ms"),
    "Timestamp": pa.timestamp("ms", "UTC"),
}
"""By Connect's names."""

SCALARS: Final = (pa.Date32Scalar, pa.Time32Scalar, pa.TimestampScalar)
"""What stands for them in trees; `value` is the number that a column stores."""

_FARTHEST_DAY: Final = 2**31


def stored(epoch_ms: int, kind: str) -> int:
    """As a column of a type holds it: days, milliseconds of the day, or of the epoch. Raises RecordFault."""
    if kind == "Timestamp":
        return epoch_ms
    day, rest = divmod(epoch_ms, DAY_MS)
    if kind == "Date" and not -_FARTHEST_DAY <= day < _FARTHEST_DAY:
        raise RecordFault("the day is farther away than a Date can hold")
    return day if kind == "Date" else rest


def in_tree(epoch_ms: int, kind: str) -> pa.Scalar:
    """As a tree holds it. Raises RecordFault."""
    return pa.scalar(stored(epoch_ms, kind), TYPES[kind])


def of_tree(value: pa.Scalar) -> int:
    """Epoch milliseconds of what a tree holds."""
    number: int = value.value
    return number * DAY_MS if isinstance(value, pa.Date32Scalar) else number
