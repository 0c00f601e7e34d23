"""Bounds of functions whose time or memory grows with the product of two arguments: a record beyond them fails.

DuckDB neither counts what such a function takes nor can be interrupted in it. Measured with DuckDB 2.0 on two texts of
20,000 characters: damerau_levenshtein 11 s and 3 GB, levenshtein 1.6 s; replace and regexp_replace give 400 MB.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from parquet_sink.addons.sql.engine import Engine
from parquet_sink.addons.sql.parts import Node

_CELLS: Final = 250_000
_RESULT: Final = 64 << 20
_ELEMENTS: Final = 10_000
_CONTENT: Final = "strlen(arg0::VARCHAR) * strlen({}::VARCHAR) > {}"


@dataclass(frozen=True)
class Bound:
    """condition: SQL over arg0, arg1, ... that is true beyond the bound. rule: for messages, behind the function."""

    condition: str
    rule: str


_TEXTS: Final = Bound(_CONTENT.format("arg1", _CELLS), f"the product of both lengths is at most {_CELLS:,}")
_REPLACED: Final = Bound(
    _CONTENT.format("arg2", _RESULT), f"the product of the lengths of text and replacement is at most {_RESULT:,}"
)
_LISTS: Final = Bound(f"len(arg0) > {_ELEMENTS}", f"the list has at most {_ELEMENTS:,} elements")
_MAPS: Final = Bound(
    "cardinality(arg0) * cardinality(arg1) > 25000000", "the product of both sizes is at most 25,000,000"
)
_OBJECTS: Final = Bound(_CONTENT.format("arg1", 10**10), "the product of both lengths is at most 10,000,000,000")
_BOUNDS: Final[Mapping[str, Bound]] = {
    "levenshtein": _TEXTS,
    "damerau_levenshtein": _TEXTS,
    "replace": _REPLACED,
    "regexp_replace": _REPLACED,
    "map_concat": _MAPS,
    "json_merge_patch": _OBJECTS,
    "list_reduce": _LISTS,
    "array_reduce": _LISTS,
    "reduce": _LISTS,
}
_EACH: Final = frozenset(
    ["array_apply", "array_filter", "array_transform", "filter", "list_apply", "list_filter", "list_transform"]
)
"""Functions that work on each element of a list: bounded where their lambda looks at more than the element."""


def bound_of(node: Node) -> Bound | None:
    """Return the bound of a function in a query's tree; None if it needs none."""
    if node.get("class") != "FUNCTION":
        return None
    name = node["function_name"].lower()
    arguments = [argument["expression"] for argument in node["arguments"]]
    bound = _LISTS if name in _EACH and any(map(_looks_around, arguments[1:])) else _BOUNDS.get(name)
    if bound is _REPLACED and (len(arguments) < 3 or arguments[2]["class"] == "CONSTANT"):
        return None
    return None if bound is None or ("arg1" in bound.condition and len(arguments) < 2) else bound


def _looks_around(part: Any) -> bool:
    """Return True if a lambda has a column, which each element sees as a whole, or another lambda."""
    if part.get("class") != "LAMBDA":
        return False
    given = part["lhs"]["arguments"] if part["lhs"]["class"] == "FUNCTION" else [{"expression": part["lhs"]}]
    names = {argument["expression"]["column_names"][0].lower() for argument in given}
    return _has_others(part["expr"], names)


def _has_others(part: Any, names: set[str]) -> bool:
    if isinstance(part, list):
        return any(_has_others(below, names) for below in part)
    if not isinstance(part, dict):
        return False
    if part.get("class") == "LAMBDA":
        return True
    if part.get("class") == "COLUMN_REF" and part["column_names"][0].lower() not in names:
        return True
    return any(_has_others(below, names) for below in part.values())


def with_bounds(part: Any, engine: Engine) -> Any:
    """Return the tree with a check before each function that needs one."""
    if isinstance(part, list):
        return [with_bounds(below, engine) for below in part]
    if not isinstance(part, dict):
        return part
    made = {name: with_bounds(below, engine) for name, below in part.items()}
    if (bound := bound_of(part)) is None:
        return made
    given = {f"arg{at}": argument["expression"] for at, argument in enumerate(made["arguments"])}
    says = f"CASE WHEN {bound.condition} THEN 'beyond its bound' ELSE '1' END"
    check = f"CASE WHEN CAST({says} AS INTEGER) = 1 THEN checked END"  # TRY takes no `error`, which is volatile
    tree = engine.parse(f"SELECT {check}")["statements"][0]["node"]["select_list"][0]
    return _filled(tree, {**given, "checked": made})


def _filled(part: Any, given: Mapping[str, Node]) -> Any:
    if isinstance(part, list):
        return [_filled(below, given) for below in part]
    if not isinstance(part, dict):
        return part
    if part.get("class") == "COLUMN_REF":
        return given[part["column_names"][0]]
    return {name: _filled(below, given) for name, below in part.items()}


def rules_of(part: Any) -> list[str]:
    """Return what the bounds of all functions in a tree say, for messages."""
    if isinstance(part, list):
        return [rule for below in part for rule in rules_of(below)]
    if not isinstance(part, dict):
        return []
    bound = bound_of(part)
    own = [] if bound is None else [f"{part['function_name'].lower()}: {bound.rule}"]
    return own + rules_of(list(part.values()))
