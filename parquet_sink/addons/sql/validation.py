"""A query's syntax tree to what is done for a record: an allow-list of what may stand in it.

A query is a projection and a condition over `records`, one row by itself. Everything else that SQL knows is refused
with the reason. The tree is that of DuckDB's `json_serialize_sql`; a node, or a part of one, that is not known here is
refused, too.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from parquet_sink.addons.sql.functions import CLOCK, FUNCTIONS, OPERATORS, TYPES, UNNEST, too_long
from parquet_sink.addons.sql.parts import (
    METADATA,
    ComputedColumn,
    Expression,
    Input,
    Item,
    KeptColumn,
    Names,
    Node,
    Star,
    ValidQuery,
)
from parquet_sink.convert.invalid import show

TABLE: Final = "records"

_EVERYWHERE: Final = frozenset({"class", "type", "alias", "query_location", "query_location_length", "qualified_name"})
_PARTS: Final[Mapping[str, frozenset[str]]] = {
    "COLUMN_REF": frozenset({"column_names"}),
    "CONSTANT": frozenset({"literal"}),
    "FUNCTION": frozenset({"function_name", "order_bys", "is_operator", "arguments"}),
    "OPERATOR": frozenset({"children"}),
    "CONJUNCTION": frozenset({"children"}),
    "COMPARISON": frozenset({"left", "right"}),
    "BETWEEN": frozenset({"input", "lower", "upper"}),
    "CASE": frozenset({"case_checks", "else_expr"}),
    "CAST": frozenset({"child", "type_expr", "try_cast"}),
    "LAMBDA": frozenset({"lhs", "expr", "syntax_type"}),
    "TYPE": frozenset({"type_name", "children"}),
    "STAR": frozenset({"relation_name", "exclude_list", "replace_list", "rename_list"}),
}
"""By class of a node, what may be there."""
_SELECT: Final = frozenset({"type", "select_list", "from_table", "where_clause", "aggregate_handling"})
_FROM: Final = frozenset({"type", "alias", "query_location", "query_location_length", "table_name", "qualified_name"})
_NOWHERE: Final = 2**63

_ALONE: Final = "each record is taken by itself"
_MODIFIERS: Final = {
    "ORDER_MODIFIER": f"ORDER BY: {_ALONE}, in the order of offsets",
    "LIMIT_MODIFIER": f"LIMIT and OFFSET: {_ALONE}; choose records by WHERE",
    "LIMIT_PERCENT_MODIFIER": f"LIMIT and OFFSET: {_ALONE}; choose records by WHERE",
    "DISTINCT_MODIFIER": f"DISTINCT: {_ALONE}, without the others",
}
_TABLES: Final = {
    "JOIN": f"a join: {_ALONE}, and there are no other tables",
    "TABLE_FUNCTION": "a table function: a query reads records alone, no files and no other tables",
    "SUBQUERY": "a subquery: say FROM records",
    "EMPTY": "a query without a table: say FROM records",
    "EXPRESSION_LIST": "VALUES: say FROM records",
    "PIVOT": f"PIVOT: {_ALONE}",
    "SHOW_REF": "SHOW, DESCRIBE and SUMMARIZE: write SELECT",
}
_CLASSES: Final = {
    "WINDOW": f"a window function: {_ALONE}, without those around it",
    "SUBQUERY": "a subquery: an expression has the fields of its record alone (IN and list_contains take lists)",
    "PARAMETER": "a parameter: write the value",
    "POSITIONAL_REFERENCE": "a column by its number: write its name",
    "DEFAULT": "DEFAULT: write the value",
    "COLLATE": "COLLATE: use lower or upper",
    "STAR": "* within an expression, or COLUMNS: name the columns",
}
_KINDS: Final = {
    "aggregate": f"is an aggregate: {_ALONE}; for the elements of a list there are list_sum, list_max and the like",
    "window": f"is a window function: {_ALONE}, without those around it",
    "table": "is a table function: a query reads records alone, no files and no other tables",
    "unstable": "does not give the same each time, and a range of records that is repeated must give the same files; "
    "_timestamp and _offset are there",
    "unknown": "is not known to DuckDB",
}
_STRUCTURED: Final = frozenset({"from_json", "from_json_strict", "json_transform", "json_transform_strict"})
"""Functions whose second argument names types."""
_ZONED_TIME: Final = re.compile(r"\btimetz\b|\btime\b[^a-z]*with\b", re.IGNORECASE)
"""A type that `timezone` moves by what a zone's offset is today."""
_OTHER: Final = "is not among the functions that depend on nothing but a record's fields"


