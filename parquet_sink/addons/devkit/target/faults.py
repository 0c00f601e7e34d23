"""Faults to order, as pure rules: which of the next uploads goes wrong, and how.

Rules are examined in the order in which they were given; the first that fires decides. Chance is passed in.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal

Cut = Literal["before", "during", "after"]
At = Literal["upload", "token"]
ATS: Final = ("upload", "token")
CUTS: Final = ("before", "during", "after")
MAX_LATENCY_S: Final = 3_600.0
MAX_BODY_CHARACTERS: Final = 1_000_000
_BODILESS: Final = (204, 304)


class BadFault(ValueError):
    """An ordered fault makes no sense; the text names the key and the cure."""


@dataclass(frozen=True)
class Fault:
    """One rule.

    status, body, location, retry_after, ratelimit_reset shape the answer that is given instead of storing the file
    (`store` true: after storing it). latency_s delays the answer. cut closes the connection without an answer before
    storing or after it, or half way through the answer of a stored file. next: how many uploads more; rate: the share
    of uploads (0 < rate <= 1); neither: all. match: a part of the target's or the file's name. at: whether it befalls
    uploads or requests for access tokens.
    """

    status: int | None = None
    body: str | None = None
    location: str | None = None
    retry_after: str | None = None
    ratelimit_reset: str | None = None
    store: bool = False
    latency_s: float = 0.0
    cut: Cut | None = None
    next: int | None = None
    rate: float | None = None
    match: str = ""
    at: At = "upload"
    fired: int = 0

    @property
    def replaces_answer(self) -> bool:
        """True when the answer is the rule's own and not the target's."""
        return self.status is not None or self.body is not None or self.location is not None

    @property
    def stores(self) -> bool:
        """True when the file is stored although something goes wrong."""
        return self.cut in ("during", "after") or (self.cut is None and (self.store or not self.replaces_answer))

    @property
    def answer_status(self) -> int:
        """The status of the rule's own answer."""
        return self.status if self.status is not None else 307 if self.location is not None else 200

    def as_json(self) -> dict[str, Any]:
        """The rule as `GET /faults` shows it: what was ordered, how often it fired, how many firings are left."""
        shown = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in shown.items() if value != _DEFAULTS[name] or name == "fired"}


_DEFAULTS: Final = {f.name: f.default for f in fields(Fault)}


def choose(
    rules: Sequence[Fault], target: str, file_name: str, draw: Callable[[], float], at: At = "upload"
) -> tuple[Fault | None, tuple[Fault, ...]]:
    """The fault for one upload, None for a good answer, and the rules as they stand after it.

    draw: a chance in [0, 1), asked once for each matching rule that has a rate.
    """
    for index, rule in enumerate(rules):
        if rule.at == at and _fires(rule, target, file_name, draw):
            left = None if rule.next is None else rule.next - 1
            spent = replace(rule, next=left, fired=rule.fired + 1)
            return rule, (*rules[:index], spent, *rules[index + 1 :])
    return None, tuple(rules)


def _fires(rule: Fault, target: str, file_name: str, draw: Callable[[], float]) -> bool:
    if rule.next == 0 or not (rule.match in target or rule.match in file_name):
        return False
    return rule.rate is None or draw() < rule.rate


def parse_fault(order: object) -> Fault:
    """A rule from decoded JSON. Raises BadFault, which names the key and the cure."""
    if not isinstance(order, Mapping):
        raise BadFault('a fault is a JSON object such as {"status": 503, "next": 1}')
    known = {f.name for f in fields(Fault)} - {"fired"}
    unknown = sorted(str(key) for key in order.keys() - known)
    if unknown:
        raise BadFault(f"unknown key {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    values = {key: _CHECKS[key](key, value) for key, value in order.items() if value is not None}
    fault = Fault(**values)
    if fault.answer_status in _BODILESS and fault.body:
        raise BadFault(f"body: a {fault.answer_status} has none; leave it out")
    if fault.cut and fault.replaces_answer:
        raise BadFault("cut: a connection that is cut carries no answer; leave out status, body and location")
    if not (fault.cut or fault.replaces_answer or fault.latency_s):
        raise BadFault("give one of status, body, location, latency_s or cut")
    return fault


def _integer(low: int, high: int) -> Callable[[str, object], int]:
    def check(key: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise BadFault(f"{key}: must be an integer from {low} to {high}, not {value!r}")
        return value

    return check


def _number(low: float, high: float) -> Callable[[str, object], float]:
    def check(key: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise BadFault(f"{key}: must be a number from {low} to {high}, not {value!r}")
        return float(value)

    return check


def _text(limit: int) -> Callable[[str, object], str]:
    def check(key: str, value: object) -> str:
        if not isinstance(value, str) or len(value) > limit:
            raise BadFault(f"{key}: must be a text of at most {limit} characters")
        return value

    return check


def _header(key: str, value: object) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not (text.isascii() and text.isprintable()) or len(text) > 2_000:
        raise BadFault(f"{key}: must be printable ASCII, because it is sent as a header")
    return text


def _one_of(choices: Sequence[str]) -> Callable[[str, object], str]:
    def check(key: str, value: object) -> str:
        if value not in choices:
            raise BadFault(f"{key}: must be one of {', '.join(choices)}, not {value!r}")
        return str(value)

    return check


def _boolean(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadFault(f"{key}: must be true or false, not {value!r}")
    return value


_CHECKS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "status": _integer(200, 599),
    "body": _text(MAX_BODY_CHARACTERS),
    "location": _header,
    "retry_after": _header,
    "ratelimit_reset": _header,
    "store": _boolean,
    "latency_s": _number(0.0, MAX_LATENCY_S),
    "cut": _one_of(CUTS),
    "at": _one_of(ATS),
    "next": _integer(1, 1_000_000),
    "rate": _number(0.0, 1.0),
    "match": _text(1_000),
}
