"""The rows of records without a schema, one after the other in plain Python: no Arrow, no blocks, no fast path.

Tests compare with it what the shaper gives, however records are cut into blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from parquet_sink.rows.settings import ShapeSettings

Json = dict[str, Any]


class CannotShare(Exception):
    """Two types of values for one column."""


@dataclass
class Topic:
    """What the definition remembers: columns with their types, and where the topic started anew."""

    config: ShapeSettings
    columns: dict[str, Any] = field(default_factory=dict)
    rows: list[tuple[int, str]] = field(default_factory=list)
    anew: list[int] = field(default_factory=list)
    error: tuple[int, str] | None = None

    def take(self, offset: int, record: Json) -> bool:
        """One record; whether it has rows, or none without being invalid."""
        if not (elements := self.elements(record)):
            return True
        try:
            rows = [self.row(element) for element in elements]
            own: dict[str, Any] = {}
            for row in rows:
                own = together(own, kinds_of(row))
            done = [fitted(own, row) for row in rows]
        except CannotShare:
            self.error = (offset, "")
            return False
        try:
            columns = together(self.columns, own, one_by_one=True)
            done = [fitted(columns, row) for row in rows]
            anew = False
        except CannotShare:
            columns, anew = own, True
        if not columns:
            self.error = (offset, "")
            return False
        for key in self.config.primary_keys:
            nulls = any(row.get(key) is None for row in done) and not self.config.allow_null_primary_keys
            if key not in columns or nulls:
                self.error = (offset, "")
                return False
        self.columns = columns
        self.rows += [(offset, shown(row)) for row in done]
        self.anew += [offset] if anew else []
        return True

    def elements(self, record: Json) -> list[Json]:
        if not self.config.explode or len(record) != 1:
            return [record]
        (only,) = record.values()
        if only is None:
            return []
        if not isinstance(only, list) or not all(one is None or isinstance(one, dict) for one in only):
            return [record]
        return [one for one in only if one is not None]

    def row(self, element: Json) -> Json:
        if not element:
            raise CannotShare
        if self.config.lowercase:
            element = lower(element)
        return self.flat(element, "") if self.config.flatten else self.nested(element)

    def flat(self, below: Json, prefix: str) -> Json:
        row: Json = {}
        for key, value in below.items():
            if isinstance(value, dict) and value:
                row |= self.flat(value, f"{prefix}{key}_")
            elif isinstance(value, dict | list):
                if not self.config.discard_collections:
                    row[prefix + key] = orjson.dumps(value).decode()
            elif value is not None:
                row[prefix + key] = value
        return row

    def nested(self, below: Json) -> Json:
        row: Json = {}
        for key, value in below.items():
            if isinstance(value, list):
                row[key] = orjson.dumps(value).decode()
            elif isinstance(value, dict):
                row |= {key: inner} if (inner := self.nested(value)) or not value else {}
            elif value is not None:
                row[key] = value
        return row


def lower(value: Any) -> Any:
    """The value with names in lower case."""
    if isinstance(value, list):
        return [lower(below) for below in value]
    return {key.lower(): lower(below) for key, below in value.items()} if isinstance(value, dict) else value


def kinds_of(row: Json) -> Any:
    """The kind of each value: its type's name, a dict for an object, `{}` for an empty one."""
    return {
        name: (kinds_of(value) if value else "{}") if isinstance(value, dict) else type(value).__name__
        for name, value in row.items()
    }


def together(known: Any, own: Any, *, one_by_one: bool = False) -> Any:
    """The types of both. one_by_one: what was only empty before cannot hold an object now."""
    both = dict(known)
    for name, kind in own.items():
        was = both.get(name, kind)
        if isinstance(was, dict) and isinstance(kind, dict):
            both[name] = together(was if name in known else {}, kind, one_by_one=one_by_one)
        elif was == kind or (isinstance(was, dict) and kind == "{}"):
            both[name] = was
        elif was == "{}" and isinstance(kind, dict) and not one_by_one:
            both[name] = kind
        elif {was, kind} == {"int", "float"} if isinstance(was, str) and isinstance(kind, str) else False:
            both[name] = "float"
        else:
            raise CannotShare
    return both


def fitted(value_types: Any, row: Json) -> Json:
    """The row as its columns hold it."""
    done: Json = {}
    for name, value in row.items():
        kind = value_types[name]
        if kind == "float" and isinstance(value, int):
            if int(float(value)) != value:
                raise CannotShare
            done[name] = float(value)
        elif isinstance(kind, dict):
            if value:
                done[name] = fitted(kind, value)
        else:
            done[name] = value
    return done


def defined(config: ShapeSettings, records: Sequence[Json]) -> Topic:
    """The definition."""
    topic = Topic(config)
    for offset, record in enumerate(records):
        if not topic.take(offset, record):
            break
    return topic


@dataclass
class Shaped:
    """What shaping gave."""

    rows: list[tuple[int, str]] = field(default_factory=list)
    anew: list[int] = field(default_factory=list)
    error: tuple[int, str] | None = None
    known: list[str] = field(default_factory=list)


def shown(row: Json) -> str:
    """A row to compare: 1 is not 1.0, nulls and the order of columns do not count, an empty map is `{}`."""
    return repr(ordered(row))


def ordered(value: Any) -> Any:
    """The value without nulls and with names in order, at every depth."""
    if isinstance(value, dict):
        return {name: ordered(below) for name, below in sorted(value.items()) if below is not None}
    return {} if value == [] else value
