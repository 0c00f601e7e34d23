"""Finds the fields of JSON values that their type does not name, and that readers therefore leave out."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from parquet_sink.convert.invalid import Path
from parquet_sink.convert.typed_json.types import (
    OTHERS,
    Kind,
    ListKind,
    MapKind,
    ScalarKind,
    StructKind,
    TextKind,
    UnionKind,
)

Find: TypeAlias = Callable[[object], Iterable[Path]]
"""The paths of the fields of a parsed value that are left out. Positions in lists and keys of maps are not in them."""


def build_finder(kind: Kind) -> Find | None:
    """Return what finds the fields that readers of a kind leave out; None where they leave out none."""
    if isinstance(kind, StructKind):
        return _struct_finder(kind)
    if isinstance(kind, UnionKind):
        return _union_finder(kind)
    if isinstance(kind, ListKind):
        return _elements_finder(build_finder(kind.item.kind), _items)
    if isinstance(kind, MapKind):
        find_in_keys = _elements_finder(build_finder(kind.key.kind), _keys)
        find_in_values = _elements_finder(build_finder(kind.value.kind), _values)
        return _all_of([find for find in (find_in_keys, find_in_values) if find is not None])
    return None


def _struct_finder(kind: StructKind) -> Find | None:
    names = frozenset(field.name for field in kind.fields)
    keeps_all = any(field.slot.kind == OTHERS for field in kind.fields)
    below = [(field.name, find) for field in kind.fields if (find := build_finder(field.slot.kind)) is not None]

    def find_in_struct(value: object) -> Iterable[Path]:
        if type(value) is not dict:
            return ()
        paths: list[Path] = []
        if not keeps_all and not names.issuperset(value):
            paths = [(name,) for name in value if name not in names]
        for name, find in below:
            paths += [(name, *path) for path in find(value.get(name))]
        return paths

    return find_in_struct if below or not keeps_all else None


def _union_finder(kind: UnionKind) -> Find | None:
    """A field is left out where each branch that takes such a value leaves it out."""
    by_type: dict[type, list[Find | None]] = {dict: [], list: []}
    for branch in kind.fields:
        find = build_finder(branch.slot.kind)
        for json_type, found in by_type.items():
            if _may_take(branch.slot.kind, json_type):
                found.append(find)
    finders = {json_type: found for json_type, found in by_type.items() if found and None not in found}

    def find_in_union(value: object) -> Iterable[Path]:
        left_out = [dict.fromkeys(find(value)) for find in finders.get(type(value), ()) if find is not None]
        return [path for path in left_out[0] if all(path in paths for paths in left_out)] if left_out else ()

    return find_in_union if finders else None


def _may_take(kind: Kind, json_type: type) -> bool:
    if isinstance(kind, UnionKind):
        return any(_may_take(branch.slot.kind, json_type) for branch in kind.fields)
    if isinstance(kind, TextKind):
        return kind.content == "anything" or (kind.content == "list") == (json_type is list)
    is_object = isinstance(kind, StructKind) or (isinstance(kind, MapKind) and kind.form == "object")
    return not isinstance(kind, ScalarKind) and is_object == (json_type is dict)


def _elements_finder(find: Find | None, inside: Callable[[object], Iterable[object]]) -> Find | None:
    return (
        None if find is None else lambda value: dict.fromkeys(path for below in inside(value) for path in find(below))
    )


def _all_of(finders: list[Find]) -> Find | None:
    return (lambda value: [path for find in finders for path in find(value)]) if finders else None


def _items(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


def _keys(value: object) -> Iterator[object]:
    for entry in _items(value):
        yield entry.get("key") if isinstance(entry, dict) else entry[0] if isinstance(entry, list) and entry else None


def _values(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    for entry in _items(value):
        yield (
            entry.get("value") if isinstance(entry, dict) else entry[-1] if isinstance(entry, list) and entry else None
        )
