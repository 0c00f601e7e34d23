"""Kinds of values, which of them arrays and maps may mix, and what is done to their elements then."""

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from parquet_sink.convert.calendars import DAY_MS

Kind: TypeAlias = str | tuple["Kind | None", ...]
"""`int8` ... `timestamp`; `(elements,)` for an array, `(keys, values)` for a map, None where they have none."""

_NUMBERS: Final = ("int8", "int16", "int32", "int64", "float32", "float64")
_STORED: Final = {"date": "int32", "time": "int32", "timestamp": "int64"}
"""Of what type Connect stores them, which decides what they mix with."""


class Unfit(ValueError):
    """No array or map, though it begins like one: Connect's DataException."""


class NotHeld(ValueError):
    """A value that Connect has, and Arrow cannot hold."""


@dataclass(frozen=True)
class JavaDate:
    """kind: of what was read, `date`, `time` or `timestamp`; ms: of the epoch."""

    kind: str
    ms: int


@dataclass(frozen=True)
class Found:
    """A value with its kind."""

    kind: Kind
    value: object


class Entries(list[tuple[object, object]]):
    """Of a map."""


def common(found: list[Found | None]) -> Kind | None:
    """The kind that all can have; None when there is none, or when all are null."""
    kind: Kind | None = None
    for one in found:
        if one is not None:
            kind = one.kind if kind is None else _merged(kind, one.kind)
            if kind is None:
                return None
    return kind


def _merged(previous: Kind, new: Kind) -> Kind | None:
    one, other = _stored(previous), _stored(new)
    if one == other:
        return new
    if one in _NUMBERS and other in _NUMBERS:
        return new if _NUMBERS.index(one) < _NUMBERS.index(other) else previous
    return None


def _stored(kind: Kind) -> str:
    if isinstance(kind, tuple):
        return "array" if len(kind) == 1 else "map"
    return _STORED.get(kind, kind)


def converted(kind: Kind, value: object) -> object:
    """A value as one of that kind. Raises Unfit as Connect's `convertTo` does."""
    if value is None or (isinstance(value, JavaDate) and kind in _NUMBERS):
        raise Unfit
    if kind in _STORED and not isinstance(value, JavaDate):
        assert isinstance(value, int)
        if kind == "time" and not 0 <= value <= DAY_MS:
            raise Unfit
        return JavaDate(str(kind), value * (DAY_MS if kind == "date" else 1))
    if kind == "float32":
        return float(np.float32(float(value)))  # type: ignore[arg-type]
    return float(value) if kind == "float64" else value  # type: ignore[arg-type]


def mapped(keys: Kind | None, values: Kind | None, entries: list[tuple[object, object]]) -> Found:
    """A map of these entries; of keys that become equal the last one counts. Raises Unfit."""
    if keys is None:
        return Found((None, None), Entries(entries))
    found: dict[str, tuple[object, object]] = {}
    for given, item in entries:
        key = converted(keys, given)
        found[repr(key)] = (key, item if values is None else converted(values, item))
    return Found((keys, values), Entries(found.values()))
