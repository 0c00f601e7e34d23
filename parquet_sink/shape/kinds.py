"""The kind of each payload column, and how kinds evolve from record to record.

A kind is int, float, bool, str, `EmptyMap`, or for a nested object (only without flattening) a dict of kinds by name;
an Arrow type where records with a schema brought a column that records without one cannot have. Names stand in the
order of first appearance. Pure.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

import pyarrow as pa

from parquet_sink.convert.invalid import InvalidValue, show
from parquet_sink.shape.metadata import why_reserved

MAX_COLUMNS = 2_500
"""Columns of one record, and of one topic; beyond, a record is invalid, and a topic's schema starts anew."""

MAX_NAME = 1_000
"""Characters in the name of a column."""


class EmptyMap:
    """The kind of `{}` where no object with content was seen yet (only without flattening)."""


Kind: TypeAlias = type | dict[str, "Kind"] | pa.DataType
Kinds: TypeAlias = dict[str, Kind]
Row: TypeAlias = dict[str, object]

EMPTY_MAP = pa.map_(pa.string(), pa.string())
_TYPES: Mapping[object, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    str: pa.string(),
    EmptyMap: EMPTY_MAP,
}
_NUMBERS = (int, float)
_KINDS = {arrow: kind for kind, arrow in _TYPES.items()}


class Change(Enum):
    """What a record did to the kinds."""

    NONE = "none"
    ADDED = "added"
    WIDENED = "widened"
    INCOMPATIBLE = "incompatible"


class Incompatible(Exception):
    """Kinds or types that cannot share a column."""


def fits(kinds: Kinds, row: Row) -> bool:
    """Whether the row needs no change of kinds; then its values are made ready for their columns, in place.

    Integers in a fraction column become fractions. Nested objects without a value become None. When the answer is
    False the row may be half converted: build it anew.
    """
    for name, value in row.items():
        kind = kinds.get(name)
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


def evolve(known: Kinds, row: Row, reserved: frozenset[str], *, flat: bool = False) -> tuple[Kinds, Change]:
    """The kinds with this row's taken in. The row is one that `fits` refused, built anew.

    Incompatible kinds, or more columns than a topic may have, give the row's own kinds. reserved: names that a payload
    column may not have. flat: no kind is an object's, so that none of thousands need be looked into. Raises
    InvalidValue when the row could not stand on its own.
    """
    own, _ = _merge({}, row)
    check(own, reserved)
    try:
        kinds, change = _merge(known, row)
    except Incompatible:
        return own, Change.INCOMPATIBLE
    columns = len(kinds) if flat else count(kinds)
    return (kinds, change) if columns <= MAX_COLUMNS else (own, Change.INCOMPATIBLE)


def unite(first: Kinds, second: Kinds) -> Kinds:
    """Both taken together, the order of `first` leading; where they are incompatible, `second` alone."""
    try:
        kinds = _unite(first, second)
    except Incompatible:
        return second
    return kinds if count(kinds) <= MAX_COLUMNS else second


def count(kinds: Kinds) -> int:
    """How many leaves there are."""
    return len(kinds) + sum(count(kind) - 1 for kind in kinds.values() if type(kind) is dict)


def to_fields(kinds: Kinds) -> list[pa.Field]:
    """Nullable Arrow fields, in order."""
    return [pa.field(name, to_arrow(kind)) for name, kind in kinds.items()]


def to_arrow(kind: Kind) -> pa.DataType:
    """The Arrow type of a column of this kind."""
    if isinstance(kind, dict):
        return pa.struct(to_fields(kind))
    return kind if isinstance(kind, pa.DataType) else _TYPES[kind]


def of_arrow(arrow: pa.DataType) -> Kind:
    """The kind of a column of any type: the reverse of `to_arrow`."""
    if pa.types.is_struct(arrow):
        return {arrow.field(index).name: of_arrow(arrow.field(index).type) for index in range(arrow.num_fields)}
    kind = _KINDS.get(arrow, arrow)
    assert isinstance(kind, (type, pa.DataType))
    return kind


def from_fields(fields: list[pa.Field]) -> Kinds:
    """The reverse of `to_fields`. Raises KeyError for a type that is no kind's."""
    return {field.name: _from_arrow(field.type) for field in fields}


def _from_arrow(arrow: pa.DataType) -> Kind:
    if pa.types.is_struct(arrow):
        return from_fields([arrow.field(index) for index in range(arrow.num_fields)])
    kind = _KINDS[arrow]
    assert isinstance(kind, type)
    return kind


def _is_exact(value: int) -> bool:
    """Whether a fraction column holds this integer without loss."""
    return int(float(value)) == value


def _merge(known: Kinds, row: Row) -> tuple[Kinds, Change]:
    """The kinds with the row's taken in, and the greater change of ADDED and WIDENED. Raises Incompatible."""
    kinds, change = dict(known), Change.ADDED
    for name, value in row.items():
        kind = kinds.get(name)
        if kind is type(value):
            continue
        if isinstance(value, dict) and (isinstance(kind, dict) or (kind is None and value)):
            kinds[name], below = _merge(kind if isinstance(kind, dict) else {}, value)
            change = below if change is Change.ADDED else change
        elif kind is None:
            kinds[name] = EmptyMap if isinstance(value, dict) else type(value)
        elif kind is int and type(value) is float:
            kinds[name], change = float, Change.WIDENED
        elif not _holds(kind, value):
            raise Incompatible
    return kinds, change


def _holds(kind: Kind, value: object) -> bool:
    """Whether a value of another Python type than its column's still fits without a change."""
    if kind is float and type(value) is int:
        return _is_exact(value)
    return kind is EmptyMap and value == {}


def _unite(first: Kinds, second: Kinds) -> Kinds:
    kinds = dict(first)
    for name, kind in second.items():
        known = kinds.get(name)
        if known is None:
            kinds[name] = kind
        elif isinstance(known, dict) and isinstance(kind, dict):
            kinds[name] = _unite(known, kind)
        elif known is kind:
            continue
        elif known in _NUMBERS and kind in _NUMBERS:
            kinds[name] = float
        else:
            raise Incompatible
    return kinds


def check(own: Kinds, reserved: frozenset[str]) -> None:
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


def _check_names(own: Kinds) -> None:
    for name, kind in own.items():
        if len(name) > MAX_NAME:
            raise InvalidValue(too_long(name))
        if isinstance(kind, dict):
            _check_names(kind)
