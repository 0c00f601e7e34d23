"""The text of a query to what is run: validated, and written as DuckDB's SQL for each kind of records."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from parquet_sink.addons.sql.bounds import rules_of, with_bounds
from parquet_sink.addons.sql.engine import Engine, QueryFailed, engine
from parquet_sink.addons.sql.parts import Expression, Input, Item, Node, ValidQuery
from parquet_sink.addons.sql.validation import QueryError, validated

_QUERIES: Final = 64
_TRULY_WRONG: Final = ("No function matches", "UNNEST not supported", "Nested UNNEST", "does not exist")
"""What DuckDB says of a query that fits no record, whatever its fields hold."""


class WrongQuery(ValueError):
    """A query that is refused, with the place in it, as one sentence."""


@dataclass(frozen=True)
class Computed:
    """An expression. text, untyped: as SQL, for records with a schema and without one. shown: for messages.

    unnested: what `unnest` takes in it, in both forms. rules: bounds of its functions.
    """

    name: str
    text: str
    untyped: str
    shown: str
    unnested: tuple[tuple[str, str], ...] = ()
    rules: tuple[str, ...] = ()

    def lists(self, *, untyped: bool) -> list[str]:
        """What `unnest` takes in it."""
        return [both[untyped] for both in self.unnested]


@dataclass(frozen=True)
class Query:
    """What is done for a record. text: as it was written; the rest as in `ValidQuery`."""

    text: str
    items: tuple[Item, ...]
    computed: tuple[Computed, ...]
    condition: Computed | None
    inputs: tuple[Input, ...]
    extracted: frozenset[str]

    @property
    def unnests(self) -> bool:
        """Whether a record may have several rows, or none."""
        return any(one.unnested for one in self.computed)


@lru_cache(_QUERIES)
def query(text: str) -> Query:
    """Raises WrongQuery, and NoEngine where DuckDB is not installed."""
    work = engine()
    with work.lock:
        try:
            made = _made(text, _validated(work, text), work)
            _check_binds(work, made)
        except QueryError as error:
            raise WrongQuery(_placed(text, error)) from None
    return made


def _validated(work: Engine, text: str) -> ValidQuery:
    parsed = work.parse(text)
    if parsed["error"]:
        if parsed.get("error_type") == "parser":
            raise QueryError(f"it is no SQL: {parsed['error_message']}", int(parsed.get("position") or 0))
        raise QueryError("write one SELECT statement; nothing else is possible")
    try:
        return validated(parsed["statements"], work.kind_of)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise QueryError(f"DuckDB reads it in a way that is not known here ({type(error).__name__}: {error})") from None


def _made(text: str, found: ValidQuery, work: Engine) -> Query:
    computed = tuple(_computed(one, work) for one in found.expressions)
    where = found.condition
    condition = None if where is None else _conditional(where, work)
    return Query(text, found.items, computed, condition, found.inputs, found.extracted)


def _computed(one: Expression, work: Engine) -> Computed:
    unnested = tuple(_both(tree, work) for tree in one.unnested)
    text, untyped = _both(one.tree, work)
    rules = tuple(dict.fromkeys(rules_of(one.tree)))
    return Computed(one.name, f"({text})", f"({untyped})", work.text(one.tree), unnested, rules)


def _both(tree: Node, work: Engine) -> tuple[str, str]:
    """Return the expression as SQL, with its bounds, for records with a schema and without one."""
    bounded = with_bounds(tree, work)
    return work.text(bounded), work.text(_with_doubles(bounded))


def _conditional(where: Expression, work: Engine) -> Computed:
    texts = _in_turn(where.tree, work)
    return replace(_computed(where, work), text=texts["text"], untyped=texts["untyped"])


def _in_turn(tree: Node, work: Engine) -> dict[str, str]:
    """A condition in both forms, whose parts are asked from left to right until one decides.

    DuckDB does so for AND and OR where it looks for records, and asks all parts where it looks for those that fail.
    """
    if tree["class"] != "CONJUNCTION":
        text, untyped = _both(tree, work)
        return {"text": f"({text})", "untyped": f"({untyped})"}
    *before, last = [_in_turn(one, work) for one in tree["children"]]
    for one in reversed(before):
        both = ("THEN {1} ELSE FALSE" if tree["type"] == "CONJUNCTION_AND" else "THEN TRUE ELSE {1}").format
        last = {form: f"CASE WHEN {one[form]} {both(None, last[form])} END" for form in last}
    return last


def _with_doubles(node: Any) -> Any:
    """The tree with doubles for numbers that have a point: what a number without a schema is."""
    if isinstance(node, list):
        return [_with_doubles(one) for one in node]
    if not isinstance(node, dict):
        return node
    if node.get("class") == "TYPE":
        return node
    literal = node.get("literal")
    if isinstance(literal, dict) and literal.get("kind") == "NUMERIC" and "e" not in literal["text"].lower():
        return {**node, "literal": {**literal, "text": f"{literal['text']}e0"}}
    return {part: _with_doubles(below) for part, below in node.items()}


def _check_binds(work: Engine, made: Query) -> None:
    """Raise QueryError for what fits no record at all: try it on columns that hold nothing."""
    schema = pa.schema([pa.field(one.label, pa.null()) for one in made.inputs] or [pa.field("nothing", pa.null())])
    for one in (*made.computed, *([] if made.condition is None else [made.condition])):
        try:
            work.types(schema, [one.text], "")
        except QueryFailed as error:
            said = first_line(error.text)
            if any(wrong in said for wrong in _TRULY_WRONG):
                raise QueryError(f"{said} (in {shortened(one.shown)})") from None


def first_line(text: str) -> str:
    """What DuckDB says, without the kind of error, the place and hints."""
    line = text.split("\n", 1)[0].strip().removesuffix(".")
    kind, _, rest = line.partition(" Error: ")
    return rest if rest and kind.replace(" ", "").isalpha() else line


def shortened(text: str, most: int = 80) -> str:
    """A text for a message."""
    printable = " ".join(text.split())
    return printable if len(printable) <= most else f"{printable[:most]}..."


def _placed(text: str, error: QueryError) -> str:
    if error.at is None:
        return f"{error.reason}."
    before = text.encode()[: error.at].decode(errors="ignore")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return f"Line {line}, column {column}: {error.reason}."


def inputs_of(made: Query, source: str) -> Sequence[Input]:
    """The inputs that come from one source."""
    return [one for one in made.inputs if one.source == source]


__all__ = ["Computed", "Node", "Query", "WrongQuery", "first_line", "inputs_of", "query", "shortened"]
