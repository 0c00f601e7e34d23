"""Learns the fields of a topic's JSON records and their types, with which they are read fast.

It decides what is read fast, never what comes out. A field's type is int, float, bool or str, NoneType while only null
was seen, or a dict of the fields below for an object (empty when it was always `{}`).

Lists become the JSON text that their column holds, or are left out where they are discarded. Only records that have a
`[`, escaped or not, are parsed for that and written again. A record of 1 KB and 40 fields, one of them a list, costs 13
µs to its columns so, and 24 the exact way.
"""

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Final, TypeAlias

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json.exact import is_plain

Lists: TypeAlias = dict[str, "Lists"]
"""Fields that may be lists, or objects with such fields below."""

_BRACKET = r"\[|\\u005[bB]"


def with_lists_as_text(
    values: pa.BinaryArray,
    lists: Lists,
    discard: bool,
    prepare: Callable[[Tree], Tree] | None,
    *,
    lower: bool = False,
) -> pa.BinaryArray | None:
    """The values, those with lists written again; None when one of them is for the exact path.

    values: no nulls. lists: where lists are looked for; elsewhere they stay. discard: lists are left out. prepare:
    gives the tree that lists are taken from, with the same fields outside of them; lower: their names in lower case.
    """
    mask = pc.match_substring_regex(values, _BRACKET)
    count = mask.true_count
    if not count:
        return values
    written = []
    naming = str.lower if lower and prepare is not None else str
    try:
        for value in values.filter(mask).to_pylist():
            tree = orjson.loads(value)
            prepared = tree if prepare is None or type(tree) is not dict else prepare(tree)
            if type(tree) is not dict or not _replace(tree, prepared, lists, discard, 1, naming):
                return None
            written.append(orjson.dumps(tree))
    except (InvalidValue, orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        return None  # orjson writes 254 levels, and reads 1,024
    replacements = pa.array(written, pa.binary())
    return replacements if count == len(values) else pc.replace_with_mask(values, mask, replacements)


def _replace(tree: Tree, prepared: Tree, lists: Lists, discard: bool, depth: int, naming: Callable[[str], str]) -> bool:
    """Lists to text, in place; False where the exact path must look. naming: of fields in `prepared`."""
    for key, below in lists.items():
        value = tree.get(key)
        kind = type(value)
        if kind is list:
            if not is_plain(value, depth + 1):  # type: ignore[arg-type]
                return False
            if discard:
                del tree[key]
            else:
                tree[key] = orjson.dumps(prepared[naming(key)]).decode()
        elif kind is dict and below:
            inner = prepared[naming(key)]
            if not _replace(value, inner, below, discard, depth + 1, naming):  # type: ignore[arg-type]
                return False
    return True


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
        self._widened: list[tuple[Fields, str]] = []

    @property
    def schema(self) -> pa.Schema:
        """What covered records are read with."""
        if self._schema is None:
            self._schema = pa.schema(_arrow_fields(self.fields))
        return self._schema

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
                covered &= self._note_list((*path, key)) and (self._discard_lists or self._put(fields, key, str))
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
        self._schema = None
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
