"""What the annotations of an Avro type make of it, as Confluent's AvroData reads them.

A logical type on another base type than its own, or one that breaks its own rules, is ignored, as the Avro
specification says. Times and timestamps in other units than milliseconds stay plain integers, as in Connect.
"""

from collections.abc import Mapping

import pyarrow as pa

from parquet_sink.convert.avro.types import DATE, INT32, INT64, TIME, TIMESTAMP, Bytes, Decimal, Integer
from parquet_sink.convert.decoded import DEFAULT_PRECISION, MAX_PRECISION
from parquet_sink.convert.invalid import InvalidValue

Notes = Mapping[str, object]
"""A type's JSON object."""

_CONNECT = "org.apache.kafka.connect.data."
_PRECISION_PARAMETER = "connect.decimal.precision"

_INT_COLUMNS: dict[object, pa.DataType] = {
    "date": DATE,
    "time-millis": TIME,
    f"{_CONNECT}Date": DATE,
    f"{_CONNECT}Time": TIME,
}
_LONG_COLUMNS: dict[object, pa.DataType] = {"timestamp-millis": TIMESTAMP, f"{_CONNECT}Timestamp": TIMESTAMP}


def integer(bits: int, notes: Notes) -> Integer:
    """An `int` or a `long`. Connect's int8 and int16 are int32, too."""
    columns, plain = (_INT_COLUMNS, INT32) if bits == 32 else (_LONG_COLUMNS, INT64)
    named = columns.get(_connect_name(notes), plain)
    return Integer(bits, columns.get(_logical(notes), named))


def binary(size: int | None, notes: Notes) -> Bytes | Decimal:
    """`bytes`, or a `fixed` of that size. Raises InvalidValue for a decimal that no column can hold."""
    plain = Bytes(size)
    if _logical(notes) == "decimal":
        scale = _whole(notes["scale"]) if "scale" in notes else 0
        precision = _whole(notes["precision"]) if "precision" in notes else DEFAULT_PRECISION
    elif _connect_name(notes) == f"{_CONNECT}Decimal":
        scale, precision = _connect_decimal(notes)
    else:
        return plain
    if scale is None or precision is None or not 0 <= scale <= precision or not precision:
        return plain
    if precision > MAX_PRECISION:
        raise InvalidValue(f"a decimal of {precision} digits, more than {MAX_PRECISION}")
    return Decimal(plain, precision, scale)


def _connect_decimal(notes: Notes) -> tuple[int | None, int | None]:
    """Scale and precision from `connect.parameters`, where both are text."""
    parameters = notes.get("connect.parameters")
    if not isinstance(parameters, dict) or "scale" not in parameters:
        raise InvalidValue("a Connect decimal without a scale")
    return _digits(parameters["scale"]), _digits(parameters.get(_PRECISION_PARAMETER, str(DEFAULT_PRECISION)))


def _logical(notes: Notes) -> str | None:
    logical = notes.get("logicalType")
    return logical.lower() if isinstance(logical, str) else None


def _connect_name(notes: Notes) -> str | None:
    name = notes.get("connect.name")
    return name if isinstance(name, str) else None


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _digits(value: object) -> int | None:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else None
