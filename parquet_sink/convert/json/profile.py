"""Learns the fields of a topic's JSON records and their types, with which they are read fast.

It decides what is read fast, never what comes out. A field's type is int, float, bool or str, NoneType while only null
was seen, or a dict of the fields below for an object (empty when it was always `{}`).

Lists become the JSON text that their column holds (`lists`), or null where they are discarded.
"""

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Final, TypeAlias

import orjson
import pyarrow as pa

from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.json import fast
from parquet_sink.convert.json.fast import Lists
from parquet_sink.convert.json.lists import KnownLists

MAX_FIELDS: Final = 5_000
"""Fields of one profile, at all depths: twice as many as a topic has columns."""

MAX_NAME: Final = 1_000

FieldType: TypeAlias = type | dict[str, "FieldType"]
Fields: TypeAlias = dict[str, FieldType]

_ARROW: Final[Mapping[type, pa.DataType]] = {
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    str: pa.string(),
    NoneType: pa.null(),
}
_BY_NAME: Final[Mapping[str, type]] = {one.__name__: one for one in _ARROW}


class JsonProfile:
    """Grows only: a record that it covered once, it covers for ever."""

    def __init__(self, discard_lists: bool = False, ignore_case: bool = False) -> None:
        """discard_lists, ignore_case: see `convert.decoded.Reading`."""
        self.fields: Fields = {}
        self.lists: Lists = {}
        self.size = 0
        """Fields, and places of lists, at all depths."""
        self._discard_lists, self._ignore_case = discard_lists, ignore_case
        self._schema: pa.Schema | None = None
        self._known_lists: KnownLists | None = None
        self._fields_in_c: fast.Fields | None = None
        self._widened: list[tuple[Fields, str]] = []

    @property
    def schema(self) -> pa.Schema:
        """What covered records are read with."""
        if self._schema is None:
            self._schema = pa.schema(_arrow_fields(self.fields))
        return self._schema

    @property
    def known_lists(self) -> KnownLists | None:
        """Where covered records may have lists; None: nowhere."""
        if self._known_lists is None and self.lists:
            self._known_lists = KnownLists.of(self.lists, _texts(self.fields, ()))
        return self._known_lists

    @property
    def fields_in_c(self) -> fast.Fields | None:
        """What covered records are read with in C, where lists stand in them; None where they are not."""
        if self._fields_in_c is None:
            self._fields_in_c = fast.fields_in_c(self.schema, self.lists)
        return self._fields_in_c

    def learn(self, tree: Tree) -> bool:
        """Take in a record's fields; whether it is covered now, as far as types show."""
        self._widened.clear()
        return self._learn(self.fields, tree, ())

    def narrower(self) -> pa.Schema | None:
        """What the records before the last one that `learn` took were read with; None when it widened no type."""
        if not self._widened:
            return None
        for fields, key in self._widened:
            fields[key] = int
        schema = pa.schema(_arrow_fields(self.fields))
        for fields, key in self._widened:
            fields[key] = float
        return schema

    def serialize(self) -> bytes | None:
        """For `restore`; None when nothing is known."""
        if not self.fields:
            return None
        reading = [self._discard_lists, self._ignore_case]
        return orjson.dumps({"reading": reading, "fields": _named(self.fields), "lists": self.lists})

    def restore(self, saved: bytes | None) -> None:
        """Take in what `serialize` gave under the same settings; anything else is ignored."""
        try:
            found = orjson.loads(saved or b"null")
            if found is not None and found["reading"] == [self._discard_lists, self._ignore_case]:
                fields, lists = _typed(found["fields"]), _checked_lists(found["lists"])
                self._take(self.fields, fields, ())
                self._take_lists(lists, ())
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return

    def _learn(self, fields: Fields, tree: Tree, path: tuple[str, ...]) -> bool:
        covered = True
        for key, value in tree.items():
            seen = type(value)
            if (known := fields.get(key)) is seen:
                continue
            if isinstance(value, dict):
                covered &= self._learn_object(fields, key, value, path)
            elif isinstance(value, list):
                covered &= self._note_list((*path, key)) and self._put_list(fields, key)
            elif known is None or value is not None:
                covered &= self._put(fields, key, seen)
        return covered

    def _learn_object(self, fields: Fields, key: str, value: Tree, path: tuple[str, ...]) -> bool:
        below = fields.get(key)
        if not isinstance(below, dict):
            below = {}
            if not self._put(fields, key, below):
                return False
        return self._learn(below, value, (*path, key))

    def _put_list(self, fields: Fields, key: str) -> bool:
        if self._discard_lists:
            return key in fields or self._put(fields, key, NoneType)
        return self._put(fields, key, str)

    def _put(self, fields: Fields, key: str, new: FieldType) -> bool:
        """Whether the field may have this type now, after changing it where that can be."""
        known = fields.get(key)
        if known is new or (known is float and new is int):
            return True
        if known is None:
            if not key or "\0" in key or self.size >= MAX_FIELDS or len(key) > MAX_NAME:
                return False  # PyArrow's reader (26.0) confuses names that end in NUL
        elif known is not NoneType and not (known is int and new is float):
            return False
        if new is not NoneType and self._ignore_case and _has_twin(fields, key):
            return False
        if known is int:
            self._widened.append((fields, key))
        self.size += known is None
        fields[key] = new
        self._schema = self._known_lists = self._fields_in_c = None
        return True

    def _note_list(self, path: tuple[str, ...]) -> bool:
        """Remember that there may be a list at the end of the path; whether there is room to."""
        below = self.lists
        for key in path:
            if key not in below:
                if not key or self.size >= MAX_FIELDS or len(key) > MAX_NAME:
                    return False
                self.size += 1
                below[key] = {}
                self._known_lists = self._fields_in_c = None
            below = below[key]
        return True

    def _take(self, fields: Fields, more: Fields, path: tuple[str, ...]) -> None:
        """Take in the fields of another profile, as far as they do not contradict."""
        for key, known in more.items():
            if not isinstance(known, dict):
                if known is not NoneType or key not in fields:
                    self._put(fields, key, known)
            elif isinstance(fields.get(key), dict) or self._put(fields, key, {}):
                below = fields[key]
                assert isinstance(below, dict)
                self._take(below, known, (*path, key))

    def _take_lists(self, lists: Lists, path: tuple[str, ...]) -> None:
        for key, below in lists.items():
            self._note_list((*path, key))
            self._take_lists(below, (*path, key))


