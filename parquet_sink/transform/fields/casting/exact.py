"""One value cast to another type, as Kafka Connect's Cast does it."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

from parquet_sink.convert.calendars import DAY_MS, chosen_text
from parquet_sink.convert.decoded import Float32, Int32
from parquet_sink.transform.fields.faults import kind, tree_kind
from parquet_sink.transform.fields.java import numbers, texts
from parquet_sink.transform.protocol import RecordFault

CastTo: TypeAlias = Callable[[object], object]
"""A value that is not null to one of the target. Raises RecordFault."""

BITS: Final[Mapping[str, int]] = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TARGETS: Final[Mapping[str, pa.DataType]] = {
    "int8": pa.int32(),
    "int16": pa.int32(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
}
"""By Connect's names, the type of a column."""


def of_tree(value: object, target: str) -> object:
    """A value without a schema. Raises RecordFault."""
    if value is None:
        return None
    if type(value) not in _TREES:
        raise RecordFault(f"{tree_kind(value)} cannot be cast to {target}")
    found = _TREES[type(value)](value, target)
    return _SIZED[target](found) if target in _SIZED else found


def of_typed(arrow: pa.DataType, target: str) -> CastTo:
    """How plain values of a type are cast (see `fields.plain`)."""
    for matches, cast in _TYPED:
        if matches(arrow):
            return lambda value: cast(value, target)
    return lambda _: _refuse(arrow, target)


def _refuse(arrow: pa.DataType, target: str) -> object:
    raise RecordFault(f"{kind(arrow)} cannot be cast to {target}")


def _integer(value: object, target: str) -> object:
    assert isinstance(value, int)
    if target in BITS:
        return numbers.wrapped(value, BITS[target])
    if target == "float32":
        return numbers.to_float32(value)
    if target == "float64":
        return float(value)
    return value != 0 if target == "boolean" else str(value)


def _float(value: object, target: str) -> object:
    assert isinstance(value, float)
    return texts.of_float(value) if target == "string" else _fraction(value, target)


def _float32(value: object, target: str) -> object:
    assert isinstance(value, float)
    return texts.of_float32(value) if target == "string" else _fraction(value, target)


def _fraction(value: float, target: str) -> object:
    if target == "int64":
        return numbers.truncated(value, 64)
    if target in BITS:
        return numbers.wrapped(numbers.truncated(value, 32), BITS[target])
    if target == "boolean":
        return numbers.truncated(value, 64) != 0
    return numbers.to_float32(value) if target == "float32" else value


def _decimal(value: object, target: str) -> object:
    assert isinstance(value, Decimal)
    if target in BITS:
        return numbers.wrapped(numbers.decimal_as_int64(value), BITS[target])
    if target == "boolean":
        return numbers.decimal_as_int64(value) != 0
    if target == "float32":
        return numbers.parse_float32(str(value))
    return float(value) if target == "float64" else str(value)


def _boolean(value: object, target: str) -> object:
    if target == "string":
        return "true" if value else "false"
    if target == "boolean":
        return value
    return int(bool(value)) if target in BITS else float(bool(value))


def _string(value: object, target: str) -> object:
    assert isinstance(value, str)
    if target == "string":
        return value
    if target == "boolean":
        return value.lower() == "true"
    try:
        if target in BITS:
            return numbers.parse_integer(value, BITS[target])
        return numbers.parse_float32(value) if target == "float32" else numbers.parse_float(value)
    except numbers.NoNumber:
        raise RecordFault(f"its text is not a number that {target} can hold") from None


def _bytes(value: object, target: str) -> object:
    assert isinstance(value, bytes)
    if target != "string":
        raise RecordFault(f"bytes cannot be cast to {target}, only to string")
    return b64encode(value).decode()


def _date(value: object, target: str) -> object:
    assert isinstance(value, int)
    return chosen_text(value * DAY_MS) if target == "string" else _integer(value, target)


def _time(value: object, target: str) -> object:
    assert isinstance(value, int)
    return chosen_text(value) if target == "string" else _integer(value, target)


_SIZED: Final[Mapping[str, Callable[[Any], object]]] = {
    **dict.fromkeys(("int8", "int16", "int32"), Int32),
    "int64": int,
    "float32": Float32,
    "float64": float,
}
_TREES: Final[Mapping[type, Callable[[object, str], object]]] = {
    int: _integer,
    Int32: _integer,
    float: _float,
    Float32: _float32,
    bool: _boolean,
    str: _string,
}
_TYPED: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[object, str], object]], ...]] = (
    (pa.types.is_integer, _integer),
    (pa.types.is_float64, _float),
    (pa.types.is_float32, _float32),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_string, _string),
    (pa.types.is_binary, _bytes),
    (pa.types.is_date32, _date),
    (pa.types.is_time32, _time),
    (pa.types.is_timestamp, _time),
)
