"""Kafka Connect's JsonConverter: values of an Arrow type, which stands for a schema, as JSON, and the schema itself."""

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyarrow import types

from parquet_sink.addons.sources.encoding import jackson
from parquet_sink.addons.sources.encoding.faults import NotEncodable
from parquet_sink.convert.calendars import DAY_MS
from parquet_sink.convert.decoded import MAX_PRECISION

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = date(1970, 1, 1).toordinal()
_DATA: Final = "org.apache.kafka.connect.data."
_Test = Callable[[pa.DataType], bool]
_SIMPLE: Final[tuple[tuple[_Test, str, str], ...]] = (
    (types.is_string, "string", ""),
    (types.is_int32, "int32", ""),
    (types.is_int64, "int64", ""),
    (types.is_boolean, "boolean", ""),
    (types.is_float64, "double", ""),
    (types.is_float32, "float", ""),
    (types.is_binary, "bytes", ""),
    (types.is_timestamp, "int64", "Timestamp"),
    (types.is_date32, "int32", "Date"),
    (types.is_time32, "int32", "Time"),
)
"""What a type is called in a schema, and its logical type there."""


def schema(arrow: pa.DataType, *, optional: bool = False) -> str:
    """The schema as JSON text, as it stands in an envelope. Raises NotEncodable for a type that Connect has not."""
    fields = [*_described(arrow), ("optional", "true" if optional else "false"), *_named(arrow)]
    return jackson.object_of(fields)


def _described(arrow: pa.DataType) -> list[tuple[str, str]]:
    if types.is_struct(arrow):
        return [("type", '"struct"'), ("fields", jackson.list_of([_field(one) for one in arrow]))]
    if types.is_list(arrow):
        return [("type", '"array"'), ("items", schema(arrow.value_type, optional=arrow.value_field.nullable))]
    if types.is_map(arrow):
        items = schema(arrow.item_type, optional=arrow.item_field.nullable)
        return [("type", '"map"'), ("keys", schema(arrow.key_type)), ("values", items)]
    if types.is_decimal(arrow):
        return [("type", '"bytes"')]
    for test, name, _ in _SIMPLE:
        if test(arrow):
            return [("type", f'"{name}"')]
    raise NotEncodable(f"JsonConverter has no schema for {arrow}")


def _field(field: pa.Field) -> str:
    whole = schema(field.type, optional=field.nullable)
    return f'{whole[:-1]},"field":{jackson.text(field.name)}}}'


def _named(arrow: pa.DataType) -> list[tuple[str, str]]:
    """The logical type. Connect writes parameters behind the version."""
    if types.is_decimal(arrow):
        parameters = jackson.object_of([("scale", f'"{arrow.scale}"')])
        return [("name", f'"{_DATA}Decimal"'), ("version", "1"), ("parameters", parameters)]
    name = next((logical for test, _, logical in _SIMPLE if logical and test(arrow)), "")
    return [("name", f'"{_DATA}{name}"'), ("version", "1")] if name else []


def payload(value: Any, arrow: pa.DataType) -> str:
    """A value of that type as JSON text. Raises NotEncodable for one that is not of it."""
    if value is None:
        return "null"
    try:
        return _payload(value, arrow)
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        raise NotEncodable(f"a value is not of its type {arrow}") from error


def _payload(value: Any, arrow: pa.DataType) -> str:
    if types.is_struct(arrow):
        return jackson.object_of([(field.name, payload(value.get(field.name), field.type)) for field in arrow])
    if types.is_list(arrow):
        return jackson.list_of([payload(one, arrow.value_type) for one in value])
    if types.is_map(arrow):
        return _map(list(value.items() if isinstance(value, Mapping) else value), arrow)
    if types.is_decimal(arrow) or types.is_binary(arrow):
        return _base64(_unscaled(value, arrow.scale) if types.is_decimal(arrow) else value)
    if types.is_float32(arrow):
        return jackson.number(value, of_32_bits=True)
    return jackson.dumped(_plain(value, arrow))


def _map(pairs: list[tuple[Any, Any]], arrow: pa.MapType) -> str:
    """Connect has an object for keys that are text, and a list of pairs for all others."""
    if types.is_string(arrow.key_type):
        return jackson.object_of([(str(key), payload(one, arrow.item_type)) for key, one in pairs])
    return jackson.list_of(
        [jackson.list_of([payload(key, arrow.key_type), payload(one, arrow.item_type)]) for key, one in pairs]
    )


def _plain(value: Any, arrow: pa.DataType) -> object:
    """Dates and times as the numbers that stand for them, which is what transforms leave."""
    if types.is_timestamp(arrow) and isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        passed = moment - _EPOCH
        return passed.days * 86_400_000 + passed.seconds * 1000 + passed.microseconds // 1000
    if types.is_date32(arrow) and isinstance(value, date):
        return value.toordinal() - _DAY
    if types.is_time32(arrow) and isinstance(value, time):
        return (value.hour * 3600 + value.minute * 60 + value.second) * 1000 + value.microsecond // 1000
    return value


def epoch_ms(value: object, arrow: pa.DataType) -> int:
    """Of a date, time or timestamp. Raises NotEncodable."""
    number = _plain(value, arrow)
    if not isinstance(number, int):
        raise NotEncodable(f"a value is not of its type {arrow}")
    return number * DAY_MS if types.is_date32(arrow) else number


def _unscaled(value: Decimal, scale: int) -> bytes:
    """`BigInteger.toByteArray`: two's complement, as few bytes as hold the sign, too. Raises ValueError.

    By its digits, because arithmetic on decimals rounds to 28 of them.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent < -scale or len(digits) + exponent > MAX_PRECISION:
        raise ValueError
    unsigned = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    number: int = -unsigned if sign else unsigned
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def _base64(data: bytes) -> str:
    return f'"{base64.b64encode(data).decode()}"'
