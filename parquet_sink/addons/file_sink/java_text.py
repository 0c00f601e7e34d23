"""Values as Java prints them (`String.valueOf` of what Kafka Connect's converters make), which FileStreamSink writes.

    Connect's value                        text
    null                                   null
    string                                 as it is
    numbers, boolean                       1, 0.5, 1.0E10, true
    Decimal                                its digits, 1.50
    Date, Time, Timestamp                  Thu Jan 01 00:00:00 UTC 1970: Java's Date, in UTC
    struct                                 Struct{a=1,b=x}: fields that are null are left out
    map, or an object without a schema     {a=1, b=x}: in the order of the record, where Java's is that of its hashes
    array, or a list without a schema      [1, 2]
    bytes                                  base64, where Java prints where they are in memory

Numbers are as Java 19 and newer print them.
"""

import base64
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import pyarrow as pa

from parquet_sink.addons.transforms.fields.java.date_format import DateFormat
from parquet_sink.addons.transforms.fields.java.numbers import of_float, of_float32
from parquet_sink.convert.calendars import DAY_MS
from parquet_sink.convert.decoded import Float32, InferredColumns, Piece, SchemaColumns
from parquet_sink.transform.fields.plain import to_plain

Writer = Callable[[Any], str]
NULL: Final = "null"
_DATE: Final = DateFormat("EEE MMM dd HH:mm:ss 'UTC' y")


def texts(piece: Piece) -> Sequence[str]:
    """One for each row of a piece."""
    if isinstance(piece, SchemaColumns):
        return [*map(writer(piece.rows.type), to_plain(piece.rows))]
    if isinstance(piece, InferredColumns):
        return [of_tree(piece.tree(row)) for row in range(len(piece.positions))]
    return [*map(of_tree, piece.trees)]


def of_tree(value: object) -> str:
    """Of a value without a schema, in which Arrow scalars may be."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={of_tree(below)}" for name, below in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(of_tree, value)) + "]"
    if isinstance(value, pa.Scalar):
        return _or_null(writer(value.type))(to_plain(pa.array([value], value.type))[0])
    if value is None:
        return NULL
    return _LEAVES.get(type(value), str)(value)


@cache
def writer(arrow: pa.DataType) -> Writer:
    """Of values of a type that are not null, as `to_plain` gives them."""
    if pa.types.is_struct(arrow):
        return _struct([(field.name, writer(field.type)) for field in arrow])
    if pa.types.is_list(arrow):
        item = _or_null(writer(arrow.value_type))
        return lambda values: "[" + ", ".join(map(item, values)) + "]"
    if pa.types.is_map(arrow):
        key, item = _or_null(writer(arrow.key_type)), _or_null(writer(arrow.item_type))
        return lambda entries: "{" + ", ".join(f"{key(name)}={item(value)}" for name, value in entries) + "}"
    return _leaf(arrow)


def _leaf(arrow: pa.DataType) -> Writer:
    if pa.types.is_date(arrow):
        return lambda days: _DATE.format(days * DAY_MS)
    if pa.types.is_temporal(arrow):
        return _DATE.format
    if pa.types.is_float32(arrow):
        return of_float32
    if pa.types.is_floating(arrow):
        return of_float
    if pa.types.is_boolean(arrow):
        return _boolean
    return _base64 if pa.types.is_binary(arrow) else str


def _struct(fields: Sequence[tuple[str, Writer]]) -> Writer:
    def write(value: dict[str, Any]) -> str:
        there = (f"{name}={text(value[name])}" for name, text in fields if value[name] is not None)
        return "Struct{" + ",".join(there) + "}"

    return write


def _or_null(text: Writer) -> Writer:
    return lambda value: NULL if value is None else text(value)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


_LEAVES: Final[dict[type, Writer]] = {bool: _boolean, float: of_float, Float32: of_float32, bytes: _base64}
