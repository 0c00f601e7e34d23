"""Which table a topic's files go to: `connect.ems.target.table.map`, patterns of topics and their tables.

A topic goes by the first pattern that is all of its name, else to the connector's one table.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from parquet_sink.config.checks import printable_text
from parquet_sink.config.key import ems
from parquet_sink.config.report import quoted
from parquet_sink.transform.java_regex import NotKept, java_pattern, java_replacement

MAP_KEY: Final = ems("target.table.map")
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True)
class TableRule:
    """pattern: of whole names of topics. table: its name, with `$1` and so on for groups; both as Java has them."""

    pattern: str
    table: str

    def __str__(self) -> str:
        return f"{self.pattern}:{self.table}"

    def of(self, topic: str) -> str | None:
        """The table of a topic; None when the rule is not for it. Raises NotKept."""
        pattern, replaced = _compiled(self.pattern, self.table)
        found = pattern.fullmatch(topic)
        return None if found is None else replaced(found).strip()


@dataclass(frozen=True)
class TableMap:
    """The rules in their order."""

    rules: tuple[TableRule, ...] = ()

    def table(self, topic: str) -> str | None:
        """The table of a topic; None where no rule is for it."""
        return next((table for rule in self.rules if (table := rule.of(topic)) is not None), None)

    def idle(self, topics: Sequence[str]) -> Iterator[tuple[TableRule, str]]:
        """The rules that decide for none of these topics, each with the reason and the cure."""
        left = list(topics)
        for rule in self.rules:
            mine = [topic for topic in topics if rule.of(topic) is not None]
            if not mine:
                yield rule, "it is all of no topic's name; correct or remove it"
            elif not any(topic in left for topic in mine):
                yield rule, f"a rule before it takes {mine[0]}; put it further to the front, or remove it"
            left = [topic for topic in left if topic not in mine]

    def why_unusable(self, topic: str) -> str | None:
        """Why a topic has no table that can be named, with the cure; None when it has."""
        table = self.table(topic)
        if table is None or (table and printable_text(table) is None):
            return None
        rule = next(one for one in self.rules if one.of(topic) is not None)
        what = "holds characters that cannot be printed" if table else "is not a name"
        return (
            f"Topic {topic} would go to table {quoted(table)} by {rule}, which {what}; correct the rule, or put one "
            "for this topic before it."
        )


def parse(text: str) -> TableMap:
    """`pattern:table` several times, separated by commas. Raises ValueError with what is wrong and the cure.

    Commas within brackets belong to a pattern; the last colon stands before the table.
    """
    rules = []
    for item in _items(text):
        pattern, colon, table = (part.strip() for part in item.rpartition(":"))
        if not (colon and pattern and table):
            raise ValueError(f"{quoted(item)} is not a pattern with its table; write topics-(.*):TABLE_$1.")
        rules.append(TableRule(pattern, table))
        try:
            rules[-1].of("")
        except NotKept as error:
            raise ValueError(f"{quoted(item)} {error}") from None
    if not rules:
        raise ValueError("It names no table; write topics-(.*):TABLE_$1, or remove the key.")
    return TableMap(tuple(rules))


@lru_cache(maxsize=256)
def _compiled(pattern: str, table: str) -> tuple[re.Pattern[str], Callable[[re.Match[str]], str]]:
    compiled = java_pattern(pattern)
    return compiled, java_replacement(table, compiled)


def _items(text: str) -> Iterator[str]:
    depth, begin, at = 0, 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] in _OPENING:
            depth += 1
        elif text[at] in _CLOSING:
            depth -= 1
        elif text[at] == "," and depth <= 0:
            yield text[begin:at].strip()
            begin = at + 1
        at += 1
    if text[begin:].strip():
        yield text[begin:].strip()
