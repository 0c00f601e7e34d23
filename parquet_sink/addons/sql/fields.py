"""Fields by their names in a query: exactly so written, or else the only one that differs in case alone."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.sql.parts import ComputedColumn, Names, Star
from parquet_sink.convert.invalid import InvalidValue, show

Source = str | ComputedColumn
"""Where a column comes from: a field, or an expression."""
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number"}


def matching(names: Iterable[str], wanted: str, path: Names) -> str | None:
    """The name among those that are there; None when none is. path: for messages. Raises InvalidValue."""
    lower = wanted.lower()
    found = []
    for name in names:
        if name == wanted:
            return name
        if name.lower() == lower:
            found.append(name)
    if len(found) > 1:
        both = " and ".join(show((name,)) for name in found[:2])
        raise InvalidValue(f"field {show(path)} of the query may be {both}; write it exactly so in double quotes")
    return found[0] if found else None


def of_tree(tree: object, path: Sequence[str]) -> object:
    """The value at a path of a record without a schema, None when it is not there. Raises InvalidValue."""
    here = tree
    for depth, name in enumerate(path):
        if here is None:
            return None
        if type(here) is not dict:
            where = f"field {show(tuple(path[:depth]))}" if depth else "the value"
            kind = _KINDS.get(type(here), "no object")
            raise InvalidValue(f"{where} is {kind}, not an object, and the query asks for {show(tuple(path))}")
        found = name if name in here else matching(here, name, tuple(path))
        here = None if found is None else here[found]
    return here


def of_type(arrow: pa.DataType, path: Sequence[str]) -> tuple[int, ...]:
    """The positions of the fields that lead along a path through records with a schema. Raises InvalidValue."""
    steps = []
    for depth, name in enumerate(path):
        where = f"field {show(tuple(path[:depth]))}" if depth else "the value"
        if not pa.types.is_struct(arrow):
            raise InvalidValue(f"{where} is not a record, and the query asks for {show(tuple(path))}")
        names = [arrow.field(index).name for index in range(arrow.num_fields)]
        found = matching(names, name, tuple(path))
        if found is None:
            there = ", ".join(show((one,)) for one in names[:10]) + (", ..." if len(names) > 10 else "")
            raise InvalidValue(f"the query asks for {show(tuple(path))}, and {where} has no such field, but {there}")
        steps.append(names.index(found))
        arrow = arrow.field(steps[-1]).type
    return tuple(steps)


def taken(rows: pa.Array, steps: Sequence[int]) -> pa.Array:
    """What is at a path, null where a record on the way is."""
    return pc.struct_field(rows, list(steps)) if steps else rows


def expanded(star: Star, names: Sequence[str]) -> Sequence[tuple[str, Source]]:
    """The columns, in order, of a record with fields of these names; what it lacks and is replaced comes last.

    A name that EXCLUDE has leaves out whatever differs from it in case alone. Raises InvalidValue.
    """
    left = [name for name in names if name.lower() not in star.excluded]
    sources: dict[str, Source] = {name: name for name in left}
    new: list[tuple[str, Source]] = []
    for written, result in star.replaced.items():
        found = matching(left, written, (written,))
        if found is None:
            new.append((written, result))
        else:
            sources[found] = result
    renamed = {matching(left, written, (written,)): name for written, name in star.renamed.items()}
    return [(renamed.get(name, name), source) for name, source in sources.items()] + new


def is_doubtful(star: Star, names: Sequence[str]) -> bool:
    """Whether one of these records may take a field by a name that others of them have for another field."""
    lower = [name.lower() for name in names]
    return any(lower.count(one.lower()) > 1 for one in (*star.replaced, *star.renamed))
