"""Finds the fields of JSON values that their type does not name, and that readers therefore leave out."""

from collections.abc import Callable, Container, Iterable, Iterator
from typing import TypeAlias

from parquet_sink.convert.invalid import Path
from parquet_sink.convert.typed_json.types import (
    OTHERS,
    DecimalKind,
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


def build_finder(kind: Kind, *, strict: bool = False) -> Find | None:
    """Return what finds the fields that readers of a kind leave out; None where they leave out none.

    strict: what does not fit its kind is left out, too. Elsewhere such values are refused.
    """
    build = build_strict_finder if strict else build_finder
    if isinstance(kind, StructKind):
        return _struct_finder(kind, build)
    if isinstance(kind, UnionKind):
        return _union_finder(kind)
    if isinstance(kind, ListKind):
        return _elements_finder(build(kind.item.kind), _items)
    if isinstance(kind, MapKind):
        find_in_keys = _elements_finder(build(kind.key.kind), _keys)
        find_in_values = _elements_finder(build(kind.value.kind), _values)
        return _all_of([find for find in (find_in_keys, find_in_values) if find is not None])
    return None


def _struct_finder(kind: StructKind, build: Callable[[Kind], Find | None]) -> Find | None:
    names = frozenset(field.name for field in kind.fields)
    keeps_all = any(field.slot.kind == OTHERS for field in kind.fields)
    below = [(field.name, find) for field in kind.fields if (find := build(field.slot.kind)) is not None]

    def find_in_struct(value: object) -> Iterable[Path]:
        if type(value) is not dict:
            return ()
        paths: list[Path] = []
        if not keeps_all and not names.issuperset(value):
            paths = [(name,) for name in value if name not in names]
        for name, find in below:
            if isinstance(inner := value.get(name), dict | list) and (found := find(inner)):
                paths += [(name, *path) for path in found]
        return paths

    return find_in_struct if below or not keeps_all else None


def _union_finder(kind: UnionKind) -> Find | None:
    """A field is left out where each branch leaves it out, or cannot have it."""
    containers = [
        branch.slot.kind for branch in kind.fields if not isinstance(branch.slot.kind, ScalarKind | DecimalKind)
    ]
    finders = [build_strict_finder(branch) for branch in containers]

    def find_in_union(value: object) -> Iterable[Path]:
        if not isinstance(value, dict | list):
            return ()
        left_out: list[dict[Path, None]] = []
        for find in finders:
            paths = {} if find is None else dict.fromkeys(find(value))
            if not paths:
                return ()
            left_out.append(paths)
        return [path for paths in left_out for path in paths if all(_covers(others, path) for others in left_out)]

    return find_in_union if containers and None not in finders else None


def build_strict_finder(kind: Kind) -> Find | None:
    """Return what finds, too, an object or a list that a kind cannot have; its path is that of the whole."""
    if kind == TextKind():
        return None
    if isinstance(kind, ScalarKind | DecimalKind):
        return lambda value: ((),) if isinstance(value, dict | list) else ()
    find = build_finder(kind, strict=True)

    def find_strictly(value: object) -> Iterable[Path]:
        if isinstance(value, dict | list) and not _may_take(kind, type(value)):
            return ((),)
        return () if find is None else find(value)

    return find_strictly


def _covers(paths: Container[Path], path: Path) -> bool:
    """Return True if a path, or what holds it, is among some."""
    return any(path[:length] in paths for length in range(len(path) + 1))


def _may_take(kind: Kind, json_type: type) -> bool:
    if isinstance(kind, UnionKind):
        return any(_may_take(branch.slot.kind, json_type) for branch in kind.fields)
    if isinstance(kind, TextKind):
        return kind.content == "anything" or (kind.content == "list") == (json_type is list)
    is_object = isinstance(kind, StructKind) or (isinstance(kind, MapKind) and kind.form == "object")
    return is_object == (json_type is dict)


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
