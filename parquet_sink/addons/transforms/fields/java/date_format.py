"""Java's SimpleDateFormat in UTC and English: dates to texts, and texts to dates, leniently."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Final

from parquet_sink.addons.transforms.fields.java.date_columns import usual
from parquet_sink.addons.transforms.fields.java.numbers import saturated, truncated, wrapped
from parquet_sink.convert import calendars
from parquet_sink.convert.calendars import CUTOVER, CUTOVER_YEAR, DAY_MS, gregorian_month, julian_month

_NOON: Final = 12
LETTERS: Final = "yMdDEuaHkKhmsSzZX"
"""Those of a pattern that are understood in both directions."""
WRITTEN: Final = f"{LETTERS}GYLwWF"
"""Those that `format` understands."""
OF_DAYS: Final = frozenset("GyYMLwWDdFEuzZX")
"""Those that a day decides alone."""
_HINTS: Final[Mapping[str, str]] = {"Y": " (the year of weeks; the year is y)"}
_MOST_COUNT: Final = 64
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBER: Final = re.compile(r"(-?\d++)(?:E(-?\d++))?")
_BLANKS: Final = (" ", "\t")
_FAR: Final = 20
"""Digits that no number of 64 bits has."""
_WIDE: Final = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
_SHORT: Final = 3
_FIRST_SHORT_YEAR: Final = 46
"""Years of two digits are 1946 to 2045: Java takes the 80 years before its own clock's and the 19 after it."""
_LONG_ISO: Final = 3
_NAMES: Final[Mapping[str, Mapping[str, int]]] = {
    letter: {form: number for number, name in enumerate(names, 1) for form in (name.lower(), name[:_SHORT].lower())}
    for letter, names in (("M", _MONTHS), ("E", _DAYS))
} | {"a": {"am": 0, "pm": 1}}
_NO_NUMBER: Final = "NaN"
_FIELDS: Final[Mapping[str, Callable[[int], tuple[str, int]]]] = {
    "k": lambda hour: ("H", 0 if hour == 24 else hour),
    "h": lambda hour: ("h", 0 if hour == 12 else hour),
    "K": lambda hour: ("h", hour),
    "u": lambda day: ("E", day if 1 <= day <= 7 else day - 1),
}
_RFC: Final = re.compile(r"[+-]([01][0-9]|2[0-3])([0-5][0-9])", re.ASCII)
_COLON: Final = re.compile(r"[+-](1[0-9]|2[0-3]|[0-9]{1,2}):([0-5][0-9])", re.ASCII)
_HOURS: Final = re.compile(r"[+-]([01][0-9]|2[0-3])", re.ASCII)
_ISO_COLON: Final = re.compile(r"[+-]([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_NAMES_OF_UTC: Final = ("coordinated universal time", "utc")
_GMT: Final = "gmt"
_ISO: Final = {1: _HOURS, 2: _RFC, 3: _ISO_COLON}


@dataclass(frozen=True)
class CalendarFields:
    """An instant by its fields. year: 1 and more, before that also, in the era before; month: from 1."""

    is_ad: bool
    year: int
    month: int
    day: int
    of_year: int
    weekday: int
    time: int
    """weekday: 1 for Monday to 7. time: milliseconds of the day."""


def calendar_fields(epoch_ms: int) -> CalendarFields:
    """The fields of an instant."""
    day, time = divmod(epoch_ms, DAY_MS)
    year, month, of_month = calendars.gregorian(day) if day >= CUTOVER else calendars.julian(day)
    first = _first(year, 1, julian=year <= CUTOVER_YEAR)
    shown = year if year > 0 else 1 - year
    return CalendarFields(year > 0, shown, month, of_month, day - first + 1, (day + 3) % 7 + 1, time)


def week(at: CalendarFields) -> tuple[int, int]:
    """Week year and week of the year: weeks begin on Sunday, and the first one has 1 January in it."""
    year = at.year if at.is_ad else 1 - at.year
    days = _first(year + 1, 1, julian=year < CUTOVER_YEAR) - _first(year, 1, julian=year <= CUTOVER_YEAR)
    saturday = (6 - at.weekday) % 7
    if saturday > days - at.of_year:
        return year + 1, 1
    first_weekday = (at.weekday - (at.of_year - 1)) % 7
    return year, (at.of_year - 1 + first_weekday) // 7 + 1


def week_of_month(at: CalendarFields) -> int:
    """Likewise, of the month."""
    first_weekday = (at.weekday - (at.day - 1)) % 7
    return (at.day - 1 + first_weekday) // 7 + 1


def instant(fields: Mapping[str, int]) -> int:
    """Epoch milliseconds of fields in the order in which they were set.

    Named by the letters of SimpleDateFormat's patterns (`h` for both kinds of hours from 12, `H` for those of a day),
    and `zone` for milliseconds from UTC. The later one of `D` and `d` counts; what is not there is that of 1970 began.
    """
    order = list(fields)
    time = ((_hour(fields) * 60 + fields.get("m", 0)) * 60 + fields.get("s", 0)) * 1000 + fields.get("S", 0)
    days, time = divmod(time, DAY_MS)
    is_of_year = "D" in fields and ("d" not in fields or order.index("D") > order.index("d"))
    year = fields.get("y", 1970)
    julian, gregorian = (days + _day(fields, year, is_of_year, julian=one) for one in (True, False))
    if year > CUTOVER_YEAR:
        day = gregorian if gregorian >= CUTOVER else julian
    else:
        day = julian if year < CUTOVER_YEAR or is_of_year or gregorian < CUTOVER else gregorian
    return wrapped(day * DAY_MS + time - fields.get("zone", 0), 64)


def _hour(fields: Mapping[str, int]) -> int:
    order = list(fields)
    if "H" in fields and not ({"h", "a"} <= fields.keys() and max(map(order.index, "ha")) > order.index("H")):
        return fields["H"]
    return fields.get("h", 0) + _NOON * fields.get("a", 0)


def _day(fields: Mapping[str, int], year: int, is_of_year: bool, *, julian: bool) -> int:
    if is_of_year:
        return _first(year, 1, julian=julian) + fields["D"] - 1
    shift, month = divmod(wrapped(fields.get("M", 1) - 1, 32), 12)
    first = _first(year + shift, month + 1, julian=julian)
    if "d" not in fields and "E" in fields:
        return first + (fields["E"] - 1 - (first + 3)) % 7
    return first + fields.get("d", 1) - 1


def _first(year: int, month: int, *, julian: bool) -> int:
    return julian_month(year, month) if julian else gregorian_month(year, month)


class NoDate(ValueError):
    """A text does not go on as the pattern says."""


class PatternUnusable(ValueError):
    """The text says what is wrong with a pattern, after the pattern itself."""


class DateFormat:
    """One pattern. letters: those that it may have. step_ms: instants within one such step are written alike."""

    def __init__(self, pattern: str, letters: str = LETTERS) -> None:
        """Raises PatternUnusable."""
        self._tokens = _tokens(pattern, letters)
        self.step_ms = DAY_MS if all(letter in OF_DAYS for letter, count in self._tokens if count) else 1
        self.usual = usual(self._tokens)
        """See `date_columns`."""

    def format(self, epoch_ms: int) -> str:
        """An instant as text."""
        found = calendar_fields(epoch_ms)
        return "".join(text if not count else _SHOWN[text](found, count) for text, count in self._tokens)

    def parse(self, text: str) -> int:
        """Epoch milliseconds of what a text begins with. Raises NoDate."""
        reading = _Reading(text)
        for number, (token, count) in enumerate(self._tokens):
            if not count:
                reading.literal(token)
            else:
                reading.field(token, count, limited=_is_number(self._tokens[number + 1 : number + 2]))
        if not reading.at:
            raise NoDate
        return instant(reading.fields)


def _is_number(token: Sequence[tuple[str, int]]) -> bool:
    """Whether what comes next, if anything, is read as a number."""
    return any(count and letter not in "EazZX" and not (letter == "M" and count >= _SHORT) for letter, count in token)


def _tokens(pattern: str, letters: str) -> list[tuple[str, int]]:
    """Letters with how often they stand there, and other texts with 0. Raises PatternUnusable."""
    found: list[tuple[str, int]] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "'":
            text, at = _quoted(pattern, at + 1)
            found.append((text, 0))
        elif char.isascii() and char.isalpha():
            count = len(pattern[at:]) - len(pattern[at:].lstrip(char))
            _check(char, count, letters)
            found.append((char, count))
            at += count
        else:
            found.append((char, 0))
            at += 1
    return found


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    """The text between quotes, and where it goes on behind them; two quotes are one."""
    if pattern[at : at + 1] == "'":
        return "'", at + 1
    text = ""
    while at < len(pattern):
        if pattern[at] != "'":
            text += pattern[at]
            at += 1
        elif pattern[at : at + 2] == "''":
            text += "'"
            at += 2
        else:
            return text, at + 1
    raise PatternUnusable("has a quote that does not end; close it, or write two for one")


def _check(letter: str, count: int, letters: str) -> None:
    if letter not in letters:
        hint = _HINTS.get(letter, "")
        raise PatternUnusable(f"has {letter}{hint}; use {' '.join(letters)}, and quote letters that mean nothing")
    if count > _MOST_COUNT or (letter == "X" and count > _LONG_ISO):
        raise PatternUnusable(f"has {letter} {count} times, more than can be; write fewer")


def _padded(value: Callable[[CalendarFields], int]) -> Callable[[CalendarFields, int], str]:
    return lambda found, count: str(value(found)).zfill(count)


def _named(names: tuple[str, ...], value: Callable[[CalendarFields], int]) -> Callable[[CalendarFields, int], str]:
    return lambda found, count: names[value(found) - 1][: None if count > _SHORT else _SHORT]


def _year(of: Callable[[CalendarFields], int]) -> Callable[[CalendarFields, int], str]:
    return lambda found, count: str(of(found)).zfill(count)[-2:] if count == 2 else str(of(found)).zfill(count)


def _month(found: CalendarFields, count: int) -> str:
    if count < _SHORT:
        return str(found.month).zfill(count)
    return _named(_MONTHS, lambda one: one.month)(found, count)


_SHOWN: Final[Mapping[str, Callable[[CalendarFields, int], str]]] = {
    "G": lambda found, _: "AD" if found.is_ad else "BC",
    "y": _year(lambda one: one.year),
    "Y": _year(lambda one: week(one)[0]),
    "M": _month,
    "L": _month,
    "w": _padded(lambda one: week(one)[1]),
    "W": _padded(week_of_month),
    "F": _padded(lambda one: (one.day - 1) // 7 + 1),
    "d": _padded(lambda one: one.day),
    "D": _padded(lambda one: one.of_year),
    "E": _named(_DAYS, lambda one: one.weekday),
    "u": _padded(lambda one: one.weekday),
    "a": lambda found, _: "AM" if found.time < 43_200_000 else "PM",
    "H": _padded(lambda one: one.time // 3_600_000),
    "k": _padded(lambda one: one.time // 3_600_000 or 24),
    "K": _padded(lambda one: one.time // 3_600_000 % 12),
    "h": _padded(lambda one: one.time // 3_600_000 % 12 or 12),
    "m": _padded(lambda one: one.time // 60_000 % 60),
    "s": _padded(lambda one: one.time // 1000 % 60),
    "S": _padded(lambda one: one.time % 1000),
    "z": lambda _, count: "Coordinated Universal Time" if count > _SHORT else "UTC",
    "Z": lambda _, __: "+0000",
    "X": lambda _, __: "Z",
}


class _Reading:
    """A text on its way through a pattern. fields: see `calendar.instant`. at: how far it is read."""

    def __init__(self, text: str) -> None:
        self._text, self.at = text, 0
        self.fields: dict[str, int] = {}

    def literal(self, text: str) -> None:
        """Take exactly this text."""
        if not self._text.startswith(text, self.at):
            raise NoDate
        self.at += len(text)

    def field(self, letter: str, count: int, *, limited: bool) -> None:
        """Take a field. limited: it has at most so many characters, because another one follows at once."""
        start = self.at
        while self._text[self.at : self.at + 1] in _BLANKS:
            self.at += 1
        if self.at >= len(self._text):
            raise NoDate
        if letter in "zZX":
            offset, self.at = _ZONES[letter](self._text, start, self.at, count)
            self._set("zone", offset)
        elif letter in "Ea" or (letter == "M" and count >= _SHORT):
            self._set(letter, self._name(letter, start))
        else:
            self._number(letter, count, start if limited else None)

    def _set(self, name: str, value: int) -> None:
        self.fields.pop(name, None)
        self.fields[name] = value

    def _name(self, letter: str, start: int) -> int:
        """The longest name that stands here; unlike numbers it has no blanks before it."""
        rest = self._text[start : start + 20].lower()
        found = max((name for name in _NAMES[letter] if rest.startswith(name)), key=len, default=None)
        if found is None:
            raise NoDate
        self.at = start + len(found)
        return _NAMES[letter][found]

    def _number(self, letter: str, count: int, start: int | None) -> None:
        end = len(self._text) if start is None else start + count
        if self._text.startswith(_NO_NUMBER, self.at, end):  # Java reads it as a number all the same, which is 0 then
            self.at += len(_NO_NUMBER)
            self._set(*(_FIELDS[letter](0) if letter in _FIELDS else (letter, 0)))
            return
        found = _NUMBER.match(self._text, self.at, end) if end <= len(self._text) else None
        if found is None:
            raise NoDate
        power = saturated(found[2] or "0")
        has_power = power == wrapped(power, 64)  # Java does not read one that no long holds
        begin, self.at = self.at, found.end() if has_power else found.end(1)
        digits = self._text[begin : begin + 2]
        is_short = letter == "y" and count <= 2 and self.at - begin == 2 and digits.isdigit()
        value = _whole(found[1], wrapped(power, 32) if has_power else 0)
        if is_short:
            value += 2000 if value < _FIRST_SHORT_YEAR else 1900
        self._set(*(_FIELDS[letter](value) if letter in _FIELDS else (letter, value)))


def _whole(digits: str, power: int) -> int:
    """`Number.intValue` of what NumberFormat reads: the lowest bits of a long, the limits of what is beyond."""
    number = saturated(digits)
    if power and number:
        exact = Decimal(digits)
        place = exact.adjusted() + power
        if not 0 <= place < _FAR:
            return 0 if place < 0 else truncated(math.copysign(math.inf, number), 32)
        scaled = exact.scaleb(power, _WIDE)
        number = int(scaled)
        if number != scaled:  # then it is a double
            return truncated(float(scaled), 32)
    if number == wrapped(number, 64):
        return wrapped(number, 32)
    return 2**31 - 1 if number > 0 else -(2**31)


# Time zones in texts: offsets, and the names of UTC. Other names are not known.
def _general(text: str, start: int, at: int, count: int) -> tuple[int, int]:
    """`z` and `Z`: an offset, `GMT` with one or without, or a name of UTC. Milliseconds, and where it ends."""
    if text[at] in "+-":
        return _offset(_RFC, text, at)
    rest = text[at : at + 30].lower()
    if text[start : start + 3].lower() == _GMT:
        behind = start + len(_GMT)
        return _offset(_COLON, text, behind) if text[behind : behind + 1] in ("+", "-") else (0, behind)
    for name in _NAMES_OF_UTC:
        if rest.startswith(name):
            return 0, at + len(name)
    raise NoDate


def _iso(text: str, start: int, at: int, count: int) -> tuple[int, int]:
    """`X`: `Z`, or an offset of hours (X), hours and minutes (XX), or these with a colon between (XXX)."""
    return (0, at + 1) if text[at] == "Z" else _offset(_ISO[count], text, at)


def _offset(form: re.Pattern[str], text: str, at: int) -> tuple[int, int]:
    found = form.match(text, at)
    if found is None:
        raise NoDate
    hours, *minutes = map(int, found.groups())
    size = (hours * 60 + sum(minutes)) * 60_000
    return (-size if text[at] == "-" else size), found.end()


_ZONES: Final[Mapping[str, Callable[[str, int, int, int], tuple[int, int]]]] = {"z": _general, "Z": _general, "X": _iso}
