"""The parts of a validated query: items of its SELECT, expressions, and the columns that these look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Node = dict[str, Any]
Names = tuple[str, ...]

METADATA: Final = ("_topic", "_partition", "_offset", "_timestamp", "_key")
KEY: Final = "_key"


@dataclass(frozen=True)
class Input:
    """A field or metadata column that expressions look at. label: its column for DuckDB, and in messages.

    source: one of METADATA, or "" for the record's value; names: the path from there.
    """

    label: str
    source: str
    names: Names


@dataclass(frozen=True)
class Expression:
    """What DuckDB computes. tree: with inputs for columns; unnested: of which one record may have several, or none."""

    name: str
    tree: Node
    unnested: tuple[Node, ...] = ()
    at: int | None = None


@dataclass(frozen=True)
class KeptColumn:
    """A field as it is, under a name."""

    name: str
    names: Names


@dataclass(frozen=True)
class ComputedColumn:
    """What an expression gives, under its name. index: among the query's expressions."""

    name: str
    index: int


@dataclass(frozen=True)
class Star:
    """All fields as they are, in their order, but for some. excluded: names in lower case; the others as written."""

    excluded: frozenset[str] = frozenset()
    replaced: Mapping[str, ComputedColumn] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)


Item = KeptColumn | ComputedColumn | Star


@dataclass(frozen=True)
class ValidQuery:
    """A query that may run. extracted: names by which it takes fields of objects that it has as a whole."""

    items: tuple[Item, ...]
    expressions: tuple[Expression, ...]
    condition: Expression | None
    inputs: tuple[Input, ...]
    extracted: frozenset[str]
