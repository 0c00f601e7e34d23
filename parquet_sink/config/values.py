"""From texts to typed values, by the table of keys."""

import math
import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

from parquet_sink.config.key import Key, Type, Value
from parquet_sink.config.provider import Resolved
from parquet_sink.config.quantity import Unit, amount, examples
from parquet_sink.config.report import Report, did_you_mean, quoted
from parquet_sink.config.secret import Secret

_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_BITS = {Type.INT: 32, Type.LONG: 64}


class Values:
    """Typed values by key; an absent or invalid key has its default.

    given: the keys that the file sets to something, invalid ones included. texts: all of the file, placeholders filled,
    for keys that stand for a prefix; secrets are among them.
    """

    def __init__(
        self,
        values: Mapping[str, Value],
        given: Collection[str],
        shown: Mapping[str, str],
        texts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._values = values
        self._shown = shown
        self.texts = texts
        self.given = frozenset(given)

    def quoted(self, name: str) -> str:
        """The value for a message, as written in the file: of a value that a provider gave, its placeholder."""
        return quoted(self._shown[name].strip())

    def is_blank(self, name: str) -> bool:
        """True when the file has the key with nothing behind it."""
        return name in self._shown and name not in self.given

    def value(self, name: str) -> Value:
        """Of any type."""
        return self._values[name]

    def over(self, other: "Values", prefix: str) -> "Values":
        """These values, and the other file's for the keys of a prefix that are not given here."""
        taken = {name for name in other.given if name.startswith(prefix) and name not in self.given}
        values = {**self._values, **{name: other.value(name) for name in taken if other.knows(name)}}
        shown = {**self._shown, **{name: other.shown(name) for name in taken}}
        texts = {**self.texts, **{name: other.texts[name] for name in taken if name in other.texts}}
        return Values(values, self.given | taken, shown, texts)

    def knows(self, name: str) -> bool:
        """False for what is given under a prefix alone."""
        return name in self._values

    def shown(self, name: str) -> str:
        """The text as the file has it, placeholders unfilled."""
        return self._shown[name]

    def flag(self, name: str) -> bool:
        """Of a `BOOLEAN` key."""
        return self._values[name] is True

    def number(self, name: str) -> int | None:
        """Of an `INT` or `LONG` key; None where it is absent and has no default. Of a `DOUBLE` key take `value`."""
        value = self._values[name]
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def text(self, name: str) -> str | None:
        """Of a `STRING` key; None where it is absent and has no default."""
        value = self._values[name]
        return value if isinstance(value, str) else None

    def names(self, name: str) -> tuple[str, ...]:
        """Of a `LIST` key; empty where it is absent and has no default."""
        value = self._values[name]
        return value if isinstance(value, tuple) else ()

    def secret(self, name: str) -> Secret | None:
        """Of a `PASSWORD` key: `reveal()` gives its text, and nothing else shows it; None where it is absent."""
        value = self._values[name]
        return value if isinstance(value, Secret) else None

    def differs(self, key: Key) -> bool:
        """True when the file sets the key to something else than its default (always, for a key of a prefix)."""
        return key.is_prefix or key.default is None or self._values[key.name] != key.default


NOTHING = Values({}, (), {})


def read(table: Collection[Key], resolved: Resolved, report: Report) -> Values:
    """Parse and check every key of the table; what is wrong goes to the report, in the table's order.

    A blank text counts as absent, but for keys that may be empty. Keys that stand for a prefix are not parsed.
    """
    values: dict[str, Value] = {}
    empty = {key.name for key in table if key.may_be_empty}
    given = {name for name, text in resolved.values.items() if text.strip() or name in empty}
    for key in table:
        if key.is_prefix:
            continue
        values[key.name] = key.default
        if key.name in given:
            values[key.name] = _read_key(key, resolved, report)
        elif key.required and key.name not in resolved.failed:
            report.problem(key.name, f"It is missing; {key.missing}")
    return Values(values, given | resolved.failed, resolved.shown, resolved.values)


def _read_key(key: Key, resolved: Resolved, report: Report) -> Value:
    shown = "It" if key.secret else quoted(resolved.shown[key.name].strip())
    try:
        value = _parse(key, resolved.values[key.name].strip(), shown)
    except ValueError as error:
        if key.other_choice:
            report.warn(key.name, f"{error} It is read as {key.other_choice}.")
        else:
            report.problem(key.name, str(error))
        return key.default
    if key.not_built is not None and key.not_built.when(value):
        what = "Its feature" if key.not_built.values == "any" else shown
        report.problem(key.name, f"{what} is not built yet: {key.not_built.cure}")
    elif key.check is not None and (reason := key.check.test(value)) is not None:
        report.problem(key.name, _without_resolved(reason, key, resolved))
        return key.default
    return value


def _without_resolved(reason: str, key: Key, resolved: Resolved) -> str:
    """A check quotes the value; a value that a provider gave is not shown, since it may be a secret."""
    if key.name not in resolved.provided:
        return reason
    return f"The value of {quoted(resolved.shown[key.name])} breaks the rule: {key.check.rule if key.check else ''}."


def _parse(key: Key, text: str, shown: str) -> Value:
    """The typed value. Raises ValueError with a reason and a cure."""
    if key.type is Type.PASSWORD:
        return Secret(text)
    if key.type is Type.BOOLEAN:
        return _boolean(text, shown)
    if key.type in _BITS:
        return _number(key, text, shown)
    if key.type is Type.DOUBLE:
        return _fraction(key, text, shown)
    if key.type is Type.LIST:
        return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    return _choice(key, text, shown) if key.choices else text


def _boolean(text: str, shown: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{shown} is neither true nor false; write one of them.")
    return text.lower() == "true"


def _number(key: Key, text: str, shown: str) -> int:
    if _WHOLE.fullmatch(text) is not None:
        number = int(text)
    elif key.unit is not None:
        number = _quantity(key, key.unit, text, shown)
    else:
        raise ValueError(f"{shown} is not a whole number; write digits only, {_range(key)}.")
    _within(key, number, 2 ** (_BITS[key.type] - 1) - 1, shown)
    return number


def _quantity(key: Key, unit: Unit, text: str, shown: str) -> int:
    cure = f"write {examples(unit, key.minimum, key.maximum)}, {_range(key)}; units are {unit.units}."
    try:
        number = amount(text, unit)
    except ValueError as error:
        raise ValueError(f"{shown} {error}; {cure}") from None
    if number is None:
        raise ValueError(f"{shown} is no {unit.value}; {cure}")
    return number


def decimal(text: str) -> float | None:
    """The number that a text is, as Java reads it, too; None when it is none, or not finite."""
    try:
        number = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _fraction(key: Key, text: str, shown: str) -> float:
    number = decimal(text)
    if number is None:
        raise ValueError(f"{shown} is not a number; write one such as 0.5, {_range(key)}.")
    _within(key, number, math.inf, shown)
    return number


def _within(key: Key, number: float, most: float, shown: str) -> None:
    """Raises ValueError for a number beyond the key's limits. most: where the key names none."""
    if key.minimum is not None and number < key.minimum:
        raise ValueError(f"{shown} is less than {key.minimum}; give {_range(key)}.")
    maximum = most if key.maximum is None else key.maximum
    if number > maximum:
        raise ValueError(f"{shown} is more than {maximum}; give {_range(key)}.")


def _range(key: Key) -> str:
    if key.maximum is not None:
        return f"{key.minimum} to {key.maximum}"
    return f"{key.minimum} or more" if key.minimum is not None else f"a {key.type.value}"


def _choice(key: Key, text: str, shown: str) -> str:
    by_lower = {choice.lower(): choice for choice in key.choices}
    if text.lower() in by_lower:
        return by_lower[text.lower()]
    built = [choice for choice in key.choices if key.not_built is None or not key.not_built.when(choice)]
    near = {choice.lower(): choice for choice in built}
    hint = did_you_mean(text.lower(), near, cutoff=0.6) if shown == quoted(text) else ""
    only = f"{built[0]}; write it, or remove the key"
    cure = only if len(built) == 1 else f"one of {', '.join(built)}; write one of them"
    raise ValueError(f"{shown} is not {cure}.{hint}")
