"""Parses the text of a header to a value: tokens, numbers, arrays and maps, by the steps of Connect's ValueParser."""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, TypeAlias

import numpy as np

from parquet_sink.convert import calendars
from parquet_sink.convert.calendars import DAY_MS
from parquet_sink.convert.decoded import MAX_DEPTH

Kind: TypeAlias = str | tuple["Kind | None", ...]
"""`int8` ... `timestamp`; `(elements,)` for an array, `(keys, values)` for a map, None where they have none."""

_NUMBERS: Final = ("int8", "int16", "int32", "int64", "float32", "float64")
_STORED: Final = {"date": "int32", "time": "int32", "timestamp": "int64"}
"""Of what type Connect stores them, which decides what they mix with."""


class Unfit(ValueError):
    """No array or map, though it begins like one: Connect's DataException."""


class NotHeld(ValueError):
    """A value that Connect has, and Arrow cannot hold."""


@dataclass(frozen=True)
class JavaDate:
    """kind: of what was read, `date`, `time` or `timestamp`; ms: of the epoch."""

    kind: str
    ms: int


@dataclass(frozen=True)
class Found:
    """A value with its kind."""

    kind: Kind
    value: object


class Entries(list[tuple[object, object]]):
    """Of a map."""


def common(found: list[Found | None]) -> Kind | None:
    """The kind that all can have; None when there is none, or when all are null."""
    kind: Kind | None = None
    for one in found:
        if one is not None:
            kind = one.kind if kind is None else _merged(kind, one.kind)
            if kind is None:
                return None
    return kind


def _merged(previous: Kind, new: Kind) -> Kind | None:
    one, other = _stored(previous), _stored(new)
    if one == other:
        return new
    if one in _NUMBERS and other in _NUMBERS:
        return new if _NUMBERS.index(one) < _NUMBERS.index(other) else previous
    return None


def _stored(kind: Kind) -> str:
    if isinstance(kind, tuple):
        return "array" if len(kind) == 1 else "map"
    return _STORED.get(kind, kind)


def converted(kind: Kind, value: object) -> object:
    """A value as one of that kind. Raises Unfit as Connect's `convertTo` does."""
    if value is None or (isinstance(value, JavaDate) and kind in _NUMBERS):
        raise Unfit
    if kind in _STORED and not isinstance(value, JavaDate):
        assert isinstance(value, int)
        if kind == "time" and not 0 <= value <= DAY_MS:
            raise Unfit
        return JavaDate(str(kind), value * (DAY_MS if kind == "date" else 1))
    if kind == "float32":
        return float(np.float32(float(value)))  # type: ignore[arg-type]
    return float(value) if kind == "float64" else value  # type: ignore[arg-type]


def mapped(keys: Kind | None, values: Kind | None, entries: list[tuple[object, object]]) -> Found:
    """A map of these entries; of keys that become equal the last one counts. Raises Unfit."""
    if keys is None:
        return Found((None, None), Entries(entries))
    found: dict[str, tuple[object, object]] = {}
    for given, item in entries:
        key = converted(keys, given)
        found[repr(key)] = (key, item if values is None else converted(values, item))
    return Found((keys, values), Entries(found.values()))


_NUMBER: Final = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?")
_PLAIN: Final = re.compile(r"[+-]?[0-9]{1,18}")
_MOST_SCALE: Final = 2**31 - 1
_INTEGERS: Final = (("int8", 2**7), ("int16", 2**15), ("int32", 2**31), ("int64", 2**63))


def number(token: str) -> Found | None:
    """None when Java's BigDecimal does not read it."""
    if _NUMBER.fullmatch(token) is None or max(token) > "\uffff":
        return None
    if _PLAIN.fullmatch(token):
        return _integer(int(token))
    try:
        found = Decimal(token)
    except InvalidOperation:  # an exponent beyond what Decimal holds
        return None
    exponent = found.as_tuple().exponent
    return _fraction(found, exponent) if isinstance(exponent, int) and abs(exponent) <= _MOST_SCALE else None


def _fraction(found: Decimal, exponent: int) -> Found:
    """Whatever it looks like: a whole number as such, else the narrowest type of fractions, else a decimal."""
    if (whole := _whole(found)) is not None:
        return _integer(whole)
    if exponent:
        for name, value in (("float32", _float32(found)), ("float64", float(found))):
            if abs(value) != np.inf:
                return Found(name, value)
    return Found("decimal", found)


def _integer(whole: int) -> Found:
    return Found(next(name for name, limit in _INTEGERS if -limit <= whole < limit), whole)


def _whole(number: Decimal) -> int | None:
    """A whole number within int64 as such, whatever it looks like."""
    if not number:
        return 0
    if not 0 <= number.adjusted() <= 19 or number != number.to_integral_value():
        return None
    whole = int(number)
    return whole if -(2**63) <= whole < 2**63 else None


def _float32(number: Decimal) -> float:
    """The nearest float32. By way of a float64 it may be rounded twice: where that stands halfway between two."""
    wide = float(number)
    with np.errstate(over="ignore"):
        near = np.float32(wide)
        if float(near) == wide or Decimal(wide) == number:
            return float(near)
        other = np.nextafter(near, np.float32(np.copysign(np.inf, wide - float(near))))
    is_halfway = abs(wide) == _OVERFLOWS if np.isinf(near) else float(near) + float(other) == 2 * wide
    if is_halfway and (number > Decimal(wide)) != (near > other):
        return float(other)
    return float(near)


