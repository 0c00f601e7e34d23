"""A topic's payload columns: their kinds, how decoded records change them, and what is kept of them for the next range.

For records with a schema columns are Arrow fields, for those without kinds; each is worked out from the other when it
is asked for. A change costs as much as what changes, not as all columns.

A kind is int, float, bool, str, `EmptyMap`, or what transforms leave: `Int32`, `Float32`, the class of a date, a time
or a timestamp as an Arrow scalar. For a nested object (only without flattening) it is a dict of kinds by name, and an
Arrow type where records with a schema brought a column that records without one cannot have. Names are distinct and
stand in the order of first appearance.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import orjson
import pyarrow as pa

from parquet_sink.convert.decoded import Float32, Int32
from parquet_sink.convert.invalid import show
from parquet_sink.convert.json import profile
from parquet_sink.rows.schema.evolution import (
    EMPTY_MAP,
    Change,
    Columns,
    Incompatible,
    joined,
    leaves,
    merged,
    nullable,
    unified,
    widens,
)
from parquet_sink.rows.settings import ShapeSettings

MAX_COLUMNS = 2_500
"""Columns of one record, and of one topic; beyond, a record is invalid, and a topic's schema starts again."""

MAX_NAME = 1_000
"""Characters in the name of a column."""


SEPARATOR = "_"
_ODD = re.compile(r"[^A-Za-z0-9]")


@lru_cache(maxsize=8192)
def column_name(joined: str) -> str:
    """The name of a flattened column: every character outside A-Z, a-z, 0-9 becomes an underscore."""
    return _ODD.sub("_", joined)


def too_long(name: str) -> str:
    """The message for a column whose name begins so."""
    return f"column {show((name,))} has a name longer than {MAX_NAME:,} characters"


class EmptyMap:
    """The kind of `{}` where no object with content was seen yet (only without flattening)."""


ValueType: TypeAlias = type | dict[str, "ValueType"] | pa.DataType
ValueTypes: TypeAlias = dict[str, ValueType]
Row: TypeAlias = dict[str, object]

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


COLUMNS_KEY: Final = b"parquet_sink.columns"
DECODER_KEY: Final = b"parquet_sink.decoder"

CUTS = (Change.WIDENED, Change.INCOMPATIBLE)
"""Changes with which a new run begins."""

_Undo = list[tuple[ValueTypes, str, ValueType | None]]


