"""Which types can share a column, how columns grow, and what keeps rows of one topic from sharing files.

Types that differ share a column when nothing is lost by it: a shorter whole number becomes a longer one, a float a
double, a struct gets the fields of both (also inside lists and maps), a decimal the greater precision, what can only be
null anything. An int64 shares a double's column only if the double holds its value, which `aligned` finds out. All else
is incompatible. It is the one place for this, in memory and in files.
"""

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.arrays import reinterpreted
from parquet_sink.convert.decoded import decimal_type
from parquet_sink.convert.invalid import show
from parquet_sink.rows.schema.arrow_types import entries, fields, nulls, type_name

_BEYOND = pa.scalar(2.0**63, pa.float64())
"""The double that the largest int64 would be rounded to, which is none."""
_GALLOP = 16
Columns = tuple[pa.Field, ...]
_INTEGERS = (pa.int32(), pa.int64())
_FLOATS = (pa.float32(), pa.float64())


EMPTY_MAP = pa.map_(pa.string(), pa.string())


class Change(Enum):
    """What a record did to the columns."""

    NONE = "none"
    ADDED = "added"
    WIDENED = "widened"
    INCOMPATIBLE = "incompatible"


class Incompatible(Exception):
    """Types that cannot share a column."""


# Arrow's own cast refuses every number beyond 2**53, also those that a double holds (2**60), and for slices of some
# nested arrays also because of what is outside the slice.
def aligned(array: pa.Array, to: pa.DataType) -> pa.Array:
    """The array as the type that `evolution.unified` gave for its own and another, fields that it lacks as nulls.

    Also takes chunked arrays. Raises pa.ArrowInvalid for an int64 that a double cannot hold.
    """
    if array.type.equals(to):
        return array
    try:
        return array.cast(to)
    except pa.ArrowInvalid:
        if isinstance(array, pa.ChunkedArray):
            return pa.chunked_array([aligned(chunk, to) for chunk in array.chunks], to)
        return _converted(_compact(array), to)


def first_inexact(array: pa.Array, to: pa.DataType) -> int | None:
    """The first entry for which `aligned` raises, None when there is none."""
    good, size = 0, 1
    while good < len(array):
        if can_align(array.slice(good, size), to):
            good, size = good + size, size * _GALLOP
        elif size == 1:
            return good
        else:
            size = max(1, min(size, len(array) - good) // 2)
    return None


def can_align(array: pa.Array, to: pa.DataType) -> bool:
    """Whether `aligned` does not raise."""
    try:
        aligned(array, to)
    except pa.ArrowInvalid:
        return False
    return True


def _compact(array: pa.Array) -> pa.Array:
    """The array with nothing below it but what belongs to its entries."""
    return array.take(pa.array(np.arange(len(array)))) if pa.types.is_nested(array.type) else array


def _converted(array: pa.Array, to: pa.DataType) -> pa.Array:
    if array.type.equals(to):
        return array
    if pa.types.is_map(array.type):
        return reinterpreted(_converted(reinterpreted(array, entries(array.type)), entries(to)), to)
    if pa.types.is_list(array.type):
        values = _converted(array.values, to.value_type)
        return pa.Array.from_buffers(to, len(array), array.buffers()[:2], offset=array.offset, children=[values])
    if pa.types.is_struct(array.type):
        return _struct(array, to)
    return _doubles(array) if _is_widened(array.type, to) else array.cast(to)


def _struct(array: pa.StructArray, to: pa.DataType) -> pa.StructArray:
    children = []
    for field in fields(to):
        index = array.type.get_field_index(field.name)
        missing = index < 0
        children.append(nulls(len(array), field.type) if missing else _converted(array.field(index), field.type))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(fields(to)), mask=mask)


def _is_widened(own: pa.DataType, to: pa.DataType) -> bool:
    return bool(own.equals(pa.int64()) and to.equals(pa.float64()))


def _doubles(array: pa.Int64Array) -> pa.DoubleArray:
    found = array.cast(pa.float64(), safe=False)
    same = pc.and_(pc.less(found, _BEYOND), pc.equal(found.cast(pa.int64(), safe=False), array))
    if pc.all(same).as_py() is False:
        raise pa.ArrowInvalid("a whole number that no double holds")
    return found


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
        return pa.struct(_united(fields(one), fields(other)))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(joined(one.value_field, other.value_field))
    if pa.types.is_map(one) and pa.types.is_map(other) and one.key_type.equals(other.key_type):
        return pa.map_(one.key_type, joined(one.item_field, other.item_field))
    return _number(one, other)


def takes(column: pa.DataType, own: pa.DataType) -> bool:
    """Whether a column needs no other type for values of this type, leaving out whether it bears all of them."""
    try:
        return bool(unified(column, own).equals(column))
    except Incompatible:
        return False


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
        return leaves(fields(of))
    if pa.types.is_list(of):
        return _leaves(of.value_type)
    return 1 + _leaves(of.item_type)


