"""Which types can share a column, and how a topic's columns grow: the one place for both, in memory and in files.

Types that differ share a column when nothing is lost by it: a shorter whole number becomes a longer one, a float a
double, a struct gets the fields of both (also inside lists and maps), a decimal the greater precision, what can only be
null anything. An int64 shares a double's column only if the double holds its value, which `exact` finds out. All else
is incompatible.
"""

from collections.abc import Iterable

import pyarrow as pa

from parquet_sink.convert.decoded import decimal_type
from parquet_sink.rows.schema.value_types import EMPTY_MAP, Change, Incompatible
from parquet_sink.rows.schema.widening import aligned

__all__ = ["Columns", "Incompatible", "aligned", "joined", "leaves", "merged", "nullable", "unified", "widens"]

Columns = tuple[pa.Field, ...]
_INTEGERS = (pa.int32(), pa.int64())
_FLOATS = (pa.float32(), pa.float64())


def merged(known: Columns, own: Columns) -> tuple[Columns, Change]:
    """The columns for rows of both, those of `known` leading, and what that did to `known`.

    A column that one side lacks becomes nullable, unless nothing is known yet. WIDENED: an int64 became a double, which
    not every value bears. INCOMPATIBLE: `own` alone is given.
    """
    if not known:
        return own, Change.ADDED if own else Change.NONE
    try:
        columns = _united(known, own)
    except Incompatible:
        return own, Change.INCOMPATIBLE
    if columns == known:
        return known, Change.NONE
    return columns, Change.WIDENED if any(map(widens, known, columns)) else Change.ADDED


def unified(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type for values of both. Raises Incompatible."""
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return pa.struct(_united(_fields(one), _fields(other)))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(joined(one.value_field, other.value_field))
    if pa.types.is_map(one) and pa.types.is_map(other) and one.key_type.equals(other.key_type):
        return pa.map_(one.key_type, joined(one.item_field, other.item_field))
    return _number(one, other)


def leaves(columns: Columns) -> int:
    """How many columns there are when each field of a struct counts as one."""
    return sum(_leaves(column.type) for column in columns)


def joined(one: pa.Field, other: pa.Field) -> pa.Field:
    """The column for values of both fields of one name: `one` itself when nothing changes. Raises Incompatible."""
    if one.equals(other):
        return one
    return pa.field(one.name, unified(one.type, other.type), nullable=one.nullable or other.nullable)


def nullable(field: pa.Field) -> pa.Field:
    """The field itself where it can be: thousands are compared for each new schema."""
    return field if field.nullable else field.with_nullable(True)


def widens(known: pa.Field, column: pa.Field) -> bool:
    """Whether an int64 anywhere in the column became a double."""
    return known is not column and _type_widens(known.type, column.type)


def _leaves(of: pa.DataType) -> int:
    if not pa.types.is_nested(of) or of.equals(EMPTY_MAP):
        return 1
    if pa.types.is_struct(of):
        return leaves(_fields(of))
    if pa.types.is_list(of):
        return _leaves(of.value_type)
    return 1 + _leaves(of.item_type)


def _united(one: Iterable[pa.Field], other: Iterable[pa.Field]) -> Columns:
    fields, others = {field.name: field for field in one}, {field.name: field for field in other}
    for name, field in fields.items():
        fields[name] = joined(field, others[name]) if name in others else nullable(field)
    fields.update({name: nullable(field) for name, field in others.items() if name not in fields})
    return tuple(fields.values())


def _fields(struct: pa.DataType) -> Columns:
    return tuple(struct.field(index) for index in range(struct.num_fields))


def _number(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(one) and pa.types.is_decimal(other) and one.scale == other.scale:
        return decimal_type(max(one.precision, other.precision), one.scale)
    if one in _INTEGERS and other in _INTEGERS:
        return pa.int64()
    if one in _INTEGERS + _FLOATS and other in _INTEGERS + _FLOATS:
        return pa.float64()
    raise Incompatible


def _type_widens(known: pa.DataType, now: pa.DataType) -> bool:
    if pa.types.is_struct(known):
        return any(widens(field, now.field(field.name)) for field in _fields(known))
    if pa.types.is_list(known):
        return _type_widens(known.value_type, now.value_type)
    if pa.types.is_map(known):
        return _type_widens(known.item_type, now.item_type)
    return bool(known.equals(pa.int64()) and now.equals(pa.float64()))
