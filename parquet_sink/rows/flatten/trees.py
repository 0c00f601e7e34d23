"""A parsed record to a row: names and values of its columns, nulls left out."""

import re
from functools import lru_cache

from parquet_sink.config.key import ems
from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue, Path, show
from parquet_sink.convert.json.exact import walk
from parquet_sink.convert.json.trees import text_of
from parquet_sink.rows.schema.value_types import MAX_NAME, Row, too_long

SEPARATOR = "_"
_ODD = re.compile(r"[^A-Za-z0-9]")


@lru_cache(maxsize=8192)
def column_name(joined: str) -> str:
    """The name of a flattened column: every character outside A-Z, a-z, 0-9 becomes an underscore."""
    return _ODD.sub("_", joined)


def flatten(tree: Tree, discard_collections: bool) -> Row:
    """One value per leaf: int, float, bool or str; lists and empty objects as JSON text, or dropped.

    Raises InvalidValue for an empty key and for two fields that become one column.
    """
    row: Row = {}
    _flatten(row, tree, "", discard_collections, tree)
    return row


def _flatten(row: Row, below: Tree, prefix: str, discard: bool, tree: Tree) -> None:
    for key, value in below.items():
        if not key:
            raise InvalidValue(_empty_key(tree))
        if value is None:
            continue
        kind = type(value)
        if kind is dict and value:
            _flatten(row, value, prefix + key + SEPARATOR, discard, tree)  # type: ignore[arg-type]
            continue
        is_collection = kind is dict or kind is list
        if is_collection and discard:
            continue
        joined = prefix + key
        if len(joined) > MAX_NAME:  # before it is made, kept, or made for a hundred thousand fields below it
            raise InvalidValue(too_long(column_name(joined[:MAX_NAME])))
        name = column_name(joined)
        if name in row:
            raise InvalidValue(_duplicate(tree, name, discard))
        row[name] = text_of(value) if is_collection else value


def nest(tree: Tree, discard_collections: bool) -> Row:
    """The tree as it is, without nulls and without objects that hold nothing else; lists as JSON text, or dropped.

    Empty objects stay, or are dropped with the lists. Raises InvalidValue for an empty key.
    """
    return _nest(tree, discard_collections, tree)


def _nest(below: Tree, discard: bool, tree: Tree) -> Row:
    row: Row = {}
    for key, value in below.items():
        if not key:
            raise InvalidValue(_empty_key(tree))
        if value is None:
            continue
        if isinstance(value, list):
            if not discard:
                row[key] = text_of(value)
        elif isinstance(value, dict):
            inner = _nest(value, discard, tree)
            if inner or (not value and not discard):
                row[key] = inner
        else:
            row[key] = value
    return row


def _empty_key(tree: Tree) -> str:
    for path, _ in walk(tree):
        if path[-1] == "" and not any(isinstance(step, int) for step in path):
            where = f"the object at {show(path[:-1])}" if path[:-1] else "the record"
            return f"{where} has a field with an empty name"
    raise AssertionError("no empty key")


def _duplicate(tree: Tree, name: str, discard: bool) -> str:
    leaves = (path for path, value in walk(tree) if _is_leaf(path, value, discard))
    joined = ((path, SEPARATOR.join(map(str, path))) for path in leaves)
    paths = [show(path) for path, text in joined if len(text) <= MAX_NAME and column_name(text) == name]
    return one_column(paths[0], paths[1], name)


def one_column(first: str, second: str, name: str) -> str:
    """The message for two fields that flattening makes one column."""
    return (
        f"fields {first} and {second} would both become column {name}; {ems('flattener.enable')}=false keeps them apart"
    )


def _is_leaf(path: Path, value: object, discard: bool) -> bool:
    if value is None or any(isinstance(step, int) for step in path):
        return False
    if isinstance(value, list) or value == {}:
        return not discard
    return not isinstance(value, dict)
