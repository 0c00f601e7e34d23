"""Addresses that the REST API listens on, and headers of its answers, as Kafka Connect and Jetty write them."""

import csv
import re
from dataclasses import dataclass
from typing import Final, Literal, cast
from urllib.parse import urlsplit

from parquet_sink.config.report import quoted
from parquet_sink.net.settings import is_loopback

Scheme = Literal["http", "https"]

_ADDRESS: Final = re.compile(r"(?i:(https?))://(?:\[([0-9a-fA-F:.%]+)\]|([0-9A-Za-z.\-_]*)):([0-9]{1,5})/?")
_EVERYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not listened on

Action = Literal["set", "add", "setDate", "addDate"]

_ACTIONS: Final[dict[str, Action]] = {"set": "set", "add": "add", "setdate": "setDate", "adddate": "addDate"}
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS: Final = frozenset({"content-length", "transfer-encoding", "connection", "date", "content-type"})


@dataclass(frozen=True)
class Address:
    """One of them. host: empty for all of the machine's addresses. port: 0 for any that is free."""

    scheme: Scheme
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether nobody reaches it from another machine."""
        return bool(self.host) and is_loopback(urlsplit(f"//{self.shown_host}"))

    @property
    def is_everywhere(self) -> bool:
        """Whether it stands for all of the machine's addresses."""
        return self.host in _EVERYWHERE

    @property
    def shown_host(self) -> str:
        """As a URL has it."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def __str__(self) -> str:
        return f"{self.scheme}://{self.shown_host}:{self.port}"


def parse_address(text: str) -> Address:
    """The address. Raises ValueError with a reason and a cure."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found[4]) > 65535:
        raise ValueError(
            f"{quoted(text)} is not an address; write http://localhost:8083, or https:// before a host and a port."
        )
    return Address(cast(Scheme, found[1].lower()), (found[2] or found[3] or "").lower(), int(found[4]))


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


def parse_rules(text: str) -> tuple[HeaderRule, ...]:
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
