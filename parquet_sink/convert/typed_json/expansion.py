"""How far JSON values of a known type may grow on their way to columns: `{}` in a list can stand for 2,500 nulls.

A cell is about 8 bytes of a column. A record costs the cells of its own fields, which its schema bounds, and those of
the items of its lists and maps, of which it may have FREE_CELLS and CELLS_A_BYTE more for each of its bytes. Only types
whose items can be that much larger than their text are counted.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from parquet_sink.convert.typed_json.types import Kind, ListKind, MapKind, Slot, StructKind, UnionKind

CELLS_A_BYTE = 32
FREE_CELLS = 2_500
CELL_BYTES = 8
_NAME_CELL = 16
"""Characters of a field's name that count as a cell: where lists become text, each item has all names in it."""

_LEAST_BYTES = 2
"""Of an item: a digit and a comma."""

Count: TypeAlias = Callable[[object], int]


def counter(kind: Kind) -> Count | None:
    """What counts the cells of items in a parsed value; None where they are in proportion to its text anyway.

    It looks at what is there and judges nothing.
    """
    if isinstance(kind, ListKind):
        return _items(_cells(kind.item), counter(kind.item.kind), _elements)
    if isinstance(kind, MapKind):
        below = _sum([found for slot in (kind.key, kind.value) if (found := counter(slot.kind)) is not None])
        return _items(_cells(kind.key) + _cells(kind.value), below, _entries)
    if isinstance(kind, StructKind):
        return _struct([(field.name, found) for field in kind.fields if (found := counter(field.slot.kind))])
    if isinstance(kind, UnionKind):
        return _sum([found for branch in kind.branches if (found := counter(branch.slot.kind)) is not None])
    return None


def cost(value: object) -> int:
    """Cells of a value as `exact` gives it, at the least."""
    if isinstance(value, str | bytes):
        return 1 + len(value) // CELL_BYTES
    if isinstance(value, dict):
        return 1 + sum(map(cost, value.values()))
    return 1 + sum(map(cost, value)) if isinstance(value, list | tuple) else 1


def _cells(slot: Slot) -> int:
    """What one value of a slot may cost, less the items below it."""
    kind = slot.kind
    own = 1
    if isinstance(kind, StructKind | UnionKind):
        for field in kind.fields if isinstance(kind, StructKind) else kind.branches:
            own += _cells(field.slot) + len(field.name) // _NAME_CELL
    return own if slot.default is None else own + cost(slot.default)


def _items(each: int, below: Count | None, inside: Callable[[object], Iterable[object]]) -> Count | None:
    counted = each if each > _LEAST_BYTES * CELLS_A_BYTE else 0
    if below is None:
        return (lambda value: counted * len(value) if isinstance(value, list | dict) else 0) if counted else None

    def count(value: object) -> int:
        own = counted * len(value) if isinstance(value, list | dict) else 0
        return own + sum(map(below, inside(value)))

    return count


def _elements(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


def _entries(value: object) -> Iterable[object]:
    """The values of a map's entries, and its keys, in whatever form it is written."""
    if isinstance(value, dict):
        yield from value.values()
    for entry in value if isinstance(value, list) else ():
        yield from entry.values() if isinstance(entry, dict) else _elements(entry)


def _struct(members: list[tuple[str, Count]]) -> Count | None:
    def count(value: object) -> int:
        return sum(below(value.get(name)) for name, below in members) if isinstance(value, dict) else 0

    return count if members else None


def _sum(counts: list[Count]) -> Count | None:
    return (lambda value: sum(count(value) for count in counts)) if counts else None
