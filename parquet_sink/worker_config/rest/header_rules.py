"""The rules of `response.http.headers.config`: which headers each answer of the REST API gets, in Jetty's words."""

import csv
import re
from dataclasses import dataclass
from typing import Final, Literal

from parquet_sink.config.report import quoted

Action = Literal["set", "add", "setDate", "addDate"]

_ACTIONS: Final[dict[str, Action]] = {"set": "set", "add": "add", "setdate": "setDate", "adddate": "addDate"}
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS: Final = frozenset({"content-length", "transfer-encoding", "connection", "date", "content-type"})


@dataclass(frozen=True)
class HeaderRule:
    """One rule. value: for dates the milliseconds from the time of the answer."""

    action: Action
    name: str
    value: str

    @property
    def is_date(self) -> bool:
        return self.action in ("setDate", "addDate")

    @property
    def replaces(self) -> bool:
        return self.action in ("set", "setDate")


def parse(text: str) -> tuple[HeaderRule, ...]:
    """The rules: comma-separated, in double quotes where one has a comma. Raises ValueError with a reason."""
    rules = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(_rule(rule.strip()) for rule in rules if rule.strip())


def _rule(text: str) -> HeaderRule:
    action, _, header = text.partition(" ")
    name, colon, value = (part.strip() for part in header.strip().partition(":"))
    if action.lower() not in _ACTIONS:
        raise ValueError(f"{quoted(text)} begins with no action; write set, add, setDate or addDate before the header.")
    if not colon or _NAME.fullmatch(name) is None or not (value.isascii() and value.isprintable()):
        raise ValueError(f"{quoted(text)} names no header; write it as: set X-Frame-Options: DENY.")
    if name.lower() in _OURS:
        raise ValueError(f"{quoted(text)} would change the header {name}, which the answer itself needs; remove it.")
    rule = HeaderRule(_ACTIONS[action.lower()], name, value)
    if rule.is_date and re.fullmatch(r"-?[0-9]{1,15}", value) is None:
        raise ValueError(f"{quoted(text)} has no whole number of milliseconds behind its header; give one.")
    return rule