def fits(value_types: ValueTypes, row: Row) -> bool:
    """Whether the row needs no change of types; then its values are made ready for their columns, in place.

    Integers in a fraction column become fractions. Nested objects without a value become None. When the answer is
    False the row may be half converted: build it again.
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
    """The kind for numbers of both; None where one is not a number, or a type that records with a schema brought."""
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


@dataclass(frozen=True)
class Step:
    """What a schema asks of the columns. fields: those that are new or changed; all of them when it starts again."""

    change: Change
    fields: Mapping[str, pa.Field]


class TopicColumns:
    """Names are distinct and stand in the order of first appearance."""

    def __init__(self, columns: Columns = ()) -> None:
        self.version = 0
        """Differs whenever the columns do."""
        self._begin(columns)

    def _begin(self, columns: Columns) -> None:
        self.version += 1
        self._fields = {column.name: column for column in columns}
        self._required = {column.name for column in columns if not column.nullable}
        self._leaves = leaves(columns)
        self._value_types: ValueTypes | None = None
        self._loose = False
        self._stale: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._fields or self._stale)

    def __contains__(self, name: object) -> bool:
        return name in self._fields or name in self._stale

    @property
    def columns(self) -> Columns:
        """The fields."""
        return tuple(self._fresh().values())

    def field(self, name: str) -> pa.Field:
        """One of the fields."""
        return self._fresh()[name]

    @property
    def value_types(self) -> ValueTypes:
        """The types; not to be changed."""
        if self._value_types is None:
            self._value_types = {name: of_arrow(field.type) for name, field in self._fields.items()}
        return self._value_types

    def step(self, own: Columns) -> Step:
        """What records of these columns ask for, leaving out whether their values are borne."""
        fields = self._fresh()
        mine = {field.name: field for field in own}
        if not fields:
            return Step(Change.ADDED if own else Change.NONE, mine)
        try:
            changed = _changed(fields, own)
        except Incompatible:
            return Step(Change.INCOMPATIBLE, mine)
        changed |= {name: nullable(changed.get(name, fields[name])) for name in self._required - mine.keys()}
        if not changed:
            return Step(Change.NONE, {})
        if self._leaves + _more_leaves(fields, changed) > MAX_COLUMNS:
            return Step(Change.INCOMPATIBLE, mine)
        widened = any(widens(fields[name], field) for name, field in changed.items() if name in fields)
        return Step(Change.WIDENED if widened else Change.ADDED, changed)

    def make(self, step: Step) -> None:
        """Take a step."""
        if step.change is Change.INCOMPATIBLE:
            self._begin(tuple(step.fields.values()))
        elif step.fields:
            self.version += 1
            self._leaves += _more_leaves(self._fields, step.fields)
            self._fields.update(step.fields)
            self._required -= step.fields.keys()
            self._required |= {name for name, field in step.fields.items() if not field.nullable}
            self._value_types, self._loose = None, False

    def change_for(self, own: ValueTypes, rows: Sequence[Row]) -> Change:
        """What rows of these types ask for; they are made ready for their columns, unless it is to start again.

        own: the types of these rows alone, within the limits of one record.
        """
        undo: _Undo = []
        try:
            widened = _grow(self.value_types, own, undo)
            more = _added(undo)
            if self and more and self._leaves + more > MAX_COLUMNS:
                return Change.INCOMPATIBLE
            if not all(fits(self.value_types, row) for row in rows):
                return Change.INCOMPATIBLE
        except Incompatible:
            return Change.INCOMPATIBLE
        finally:
            for below, name, was in reversed(undo):
                if was is None:
                    del below[name]
                else:
                    below[name] = was
        return Change.WIDENED if widened else Change.ADDED if undo else Change.NONE

    def take(self, own: ValueTypes, change: Change) -> None:
        """Make the change that `change_for` gave; rows that fit as they are ask for none, and own may be empty then."""
        if change is Change.INCOMPATIBLE:
            self._begin(())
        self._loosen()
        if change is Change.NONE:
            return
        self.version += 1
        undo: _Undo = []
        _grow(self.value_types, own, undo)
        self._leaves += _added(undo)
        self._stale.update((name, None) for below, name, _ in undo if below is self._value_types)
        self._stale.update((name, None) for name, kind in own.items() if isinstance(kind, dict))

    def _loosen(self) -> None:
        """Rows without a schema may lack any field, at every depth."""
        if self._loose:
            return
        value_types = self.value_types
        self._fields = {name: pa.field(name, to_arrow(kind)) for name, kind in value_types.items()}
        self._required = set()
        self._loose = True

    def _fresh(self) -> dict[str, pa.Field]:
        if self._stale:
            value_types = self.value_types
            self._fields.update({name: pa.field(name, to_arrow(value_types[name])) for name in self._stale})
            self._stale = {}
        return self._fields


def _changed(fields: Mapping[str, pa.Field], own: Columns) -> dict[str, pa.Field]:
    changed = {}
    for field in own:
        known = fields.get(field.name)
        if known is None:
            changed[field.name] = nullable(field)
        elif (both := joined(known, field)) is not known and not both.equals(known):
            changed[field.name] = both
    return changed


def _more_leaves(fields: Mapping[str, pa.Field], changed: Mapping[str, pa.Field]) -> int:
    return leaves(tuple(changed.values())) - leaves(tuple(fields[name] for name in changed if name in fields))


def _grow(known: ValueTypes, own: ValueTypes, undo: _Undo) -> bool:
    """Take types into known ones; whether an int became a float. What it did goes to `undo`. Raises Incompatible."""
    widened = False
    for name, kind in own.items():
        was = known.get(name)
        if was is kind or (isinstance(was, dict) and kind is EmptyMap):
            continue
        if was is not None and isinstance(was, dict) and isinstance(kind, dict):
            widened |= _grow(was, kind, undo)
            continue
        if was is None:
            now: ValueType = _copy(kind)
        elif (both := shared(was, kind)) is not None:
            if both is was:
                continue
            now, widened = both, widened or (was is int and both is float)
        elif isinstance(was, pa.DataType):
            now = of_arrow(unified(was, to_arrow(kind)))
        else:
            raise Incompatible
        undo.append((known, name, was))
        known[name] = now
    return widened


def _copy(kind: ValueType) -> ValueType:
    """What may grow without changing what it is a copy of."""
    return {name: _copy(below) for name, below in kind.items()} if isinstance(kind, dict) else kind


def _added(undo: _Undo) -> int:
    """How many leaves there are more."""
    return sum(count({name: below[name]}) for below, name, was in undo if was is None)


@dataclass(frozen=True)
class LearnedSchema:
    """columns: of the topic. decoder: see `convert.decoded.LearningDecoder`."""

    columns: Columns = ()
    decoder: bytes | None = None

    @classmethod
    def restored(
        cls, saved: pa.Schema | None, settings: ShapeSettings, reserved: frozenset[str] = frozenset()
    ) -> "LearnedSchema":
        """What `to_schema` gave; nothing when it was learned under other settings, or by an earlier version.

        reserved: names that payload columns may not have.
        """
        if saved is None:
            return cls()
        found = saved.metadata or {}
        if found.get(COLUMNS_KEY) != _fingerprint(settings) or reserved & set(saved.names):
            return cls()
        return cls(tuple(saved), found.get(DECODER_KEY))

    def to_schema(self, settings: ShapeSettings) -> pa.Schema | None:
        """The schema to keep; None when nothing is known."""
        if not self.columns and self.decoder is None:
            return None
        found = {COLUMNS_KEY: _fingerprint(settings)}
        if self.decoder is not None:
            found[DECODER_KEY] = self.decoder
        return pa.schema(self.columns, metadata=found)


def merge(first: pa.Schema | None, second: pa.Schema | None) -> pa.Schema | None:
    """What two Spark tasks learned about one topic, taken together; where they cannot be, `second`."""
    if first is None or second is None:
        return second if first is None else first
    old, new = first.metadata or {}, second.metadata or {}
    if old.get(COLUMNS_KEY) != new.get(COLUMNS_KEY):
        return second
    columns, _ = merged(tuple(first), tuple(second))
    if leaves(columns) > MAX_COLUMNS:
        return second
    decoder = profile.merged(old.get(DECODER_KEY), new.get(DECODER_KEY))
    return pa.schema(columns, metadata={**new, **({} if decoder is None else {DECODER_KEY: decoder})})


def _fingerprint(settings: ShapeSettings) -> bytes:
    """The settings that decide columns; what was learned under others is forgotten."""
    return orjson.dumps(
        [
            *(settings.flatten, settings.discard_collections, settings.decimals_to_double, settings.lowercase),
            *(settings.chunks, settings.explode),
        ]
    )