def merged(one: bytes | None, other: bytes | None) -> bytes | None:
    """What two tasks learned of one topic, `other` leading; `other` alone where they were learned differently."""
    if one is None or other is None:
        return one if other is None else other
    try:
        profile = JsonProfile(*orjson.loads(other)["reading"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return other
    profile.restore(other)
    profile.restore(one)
    return profile.serialize()


def _has_twin(fields: Fields, key: str) -> bool:
    """Whether another field, more than null, has the same name in lower case."""
    lower = key.lower()
    return any(name.lower() == lower and name != key and known is not NoneType for name, known in fields.items())


def _texts(fields: Fields, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for key, known in fields.items():
        if isinstance(known, dict):
            yield from _texts(known, (*above, key))
        elif known is str:
            yield (*above, key)


def _arrow_fields(fields: Fields) -> list[pa.Field]:
    return [
        pa.field(key, pa.struct(_arrow_fields(known)) if isinstance(known, dict) else _ARROW[known])
        for key, known in fields.items()
    ]


def _named(fields: Fields) -> dict[str, object]:
    return {key: _named(known) if isinstance(known, dict) else known.__name__ for key, known in fields.items()}


def _typed(saved: Mapping[str, object]) -> Fields:
    """The reverse of `_named`. Raises KeyError or TypeError for what it did not give."""
    found: Fields = {}
    for key, known in saved.items():
        found[key] = _typed(known) if isinstance(known, dict) else _BY_NAME[known]  # type: ignore[index]
    return found


def _checked_lists(saved: Mapping[str, object]) -> Lists:
    """The same lists. Raises TypeError for what is none."""
    found: Lists = {}
    for key, below in saved.items():
        if not isinstance(below, dict):
            raise TypeError
        found[key] = _checked_lists(below)
    return found