_OVERFLOWS: Final = 2.0**128 - 2.0**103
"""Halfway from the largest float32 to what would be the next."""


_TOKEN: Final = re.compile(r'[:,{}\[\]"]|(?:\\.|[^\\:,{}\[\]"]|\\\Z)+', re.DOTALL)
JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))
"""What Java's `trim` takes away."""


_LITERALS: Final = {"null": None, "true": Found("boolean", True), "false": Found("boolean", False)}
_TEMPORAL: Final = {10: "date", 13: "time", 24: "timestamp"}
"""By the length of the text."""


class Parser:
    """Of one text: tokens, of which `at` is the next."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._tokens: list[str] = _TOKEN.findall(text)

    def _has_next(self) -> bool:
        return self._at < len(self._tokens)

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _consume(self, expected: str) -> bool:
        """Takes the next token that is not blank if it is this one; blanks before it are gone in any case."""
        if not self._has_next():
            return False
        while not self._tokens[self._at].strip(JAVA_BLANKS) and self._at + 1 < len(self._tokens):
            self._at += 1
        found = self._tokens[self._at].strip(JAVA_BLANKS) == expected
        self._at += found
        return found

    def parse(self, *, embedded: bool, depth: int) -> Found | None:
        """None stands for null. Raises Unfit for what is embedded and no value."""
        if not self._has_next():
            return None
        if embedded and self._consume('"'):
            return self._quoted()
        for literal, value in _LITERALS.items():
            if self._literal(literal, embedded=embedded):
                return value
        start = self._at
        try:
            if (collection := self._collection(depth + 1)) is not None:
                return collection
        except Unfit:
            self._at = start
        token = self._take()
        trimmed = token.strip(JAVA_BLANKS)
        return self._plain(trimmed, embedded=embedded) if trimmed else Found("string", token)

    def alone(self) -> Found | None:
        """What `parse` gives for a text without delimiters, which is one token."""
        trimmed = self._text.strip(JAVA_BLANKS)
        if trimmed in _LITERALS:
            return _LITERALS[trimmed]
        self._take()
        return self._plain(trimmed, embedded=False) if trimmed else Found("string", self._text)

    def _literal(self, literal: str, *, embedded: bool) -> bool:
        start = self._at
        if self._consume(literal) and (embedded or not self._has_next()):
            return True
        self._at = start
        return False

    def _collection(self, depth: int) -> Found | None:
        """None when the next token begins none. Raises Unfit for what is none, though it begins like one."""
        if self._consume("["):
            return self._array(depth)
        return self._map(depth) if self._consume("{") else None

    def _plain(self, token: str, *, embedded: bool) -> Found:
        is_digit = token[0].isdecimal() and token[0] <= "\uffff"
        if is_digit and (temporal := self._temporal(token)) is not None:
            return temporal
        if (is_digit or token[0] in "+-") and (found := number(token)) is not None:
            return found
        if embedded:
            raise Unfit
        return Found("string", self._text)

    def _temporal(self, token: str) -> Found | None:
        """A time or timestamp is five tokens, because colons part them."""
        rest = self._tokens[self._at : self._at + 4]
        found = _temporal(token + "".join(rest)) if len(rest) == 4 else None
        if found is not None:
            self._at += 4
        return found or _temporal(token)

    def _quoted(self) -> Found:
        parts: list[str] = []
        while self._has_next() and not self._consume('"'):
            parts.append(self._take())
        content = "".join(parts)
        return _temporal(content) or Found("string", content)

    def _array(self, depth: int) -> Found:
        if depth > MAX_DEPTH:
            raise NotHeld
        found: list[Found | None] = []
        while self._has_next():
            if self._consume("]"):
                kind = common(found)
                values = [None if one is None else one.value for one in found]
                return Found((kind,), values if kind is None else [converted(kind, value) for value in values])
            if self._consume(","):
                raise Unfit
            found.append(self.parse(embedded=True, depth=depth))
            position = self._at
            if self._consume("]"):
                self._at = position
            elif not self._consume(","):
                raise Unfit
        raise Unfit

    def _map(self, depth: int) -> Found:
        if depth > MAX_DEPTH:
            raise NotHeld
        entries: dict[object, tuple[object, object]] = {}
        keys: list[Found | None] = []
        values: list[Found | None] = []
        while self._has_next():
            if self._consume("}"):
                return mapped(common(keys), common(values), list(entries.values()))
            if self._consume(","):
                raise Unfit
            key = self.parse(embedded=True, depth=depth)
            if key is None or not self._consume(":"):
                raise Unfit
            value = self.parse(embedded=True, depth=depth)
            equal = _equal(key)
            first = entries[equal][0] if equal in entries else key.value
            entries[equal] = (first, None if value is None else value.value)
            self._consume(",")
            keys.append(key)
            values.append(value)
        raise Unfit


def _equal(key: Found) -> object:
    """The same for keys that are equal in Java: of dates the instant counts, of numbers the type, too."""
    return key.value.ms if isinstance(key.value, JavaDate) else (repr(key.kind), repr(key.value))


def _temporal(token: str) -> Found | None:
    token = token.replace("\\:", ":")
    kind = _TEMPORAL.get(len(token) + sum(character > "\uffff" for character in token))
    ms = None if kind is None else calendars.parsed(kind, token)
    return None if kind is None or ms is None else Found(kind, JavaDate(kind, ms))