def _united(one: Iterable[pa.Field], other: Iterable[pa.Field]) -> Columns:
    found, others = {field.name: field for field in one}, {field.name: field for field in other}
    for name, field in found.items():
        found[name] = joined(field, others[name]) if name in others else nullable(field)
    found.update({name: nullable(field) for name, field in others.items() if name not in found})
    return tuple(found.values())


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
        return any(widens(field, now.field(field.name)) for field in fields(known))
    if pa.types.is_list(known):
        return _type_widens(known.value_type, now.value_type)
    if pa.types.is_map(known):
        return _type_widens(known.item_type, now.item_type)
    return bool(known.equals(pa.int64()) and now.equals(pa.float64()))


_LOG = logging.getLogger(__name__)

FILES: Final = 10
"""Files in a row that another schema ended, before anything is said."""

FEW_ROWS: Final = 1_000
"""Rows of such files, on average, that are few."""

_Clash = tuple[tuple[str, ...], pa.DataType, pa.DataType]


class ChangeHistory:
    """Of one topic, fed with each file that ended because the next rows could not share its columns."""

    def __init__(self, connector: str, topic: str) -> None:
        self._who = f"connector {connector}: topic {topic}"
        self._rows: deque[int] = deque(maxlen=FILES)
        self._warned = False

    def ended(self, rows: int, before: pa.Schema, after: pa.Schema) -> str | None:
        """What to warn of, once; else None.

        rows: of the file. before, after: the columns of the rows just before its end, and of those that came then.
        """
        self._rows.append(rows)
        mean = sum(self._rows) / len(self._rows)
        if self._warned or len(self._rows) < FILES or mean >= FEW_ROWS:
            return None
        self._warned = True
        every = f"its records' types ended the last {FILES} files early, at {mean:,.1f} rows per file"
        return f"{self._who}: {every}. {_why(tuple(before), tuple(after))}"


_history_of = lru_cache(maxsize=4_096)(ChangeHistory)


class SchemaChangeMonitor:
    """Of one range: logs what `ChangeHistory` has to say, once for each connector and topic in a process."""

    def __init__(self, connector: str, topic: str) -> None:
        self._churn = _history_of(connector, topic)
        self._schema: pa.Schema | None = None

    def added(self, schema: pa.Schema, ended: Iterable[int]) -> None:
        """Rows of this schema were added. ended: the rows of each file that had to end because of their schema."""
        for rows in ended:
            text = self._churn.ended(rows, self._schema or schema, schema)
            if text is not None:
                _LOG.warning("%s", text)
        self._schema = schema


def _why(before: Columns, after: Columns) -> str:
    """What keeps rows of these columns from sharing a file, and what to do."""
    found = next(_clashes(before, after, ()), None) or next(_inexact(before, after, ()), None)
    if found is not None:
        path, one, other = found
        return (
            f"Column {show(path)} is {_name(one)} in some records and {_name(other)} in others, and no column holds "
            "both. Let the producers write one type, or give each its own topic; connect.ems.flattener.jsonblob.chunks "
            "stores records as text, whatever their types."
        )
    known = {column.name for column in before}
    new = [column.name for column in after if column.name not in known]
    example = f", the last one {show((new[-1],))}" if new else ""
    return (
        f"Its records bring ever new columns{example}. Let the producers keep data out of the names of fields; "
        "connect.ems.flattener.jsonblob.chunks stores records as text, whatever their fields."
    )


def _clashes(before: Columns, after: Columns, above: tuple[str, ...]) -> Iterator[_Clash]:
    """Columns whose types cannot be one, structs opened."""
    for one, other in _pairs(before, after):
        path = (*above, one.name)
        try:
            joined(one, other)
        except Incompatible:
            if pa.types.is_struct(one.type) and pa.types.is_struct(other.type):
                yield from _clashes(fields(one.type), fields(other.type), path)
            else:
                yield path, one.type, other.type


def _inexact(before: Columns, after: Columns, above: tuple[str, ...]) -> Iterator[_Clash]:
    """Columns of which one side has whole numbers that no double may hold, and the other fractions."""
    for one, other in _pairs(before, after):
        path = (*above, one.name)
        if pa.types.is_struct(one.type) and pa.types.is_struct(other.type):
            yield from _inexact(fields(one.type), fields(other.type), path)
        elif widens(one, both := joined(one, other)) or widens(other, both):
            yield path, one.type, other.type


def _pairs(before: Sequence[pa.Field], after: Sequence[pa.Field]) -> Iterator[tuple[pa.Field, pa.Field]]:
    known: Mapping[str, pa.Field] = {column.name: column for column in before}
    return ((known[column.name], column) for column in after if column.name in known)


def _name(arrow: pa.DataType) -> str:
    if pa.types.is_integer(arrow):
        return f"a whole number ({arrow})"
    if pa.types.is_floating(arrow):
        return f"a fraction ({arrow})"
    plain = not (pa.types.is_nested(arrow) or pa.types.is_decimal(arrow)) or pa.types.is_struct(arrow)
    return type_name(arrow) if plain else str(arrow)
