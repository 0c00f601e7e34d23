"""The kind of each payload column, and how types evolve from record to record.

A kind is int, float, bool, str, `EmptyMap`, or what transforms leave: `Int32`, `Float32`, the class of a date, a time
or a timestamp as an Arrow scalar. For a nested object (only without flattening) it is a dict of types by name, and an
Arrow type where records with a schema brought a column that records without one cannot have. Names stand in the order
of first appearance.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

import pyarrow as pa

from parquet_sink.convert.decoded import Float32, Int32
from parquet_sink.convert.invalid import InvalidValue, show
from parquet_sink.rows.metadata import why_reserved

MAX_COLUMNS = 2_500
"""Columns of one record, and of one topic; beyond, a record is invalid, and a topic's schema starts anew."""

MAX_NAME = 1_000
"""Characters in the name of a column."""


class EmptyMap:
    """The kind of `{}` where no object with content was seen yet (only without flattening)."""


ValueType: TypeAlias = type | dict[str, "ValueType"] | pa.DataType
ValueTypes: TypeAlias = dict[str, ValueType]
Row: TypeAlias = dict[str, object]

EMPTY_MAP = pa.map_(pa.string(), pa.string())
_TYPES: Mapping[object, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    str: pa.string(),
    EmptyMap: EMPTY_MAP,
    Int32: pa.int32(),
    Float32: pa.float32(),
    pa.Date32Scalar: pa.date32(),
    pa.Time32Scalar: pa.time32("ms"),
    pa.TimestampScalar: pa.timestamp("ms", "UTC"),
}
"""Kinds of values, and of columns that hold all of these."""
NUMBERS = (int, float, Int32, Float32)
_WIDER: dict[type, tuple[type, ...]] = {Int32: (int, float), Float32: (float,)}
"""Kinds of columns that hold numbers of a shorter one as they are."""
_KINDS = {arrow: kind for kind, arrow in _TYPES.items()}


class Change(Enum):
    """What a record did to the value_types."""

    NONE = "none"
    ADDED = "added"
    WIDENED = "widened"
    INCOMPATIBLE = "incompatible"


class Incompatible(Exception):
    """ValueTypes or types that cannot share a column."""


def fits(value_types: ValueTypes, row: Row) -> bool:
    """Whether the row needs no change of types; then its values are made ready for their columns, in place.

    Integers in a fraction column become fractions. Nested objects without a value become None. When the answer is
    False the row may be half converted: build it anew.
    """
    for name, value in row.items():
        kind = value_types.get(name)
        if kind is type(value):
            continue
        if isinstance(kind, dict) and isinstance(value, dict):
            if not fits(kind, value):
                return False
            if all(below is None for below in value.values()):
                row[name] = None
        elif kind is None or not _holds(kind, value):
            return False
        elif kind is float:
            row[name] = float(value)  # type: ignore[arg-type]
    return True


def count(value_types: ValueTypes) -> int:
    """How many leaves there are."""
    return len(value_types) + sum(count(kind) - 1 for kind in value_types.values() if type(kind) is dict)


def shared(one: ValueType, other: ValueType) -> ValueType | None:
    """The kind for numbers of both; None where one is no number, or a type that records with a schema brought."""
    if not (one in NUMBERS and other in NUMBERS):
        return None
    if one is other:
        return one
    return int if {one, other} == {int, Int32} else float


def to_fields(value_types: ValueTypes) -> list[pa.Field]:
    """Nullable Arrow fields, in order."""
    return [pa.field(name, to_arrow(kind)) for name, kind in value_types.items()]


def to_arrow(kind: ValueType) -> pa.DataType:
    """The Arrow type of a column of this kind."""
    if isinstance(kind, dict):
        return pa.struct(to_fields(kind))
    return kind if isinstance(kind, pa.DataType) else _TYPES[kind]


def of_arrow(arrow: pa.DataType) -> ValueType:
    """The kind of a column of any type: the reverse of `to_arrow`."""
    if pa.types.is_struct(arrow):
        return {arrow.field(index).name: of_arrow(arrow.field(index).type) for index in range(arrow.num_fields)}
    kind = _KINDS.get(arrow, arrow)
    assert isinstance(kind, (type, pa.DataType))
    return kind


def _is_exact(value: int) -> bool:
    """Whether a fraction column holds this integer without loss."""
    return int(float(value)) == value


def _holds(kind: ValueType, value: object) -> bool:
    """Whether a value of another Python type than its column's still fits without a change."""
    if kind is float and type(value) is int:
        return _is_exact(value)
    wider = _WIDER.get(type(value), ())
    return any(kind is one for one in wider) or (kind is EmptyMap and value == {})


def check(own: ValueTypes, reserved: frozenset[str]) -> None:
    """Raise InvalidValue for too many columns, names too long, or names that are ours."""
    columns = count(own)
    if columns > MAX_COLUMNS:
        raise InvalidValue(f"it has {columns:,} columns, more than the limit of {MAX_COLUMNS:,}")
    for name in own:
        if name in reserved:
            raise InvalidValue(why_reserved(name))
    _check_names(own)


def too_long(name: str) -> str:
    """The message for a column whose name begins so."""
    return f"column {show((name,))} has a name longer than {MAX_NAME:,} characters"


def _check_names(own: ValueTypes) -> None:
    for name, kind in own.items():
        if len(name) > MAX_NAME:
            raise InvalidValue(too_long(name))
        if isinstance(kind, dict):
            _check_names(kind)
