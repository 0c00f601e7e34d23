"""Errors of records that cannot be transformed, in the words of Kafka Connect's types and without any content."""

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from parquet_sink.convert.decoded import Float32, Int32
from parquet_sink.convert.invalid import show
from parquet_sink.transform.protocol import RecordFault

_TREES: Final = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    Int32: "a whole number",
    Float32: "a number",
}
_ARROW: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (pa.types.is_struct, "a struct"),
    (pa.types.is_list, "an array"),
    (pa.types.is_map, "a map"),
    (pa.types.is_string, "a string"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_boolean, "a boolean"),
    (pa.types.is_decimal, "a Decimal"),
    (pa.types.is_date, "a Date"),
    (pa.types.is_time, "a Time"),
    (pa.types.is_timestamp, "a Timestamp"),
    (pa.types.is_null, "null"),
    (pa.types.is_int32, "an int32"),
    (pa.types.is_int64, "an int64"),
    (pa.types.is_float32, "a float32"),
    (pa.types.is_float64, "a float64"),
)


def tree_kind(value: object) -> str:
    """What a value without a schema is."""
    if value is None:
        return "null"
    return _TREES.get(type(value), "a date or time" if isinstance(value, pa.Scalar) else f"a {type(value).__name__}")


def kind(arrow: pa.DataType) -> str:
    """What a value of a type is."""
    return next(text for matches, text in _ARROW if matches(arrow))


def field(name: str) -> str:
    """A field of a record, for a message."""
    return f"field {show((name,))}" if name else "the field without a name"


def object_of(transform: str, tree: object) -> dict[str, object]:
    """The fields of a record without a schema. Raises RecordFault where it has none."""
    if not isinstance(tree, dict):
        raise RecordFault(f"{transform} changes fields of an object, and this is {tree_kind(tree)}")
    return tree


def struct_of(transform: str, arrow: pa.DataType) -> pa.StructType:
    """The type of records that have fields. Raises RecordFault for any other type."""
    if not pa.types.is_struct(arrow):
        raise RecordFault(f"{transform} changes fields of a struct, and this is {kind(arrow)}")
    return arrow


def duplicate_field(transform: str, name: str) -> RecordFault:
    """For a schema that would have a field twice."""
    return RecordFault(f"{transform} would give the schema {field(name)} twice")
