"""Whether a file's columns fit a table, and what has to change: pure, in DuckDB's names of types.

A table grows: columns are added, integers and floats become wider when nothing can be lost. Anything else is
incompatible, as at the platform this target stands in for. Column names are compared as DuckDB does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase, ascii_uppercase
from typing import Final

UNTYPED: Final = '"NULL"'
_WIDER: Final[Mapping[str, frozenset[str]]] = {
    "TINYINT": frozenset({"SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"}),
    "SMALLINT": frozenset({"INTEGER", "BIGINT", "FLOAT", "DOUBLE"}),
    "INTEGER": frozenset({"BIGINT", "DOUBLE"}),
    "UTINYINT": frozenset({"USMALLINT", "UINTEGER", "UBIGINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"}),
    "USMALLINT": frozenset({"UINTEGER", "UBIGINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"}),
    "UINTEGER": frozenset({"UBIGINT", "BIGINT", "DOUBLE"}),
    "FLOAT": frozenset({"DOUBLE"}),
}


_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


def fold(name: str) -> str:
    """The form in which DuckDB compares names: without the letter case of A to Z."""
    return name.translate(_LOWER)


class Incompatible(Exception):
    """The file's rows cannot go into the table; the text says why."""


@dataclass(frozen=True)
class Plan:
    """What to do to the table before the file's rows go in. Names as the file or the table writes them."""

    create: bool = False
    add: Mapping[str, str] = field(default_factory=dict)
    widen: Mapping[str, str] = field(default_factory=dict)


def plan(table: Mapping[str, str] | None, file: Mapping[str, str], keys: Sequence[str]) -> Plan:
    """Fit a file's columns (name to type, untyped ones left out) to a table's; None: there is no table yet.

    Raises Incompatible naming every column that does not fit.
    """
    if not file:
        raise Incompatible("the file has no column with a type")
    _check_keys(file, keys)
    if table is None:
        return Plan(create=True)
    known = {fold(name): (name, type_) for name, type_ in table.items()}
    add, widen, problems = {}, {}, []
    for name, type_ in file.items():
        own_name, own_type = known.get(fold(name), (name, None))
        if own_type is None:
            add[name] = type_
        elif type_ in _WIDER.get(own_type, ()):
            widen[own_name] = type_
        elif type_ != own_type and own_type not in _WIDER.get(type_, ()):
            problems.append(f"column {name} is {own_type} in the table and {type_} in the file")
    if problems:
        raise Incompatible("; ".join(problems))
    return Plan(add=add, widen=widen)


def check_names(names: Sequence[str]) -> None:
    """Raises Incompatible for names that a table cannot hold side by side."""
    seen: dict[str, str] = {}
    for name in names:
        if not name or "\0" in name:
            raise Incompatible("a column's name is empty or holds a null character")
        if fold(name) in seen:
            raise Incompatible(f"columns {seen[fold(name)]} and {name} differ in nothing but letter case")
        seen[fold(name)] = name


def _check_keys(file: Mapping[str, str], keys: Sequence[str]) -> None:
    present = {fold(name) for name in file}
    missing = [key for key in keys if fold(key) not in present]
    if missing:
        raise Incompatible(f"primary key {', '.join(missing)} is not a column of the file")
