"""Chooses the branch of a union for a JSON value, as Confluent's JsonSchemaData does, and lets no field get lost.

Of several structs the one with most fields in common takes a value, of several lists or maps the one that keeps most
of it. Where that lacks what another branch keeps, the other takes the value too; where none can, the value is refused.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal

from parquet_sink.convert.invalid import Path, Unfit, show
from parquet_sink.convert.typed_json.left_out import build_strict_finder
from parquet_sink.convert.typed_json.types import (
    MILLIS_PER_DAY,
    OTHERS,
    DecimalKind,
    Field,
    Kind,
    ListKind,
    MapKind,
    ScalarKind,
    StructKind,
    TextKind,
    UnionKind,
)

RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "date": (-(2**31), 2**31 - 1),
    "time": (0, MILLIS_PER_DAY - 1),
    "timestamp": (-(2**63), 2**63 - 1),
}
NAMES = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
_INSTANCES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(RANGES, (int,)),
    "float32": (int, float, Decimal),
    "float64": (int, float, Decimal),
    "boolean": (bool,),
    "string": (str,),
    "bytes": (str,),
    "null": (),
}
TEXTS: dict[str, type] = {"object": dict, "others": dict, "list": list}
"""By content of JSON text, the type that it is of; other text is of any type."""


def named(value: object) -> str:
    """Return the name of the JSON type of a value, for a message."""
    return NAMES.get(type(value), "a number")


def union_reader(kind: UnionKind, readers: list[Callable[[object], object]]) -> Callable[[object], object]:
    """Return the reader of a union. readers: one for each of its branches."""
    branches = kind.fields
    may_overlap = sum(not isinstance(branch.slot.kind, ScalarKind | DecimalKind) for branch in branches) > 1
    finders = [build_strict_finder(branch.slot.kind) if may_overlap else None for branch in branches]

    def read_union(value: object) -> object:
        index = _branch_of(branches, value)
        row = {branches[index].name: readers[index](value)}
        find = finders[index]
        if find is not None and isinstance(value, dict | list) and any(True for _ in find(value)):
            _add_branches(row, index, value)
        return row

    def _add_branches(row: dict[str, object], index: int, value: object) -> None:
        """Let further branches take what the chosen one lacks. Raises Unfit where none can."""
        paths = [set(_paths(branch.slot.kind, value, ())) for branch in branches]
        lacking = set().union(*paths) - paths[index]
        while lacking:
            paths[index] = set()
            index = max(range(len(branches)), key=lambda other: len(paths[other] & lacking))
            if not paths[index] & lacking:
                raise Unfit(f"has the field {show(min(lacking, key=str))}, which the branch that fits does not have")
            try:
                row[branches[index].name] = readers[index](value)
            except Unfit:
                continue
            lacking -= paths[index]

    return read_union


def _branch_of(branches: tuple[Field, ...], value: object) -> int:
    """Return the first plain branch that fits, else the struct with most fields in common, as JsonSchemaData does."""
    plain = [index for index, branch in enumerate(branches) if _is_plain_instance(branch.slot.kind, value)]
    if plain:
        return plain[0] if len(plain) == 1 else max(plain, key=lambda index: _count(branches[index].slot.kind, value))
    common = [_in_common(branch.slot.kind, value) for branch in branches]
    if any(common):
        return common.index(max(common))
    best = next((index for index, branch in enumerate(branches) if _takes_any(branch.slot.kind, value)), None)
    if best is None:
        raise Unfit(f"is {named(value)} that fits none of the types it may have")
    return best


def _count(kind: Kind, value: object) -> int:
    return sum(1 for _ in _paths(kind, value, ())) if isinstance(value, dict | list) else 0


def _takes_any(kind: Kind, value: object) -> bool:
    """Return True if a kind takes a value as JSON text, or is a struct for an object without fields that it names."""
    if isinstance(kind, TextKind):
        return type(value) is TEXTS.get(kind.content, type(value))
    is_open = isinstance(kind, StructKind) and any(field.slot.kind == OTHERS for field in kind.fields)
    return isinstance(kind, StructKind) and (value == {} or (is_open and type(value) is dict))


def _is_plain_instance(kind: Kind, value: object) -> bool:
    """Return True if a value is of the JSON type that a kind other than a struct is written as."""
    if isinstance(kind, ScalarKind):
        return type(value) in _INSTANCES[kind.name]
    if isinstance(kind, DecimalKind):
        return type(value) in (str, int, float, Decimal)
    if isinstance(kind, ListKind):
        return type(value) is list
    return isinstance(kind, MapKind) and type(value) is (dict if kind.form == "object" else list)


def _in_common(kind: Kind, value: object) -> int:
    """Count the fields of a struct that an object has, at every depth."""
    if not isinstance(kind, StructKind | UnionKind) or type(value) is not dict:
        return 0
    return sum(
        1 + _in_common(field.slot.kind, value[field.name])
        for field in kind.fields
        if field.name in value and field.slot.kind != OTHERS
    )


def _paths(kind: Kind, value: object, path: Path) -> Iterator[Path]:
    """Yield the path of a value and of all values below it that a kind keeps; nothing for a value of another type."""
    if isinstance(kind, UnionKind):
        for field in kind.fields:
            yield from _paths(field.slot.kind, value, path)
    elif isinstance(kind, TextKind):
        yield from _all_paths(value, path) if _takes_any(kind, value) else ()
    elif isinstance(kind, StructKind) and isinstance(value, dict):
        yield path
        for name, slot_kind, below in members(kind, value):
            yield from _paths(slot_kind, below, (*path, name)) if slot_kind is not None else ()
    elif isinstance(kind, MapKind) and isinstance(value, list):
        yield from _all_paths(value, path) if kind.form != "object" else ()
    elif not isinstance(kind, StructKind) and (not isinstance(value, dict | list) or _is_plain_instance(kind, value)):
        yield path
        item = kind.item if isinstance(kind, ListKind) else kind.value if isinstance(kind, MapKind) else None
        if item is not None:
            for step, below in steps(value):
                yield from _paths(item.kind, below, (*path, step))


def members(kind: StructKind, value: object) -> Iterator[tuple[str, Kind | None, object]]:
    """Yield the members of an object, each with the kind that reads it; None for one that is left out."""
    if isinstance(value, dict):
        kinds = {field.name: field.slot.kind for field in kind.fields if field.slot.kind != OTHERS}
        others: Kind | None = TextKind() if len(kinds) < len(kind.fields) else None
        for name, below in value.items():
            yield name, kinds.get(name, others), below


def steps(value: object) -> Iterator[tuple[str | int, object]]:
    """Yield what is directly below a JSON value, with its name or position."""
    if isinstance(value, dict | list):
        yield from value.items() if isinstance(value, dict) else enumerate(value)


def _all_paths(value: object, path: Path) -> Iterator[Path]:
    """Yield the paths of all values in a JSON value, and its own."""
    yield path
    for step, below in steps(value):
        yield from _all_paths(below, (*path, step))
