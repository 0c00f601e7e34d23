"""A topic's payload columns as its decoded records change them, record by record.

For records with a schema they are Arrow fields, for those without types; each is worked out from the other when it is
asked for. A change costs as much as what changes, not as all columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from parquet_sink.rows.schema.evolution import Columns, joined, leaves, nullable, unified, widens
from parquet_sink.rows.schema.value_types import (
    MAX_COLUMNS,
    Change,
    EmptyMap,
    Incompatible,
    Row,
    ValueType,
    ValueTypes,
    count,
    fits,
    of_arrow,
    shared,
    to_arrow,
)

CUTS = (Change.WIDENED, Change.INCOMPATIBLE)
"""Changes with which a new run begins."""

_Undo = list[tuple[ValueTypes, str, ValueType | None]]


@dataclass(frozen=True)
class Step:
    """What a schema asks of the columns. fields: those that are new or changed; all of them when it starts anew."""

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

    def judge(self, own: ValueTypes, rows: Sequence[Row]) -> Change:
        """What rows of these types ask for; they are made ready for their columns, unless it is to start anew.

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
        """Make the change that `judge` told; rows that fit as they are ask for none, and own may be empty then."""
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
