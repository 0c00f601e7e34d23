"""What is wrong with a record, in the words of Kafka Connect's types and without its content."""

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
    return _TREES.get(type(value), "a date or time")


def kind(arrow: pa.DataType) -> str:
    """What a value of a type is."""
    return next(text for matches, text in _ARROW if matches(arrow))


def field(name: str) -> str:
    """A field of a record, for a message."""
    return f"field {show((name,))}" if name else "the field without a name"


def no_object(transform: str, tree: object) -> RecordFault:
    """For a record without a schema that has no fields."""
    return RecordFault(f"{transform} changes fields of an object, and this is {tree_kind(tree)}")


def no_struct(transform: str, arrow: pa.DataType) -> RecordFault:
    """For a record with a schema that has no fields."""
    return RecordFault(f"{transform} changes fields of a struct, and this is {kind(arrow)}")


def twice(transform: str, name: str) -> RecordFault:
    """For a schema that would have a field twice."""
    return RecordFault(f"{transform} would give the schema {field(name)} twice")
