"""The outline of a topic's records as they are in JSON: which fields were seen where, before flattening.

The fast path reads with it. It decides what is read fast, never what comes out: a record that it does not cover takes
the exact path. An outline maps each field to `LEAF` (numbers, text, booleans), `NULL` (never anything but null yet) or
a dict (an object; empty when nothing below is known). A list is a `LEAF`, because its column holds its JSON text (see
`convert.json.lists`); where lists are discarded, it is nothing.
"""

from enum import IntEnum
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.json.lists import Lists
from parquet_sink.shape.flatten.trees import SEPARATOR, column_name
from parquet_sink.shape.schema.value_types import MAX_COLUMNS, MAX_NAME, EmptyMap, ValueType, ValueTypes, to_arrow

MAX_FIELDS = 2 * MAX_COLUMNS


class Mark(IntEnum):
    """What is known of a field that is no object."""

    NULL = 0
    LEAF = 1


NULL, LEAF = Mark.NULL, Mark.LEAF
Node: TypeAlias = Mark | dict[str, "Node"]
Fields: TypeAlias = dict[str, Node]
Names: TypeAlias = tuple[str, ...]


class Form(NamedTuple):
    """The settings under which fields and columns were learned; under others they mean nothing.

    flat: fields are flattened. lower: columns have names in lower case. discard: lists and empty objects are left out.
    """

    flat: bool
    lower: bool = False
    discard: bool = False


class Outline:
    """The fields, and for flattened columns which path each is read from: one column, one path, the first seen.

    Where names become lower case, fields stand here as they are in JSON, and paths of columns are in lower case. Of
    fields that become one, only the first that was more than null is more than NULL here.
    """

    def __init__(self, form: Form) -> None:
        self.fields: Fields = {}
        self.lists: Lists = {}
        self._form = form
        self._flat = form.flat
        self._size = 0
        self._claims: dict[str, Names] = {}
        self._sources: dict[Names, str] = {}

    @classmethod
    def restore(cls, form: Form, fields: Fields, value_types: ValueTypes, lists: Lists) -> "Outline":
        """An outline from saved fields, less what does not match the value_types."""
        outline = cls(form)
        outline.lists = lists
        outline._restore(outline.fields, fields, (), value_types)
        return outline

    @property
    def size(self) -> int:
        """How many fields there are, at all depths."""
        return self._size

    def learn(self, tree: Tree) -> bool:
        """Take in the fields of a valid record; whether anything was new."""
        return self._learn(self.fields, tree, ())

    def owns(self, path: Names) -> bool:
        """Whether this path (as columns are named) is the one that its flattened column is read from."""
        return self._claims.get(self.column(path)) == path

    def column(self, path: Names) -> str:
        """The flattened column of a path (as columns are named)."""
        return column_name(SEPARATOR.join(path))

    def to_schema(self, value_types: ValueTypes) -> pa.Schema:
        """What the fast path reads: int64, float64, bool, string, null, and structs of these."""
        return pa.schema(self._to_fields(self.fields, (), value_types))

    def _learn(self, fields: Fields, tree: Tree, path: Names) -> bool:
        news = False
        for key, value in tree.items():
            node = fields.get(key)
            is_list = type(value) is list
            if is_list:
                news |= self._note_list((*path, key))
            if node is LEAF or (is_list and self._form.discard):
                continue
            if isinstance(value, dict):
                news |= self._learn_object(fields, value, (*path, key))
            elif node is None or (node is NULL and value is not None):
                news |= self._add(fields, (*path, key), NULL if value is None else LEAF)
        return news

    def _note_list(self, path: Names) -> bool:
        """Remember that there may be a list at the end of the path; whether that was new."""
        below, news = self.lists, False
        for key in path:
            if key not in below:
                if self._size >= MAX_FIELDS or len(key) > MAX_NAME:
                    return news
                self._size, below[key], news = self._size + 1, {}, True
            below = below[key]
        return news

    def _learn_object(self, fields: Fields, value: Tree, path: Names) -> bool:
        node = fields.get(path[-1])
        news = not isinstance(node, dict) and self._add(fields, path, {})
        node = fields.get(path[-1])
        if not isinstance(node, dict):
            return False
        if value:
            return self._learn(node, value, path) or news
        return news if node else self._claim(path) or news

    def _add(self, fields: Fields, path: Names, node: Node) -> bool:
        """Put a node at the end of the path, unless a limit or another path's claim forbids it."""
        key, named = path[-1], self._named(path)
        if key not in fields and (self._size >= MAX_FIELDS or len(key) > MAX_NAME):
            return False
        if node is LEAF and self._flat and self._claims.get(self.column(named), named) != named:
            return False
        if node is not NULL and self._form.lower and self._sources.setdefault(named, key) != key:
            return False
        if node is LEAF:
            self._claim(path)
        self._size += key not in fields
        fields[key] = node
        return True

    def _claim(self, path: Names) -> bool:
        """Make the path the source of its column; whether that was new."""
        named = self._named(path)
        if not self._flat or self.column(named) in self._claims:
            return False
        self._claims[self.column(named)] = named
        return True

    def _named(self, path: Names) -> Names:
        """A path in JSON, as columns are named."""
        return tuple(map(str.lower, path)) if self._form.lower else path

    def _restore(self, fields: Fields, saved: Fields, path: Names, value_types: ValueTypes) -> None:
        for key, node in saved.items():
            here = (*path, key)
            if isinstance(node, dict):
                mine: Fields = {}
                if self._add(fields, here, mine):
                    self._restore(mine, node, here, value_types)
                if not node and self._value_type(here, value_types) is str:
                    self._claim(here)
            elif node == NULL or isinstance(self._value_type(here, value_types), type):
                self._add(fields, here, Mark(node))

    def _value_type(self, path: Names, value_types: ValueTypes) -> ValueType | None:
        named = self._named(path)
        if self._flat:
            return value_types.get(self.column(named))
        kind: ValueType | None = value_types
        for key in named:
            kind = kind.get(key) if isinstance(kind, dict) else None
        return kind

    def _to_fields(self, fields: Fields, path: Names, value_types: ValueTypes) -> list[pa.Field]:
        found = []
        for key, node in fields.items():
            here = (*path, key)
            if isinstance(node, dict):
                if self._value_type(here, value_types) is not EmptyMap:
                    found.append(pa.field(key, pa.struct(self._to_fields(node, here, value_types))))
            elif node is NULL:
                found.append(pa.field(key, pa.null()))
            else:
                found.append(pa.field(key, _leaf(self._value_type(here, value_types))))
        return found


def _leaf(kind: ValueType | None) -> pa.DataType:
    assert kind is not None
    assert kind is not EmptyMap
    return to_arrow(kind)
