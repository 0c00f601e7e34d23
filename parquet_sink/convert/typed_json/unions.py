"""Chooses the branch of a union for a JSON value, as Confluent's JsonSchemaData does, and lets no field get lost.

Of several structs the one with most fields in common takes a value. Where it lacks a field that another branch names,
that branch takes the value too; where none can, the value is refused.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal

from parquet_sink.convert.invalid import Path, Unfit, show
from parquet_sink.convert.typed_json.types import (
    MILLIS_PER_DAY,
    DecimalKind,
    Field,
    Kind,
    ListKind,
    MapKind,
    ScalarKind,
    Slot,
    StructKind,
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


def named(value: object) -> str:
    """What a value is, for a message."""
    return NAMES.get(type(value), "a number")


def union_reader(kind: UnionKind, readers: list[Callable[[object], object]]) -> Callable[[object], object]:
    """Return the reader of a union. readers: one for each of its branches."""
    branches = kind.fields
    may_overlap = sum(isinstance(branch.slot.kind, StructKind | UnionKind) for branch in branches) > 1

    def read_union(value: object) -> object:
        index = _branch_of(branches, value)
        row = {branches[index].name: readers[index](value)}
        if may_overlap and type(value) is dict and isinstance(branches[index].slot.kind, StructKind | UnionKind):
            _add_branches(row, index, value)
        return row

    def _add_branches(row: dict[str, object], index: int, value: dict[str, object]) -> None:
        """Let further branches take the fields that the chosen one lacks. Raises Unfit where none can."""
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
    """The first branch of a plain type that fits, else the struct with most fields in common, as JsonSchemaData."""
    best, most = -1, 0
    for index, branch in enumerate(branches):
        if _is_plain_instance(branch.slot.kind, value):
            return index
        common = _in_common(branch.slot.kind, value)
        if common > most:
            best, most = index, common
    if best < 0:
        raise Unfit(f"is {named(value)} that fits none of the types it may have")
    return best


def _is_plain_instance(kind: Kind, value: object) -> bool:
    """Whether a value is of the JSON type that a kind other than a struct is written as."""
    if isinstance(kind, ScalarKind):
        return type(value) in _INSTANCES[kind.name]
    if isinstance(kind, DecimalKind):
        return type(value) in (str, int, float, Decimal)
    if isinstance(kind, ListKind):
        return type(value) is list
    return isinstance(kind, MapKind) and type(value) is (dict if kind.form == "object" else list)


def _in_common(kind: Kind, value: object) -> int:
    """How many fields of a struct an object has, at every depth."""
    if not isinstance(kind, StructKind | UnionKind) or type(value) is not dict:
        return 0
    return sum(1 + _in_common(field.slot.kind, value[field.name]) for field in kind.fields if field.name in value)


def _paths(kind: Kind, value: object, path: Path) -> Iterator[Path]:
    """Yield the path of a value and of all values below it that a kind keeps; nothing for a value of another type."""
    if isinstance(kind, UnionKind):
        for field in kind.fields:
            yield from _paths(field.slot.kind, value, path)
    elif isinstance(kind, StructKind) or not isinstance(value, dict | list) or _is_plain_instance(kind, value):
        if not isinstance(kind, StructKind):
            yield path
        for step, slot, below in _below(kind, value):
            yield from _paths(slot.kind, below, (*path, step))


def _below(kind: Kind, value: object) -> list[tuple[str | int, Slot, object]]:
    """Return what is directly below a value, with its slot in the kind, as far as the kind has one."""
    if isinstance(kind, StructKind) and isinstance(value, dict):
        return [(field.name, field.slot, value[field.name]) for field in kind.fields if field.name in value]
    if isinstance(kind, ListKind) and isinstance(value, list):
        return [(index, kind.item, below) for index, below in enumerate(value)]
    if isinstance(kind, MapKind) and isinstance(value, dict):
        return [(key, kind.value, below) for key, below in value.items()]
    return []