class QueryError(ValueError):
    """A query that is refused: why, and the place in it as an offset in bytes, None for the whole."""

    def __init__(self, reason: str, at: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.at = reason, at


def validated(statements: Sequence[Node], kind_of: Callable[[str], str]) -> ValidQuery:
    """What a query is. kind_of: what a function is to DuckDB, a key of `_KINDS`. Raises QueryError."""
    if len(statements) != 1:
        raise QueryError("write one SELECT statement" if not statements else "write one statement, not several")
    if _there(statements[0].get("named_param_map")):
        raise QueryError("it has a parameter: write the value")
    return _Validator(kind_of).select(statements[0]["node"])


def _there(part: object) -> bool:
    return part not in (None, "", False, [], {}, {"map": []}, {"type": "ORDER_MODIFIER", "orders": []})


def _place(node: Mapping[str, Any]) -> int | None:
    at = node.get("query_location")
    return at if isinstance(at, int) and at < _NOWHERE else None


def _refused(what: str, node: Mapping[str, Any]) -> QueryError:
    return QueryError(_why(what), _place(node))


class _Validator:
    def __init__(self, kind_of: Callable[[str], str]) -> None:
        self._kind_of = kind_of
        self._tables: frozenset[str] = frozenset()
        self._expressions: list[Expression] = []
        self._inputs: dict[tuple[str, Names], Input] = {}
        self._extracted: set[str] = set()
        self._unnested: list[Node] = []
        self._bound: frozenset[str] = frozenset()

    def select(self, node: Node) -> ValidQuery:
        self._bound = _all_parameters(node)
        if node["type"] != "SELECT_NODE":
            sets = node["type"] == "SET_OPERATION_NODE"
            raise QueryError(f"UNION, EXCEPT and INTERSECT are not possible: {_ALONE}" if sets else "write SELECT")
        for modifier in node.get("modifiers", []):
            raise QueryError(_why(_MODIFIERS.get(modifier["type"], modifier["type"])), _first(modifier))
        self._clauses(node)
        self._table(node["from_table"])
        items = [self._item(one) for one in node["select_list"]]
        where, condition = node.get("where_clause"), None
        if where is not None:
            condition = self._expression("WHERE", where)
            if condition.unnested:
                raise _refused("unnest in WHERE: it makes rows, so it stands in SELECT", where)
        _check_names(items)
        return ValidQuery(
            tuple(items),
            tuple(self._expressions),
            condition,
            tuple(self._inputs.values()),
            frozenset(self._extracted),
        )

    def _clauses(self, node: Node) -> None:
        reasons = {
            "cte_map": "WITH is not possible: a query reads records alone, no files and no other tables",
            "group_expressions": f"GROUP BY is not possible: {_ALONE}",
            "group_sets": f"GROUP BY is not possible: {_ALONE}",
            "having": f"HAVING is not possible: {_ALONE}",
            "qualify": f"QUALIFY is not possible: {_ALONE}",
            "sample": "USING SAMPLE is not possible: a range of records that is repeated must give the same files",
        }
        for part, reason in reasons.items():
            if _there(node.get(part)):
                raise QueryError(reason, _first(node[part]))
        if node.get("aggregate_handling") != "STANDARD_HANDLING":
            raise QueryError(reasons["group_sets"])
        _check_parts(node, _SELECT | {"modifiers"} | reasons.keys())

    def _table(self, table: Node) -> None:
        if table["type"] != "BASE_TABLE":
            raise _refused(_TABLES.get(table["type"], "this in FROM: say FROM records"), table)
        name = table["table_name"]
        if name.lower() != TABLE or _there(table.get("schema_name")) or _there(table.get("catalog_name")):
            raise QueryError(f"there is no table {show((name,))}: say FROM records", _place(table))
        if _there(table.get("sample")):
            raise QueryError("TABLESAMPLE is not possible: a repeated range must give the same files", _place(table))
        _check_parts(table, _FROM)
        self._tables = frozenset({(table.get("alias") or name).lower()})

    def _item(self, node: Node) -> Item:
        if node["class"] == "STAR":
            return self._star(node)
        source, names = self._path(node)
        if names is None:
            name = node.get("alias")
            if not name:
                raise QueryError("an expression needs a name: put AS and the name behind it", _place(node))
            return self._worked(name, node)
        name = node.get("alias") or (names[-1] if names else source)
        return self._worked(name, node) if source else KeptColumn(name, names)

    def _worked(self, name: str, node: Node) -> ComputedColumn:
        self._expressions.append(self._expression(name, node))
        return ComputedColumn(name, len(self._expressions) - 1)

    def _star(self, node: Node) -> Star:
        if _there(node.get("columns")) or _there(node.get("expr")):
            raise _refused(_CLASSES["STAR"], node)
        _check_parts(node, _PARTS["STAR"] | _EVERYWHERE)
        table = node.get("relation_name")
        if table and table.lower() not in self._tables:
            raise QueryError(f"there is no table {show((table,))}: say FROM records", _place(node))
        replaced = {one["key"]: self._worked(one["key"], one["value"]) for one in node.get("replace_list", [])}
        if any(self._expressions[one.index].unnested for one in replaced.values()):
            raise QueryError("unnest is not possible in REPLACE; put it behind the star under a name", _place(node))
        if any(_there(one["key"].get("table")) for one in node.get("rename_list", [])):
            raise QueryError("RENAME of a field of an object is not possible", _place(node))
        renamed = {one["key"]["column"]: one["value"] for one in node.get("rename_list", [])}
        return Star(frozenset(map(str.lower, node.get("exclude_list", []))), replaced, renamed)

    def _path(self, node: Node) -> tuple[str, Names | None]:
        """Where a column reference leads: a metadata column or "", and names; None for any other expression."""
        if node["class"] == "COLUMN_REF":
            names = tuple(node["column_names"])
            if len(names) == 1 and names[0].lower() in CLOCK:
                why = f"{_KINDS['unstable']}; a field of that name is {TABLE}.{names[0].lower()}"
                raise QueryError(f"{names[0].lower()} {why}", _place(node))
            if len(names) > 1 and names[0].lower() in self._tables:
                names = names[1:]
        elif node["type"] == "STRUCT_EXTRACT" and node["children"][1].get("literal", {}).get("kind") == "STRING":
            source, found = self._path(node["children"][0])
            last = node["children"][1]["literal"]["text"]
            return source, None if found is None else (*found, last)
        else:
            return "", None
        return (names[0].lower(), names[1:]) if names[0].lower() in METADATA else ("", names)

    def _expression(self, name: str, node: Node) -> Expression:
        self._unnested = []
        tree = self._read(node, frozenset())
        tree["alias"] = ""
        return Expression(name, tree, tuple(self._unnested), _place(node))

    def _read(self, node: Node, bound: frozenset[str]) -> Node:
        """The node with inputs for columns. bound: names that lambdas around it give. Raises QueryError."""
        kind = node["class"]
        if kind not in _PARTS or kind in ("STAR", "TYPE"):
            raise _refused(_CLASSES.get(kind, f"{node['type']} in a query"), node)
        if kind == "FUNCTION":
            self._function(node)
        _check_parts(node, _PARTS[kind] | _EVERYWHERE)
        own = node["class"] == "COLUMN_REF" and node["column_names"][0].lower() in bound
        if own:
            self._extracted.update(node["column_names"][1:])
            return dict(node)
        source, names = self._path(node) if not self._is_bound(node, bound) else ("", None)
        if names is not None:
            return self._input(source, names, node)
        if kind == "CAST":
            _check_type(node["type_expr"])
        if kind == "LAMBDA":
            if node.get("syntax_type") != "LAMBDA_KEYWORD":
                raise _refused("->: write lambda x: ..., or for JSON json_extract", node)
            bound |= _parameters(node["lhs"])
            return {**node, "expr": self._read(node["expr"], bound)}
        if kind == "OPERATOR":
            self._operator(node)
        made = {part: self._below(part, value, bound) for part, value in node.items()}
        if made.get("function_name", "").lower() == UNNEST:
            self._unnest(made, bound)
        return made

    def _unnest(self, node: Node, bound: frozenset[str]) -> None:
        if bound:
            raise QueryError("unnest is not possible within a lambda: it makes rows", _place(node))
        self._unnested.append(node["arguments"][0]["expression"])

    def _is_bound(self, node: Node, bound: frozenset[str]) -> bool:
        """Whether a field is taken of what a lambda gives."""
        while node["type"] == "STRUCT_EXTRACT":
            node = node["children"][0]
        return node["class"] == "COLUMN_REF" and node["column_names"][0].lower() in bound

    def _below(self, part: str, value: Any, bound: frozenset[str]) -> Any:
        if part == "arguments":
            return [{**one, "expression": self._read(one["expression"], bound)} for one in value]
        if part == "case_checks":
            return [{key: self._read(one[key], bound) for key in ("when_expr", "then_expr")} for one in value]
        if part == "children":
            return [self._read(one, bound) for one in value]
        if part in ("left", "right", "input", "lower", "upper", "child", "else_expr"):
            return self._read(value, bound)
        return value

    def _input(self, source: str, names: Names, node: Node) -> Node:
        known = self._inputs.get((source, names))
        if known is None:
            label = show((source, *names) if source else names)
            taken = self._bound.union(one.label.lower() for one in self._inputs.values())
            while label.lower() in taken or not label.strip():
                label += "'"
            known = self._inputs[source, names] = Input(label, source, names)
        names_of = {"column_names": [known.label], "alias": node.get("alias", "")}
        kept = ("query_location", "query_location_length")
        made = {"class": "COLUMN_REF", "type": "COLUMN_REF", **names_of}
        return made | {part: node[part] for part in kept if part in node}

    def _operator(self, node: Node) -> None:
        if node["type"] not in OPERATORS:
            raise QueryError(f"{node['type']} is not possible here", _place(node))
        if node["type"] in ("ARRAY_EXTRACT", "STRUCT_EXTRACT"):
            literal = node["children"][1].get("literal", {})
            if literal.get("kind") == "STRING":
                self._extracted.add(literal["text"])

    def _function(self, node: Node) -> None:
        name = node["function_name"].lower()
        if _there(node.get("schema")) or _there(node.get("catalog")):
            raise QueryError(f"write {name}(...) with its argument in brackets, and without a schema", _place(node))
        for part in ("filter", "distinct", "order_bys", "export_state"):
            if _there(node.get(part)):
                raise QueryError(f"function {show((name,))} {_KINDS['aggregate']}", _place(node))
        if name not in FUNCTIONS:
            raise QueryError(f"function {show((name,))} {_KINDS.get(self._kind_of(name), _OTHER)}", _place(node))
        literals = [one["expression"].get("literal", {}) for one in node["arguments"]]
        reason = _zoned_time(name, literals) or too_long(name, literals)
        if reason:
            raise QueryError(reason, _place(node))
        if name == UNNEST and (len(node["arguments"]) != 1 or node["arguments"][0].get("name")):
            raise QueryError("unnest takes a list alone here, no options", _place(node))
        if name in ("struct_extract", "list_extract", "array_extract", "element_at"):
            for one in node["arguments"][1:]:
                literal = one["expression"].get("literal", {})
                if literal.get("kind") == "STRING":
                    self._extracted.add(literal["text"])


def _zoned_time(function: str, literals: Sequence[Mapping[str, Any]]) -> str | None:
    """Why a function that makes values of named types is refused, None where it is not."""
    if function in _STRUCTURED and any(_ZONED_TIME.search(str(one.get("text", ""))) for one in literals[1:]):
        return f"{function} with a time that has a time zone {_KINDS['unstable']}"
    return None


def _why(reason: str) -> str:
    subject, _, why = reason.partition(": ")
    verb = "are" if " and " in subject else "is"
    return f"{subject} {verb} not possible{f': {why}' if why else ' here'}"


def _first(part: Any) -> int | None:
    """The first place that is known below."""
    if isinstance(part, dict):
        at = _place(part)
        return at if at is not None else _first(list(part.values()))
    if isinstance(part, list):
        return next((at for at in map(_first, part) if at is not None), None)
    return None


def _check_parts(node: Node, known: frozenset[str] | set[str]) -> None:
    """Raise QueryError for what is there and not known here."""
    for part, value in node.items():
        if part not in known and _there(value):
            raise QueryError(f"{part.replace('_', ' ')} is not possible here", _place(node) or _first(value))


def _check_type(node: Node) -> None:
    if node["class"] == "CONSTANT":
        return
    if node["class"] != "TYPE" or node["type_name"].lower() not in TYPES:
        name = str(node.get("type_name", node["type"]))
        raise QueryError(f"type {show((name.lower(),))} is not among the types that records can have", _place(node))
    _check_parts(node, _PARTS["TYPE"] | _EVERYWHERE)
    for child in node.get("children", []):
        _check_type(child)


def _parameters(node: Node) -> frozenset[str]:
    """The names that a lambda gives to its arguments."""
    columns = [one["expression"] for one in node["arguments"]] if node["class"] == "FUNCTION" else [node]
    if any(one["class"] != "COLUMN_REF" or len(one["column_names"]) != 1 for one in columns):
        raise QueryError("a lambda's arguments are names", _place(node))
    return frozenset(one["column_names"][0].lower() for one in columns)


def _all_parameters(part: Any) -> frozenset[str]:
    """The names that lambdas give anywhere below."""
    if isinstance(part, list):
        return frozenset().union(*map(_all_parameters, part))
    if not isinstance(part, dict):
        return frozenset()
    own = _parameters(part["lhs"]) if part.get("class") == "LAMBDA" else frozenset()
    return own.union(*map(_all_parameters, part.values()))


def _check_names(items: Sequence[Item]) -> None:
    names: set[str] = set()
    for item in items:
        if isinstance(item, Star):
            continue
        if item.name in names:
            raise QueryError(f"two columns are called {show((item.name,))}; give one of them another name by AS")
        names.add(item.name)
    if sum(isinstance(item, Star) for item in items) > 1:
        raise QueryError("there is more than one *; write one")
