"""Timestamps as Java's SimpleDateFormat writes them, in UTC and English."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from parquet_sink.convert.calendars import DAY_MS, gregorian

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ERAS: Final = ("BC", "AD")
_OF_DAYS: Final = frozenset("GyYMLwWDdFEu'zZX")
"""Letters that a day decides alone."""


class NotFormatted(ValueError):
    """No format of Java's, or one that is not kept. The text stands behind the format."""


@dataclass(frozen=True)
class _Moment:
    """Parts of a timestamp. weekday: Monday is 1; of_year: day of the year, from 1."""

    year: int
    month: int
    day: int
    weekday: int
    of_year: int
    ms: int

    @property
    def hour(self) -> int:
        return self.ms // 3_600_000

    @property
    def first_weekday(self) -> int:
        """Of the year's first day, Sunday being 0."""
        return (self.weekday - (self.of_year - 1)) % 7


_Writer = Callable[[_Moment], str]


class TimestampFormat:
    """step_ms: timestamps within one such step, which begins at a multiple of it, are written alike."""

    def __init__(self, pattern: str) -> None:
        """Raises NotFormatted."""
        self._parts = [_writer(part) if isinstance(part, _Field) else part for part in _parsed(pattern)]
        letters = {part.letter for part in _parsed(pattern) if isinstance(part, _Field)}
        self.step_ms = DAY_MS if letters <= _OF_DAYS else 1

    def text(self, epoch_ms: int) -> str:
        """One timestamp."""
        days, ms = divmod(epoch_ms, DAY_MS)
        year, month, day = gregorian(days)
        of_year = sum(_length(year, before) for before in range(1, month)) + day
        moment = _Moment(year, month, day, (days + 3) % 7 + 1, of_year, ms)
        return "".join(part if isinstance(part, str) else part(moment) for part in self._parts)


@dataclass(frozen=True)
class _Field:
    letter: str
    count: int


def _parsed(pattern: str) -> list[_Field | str]:
    parts: list[_Field | str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "'":
            text, at = _quoted(pattern, at)
            parts.append(text)
        elif character.isascii() and character.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == character:
                end += 1
            parts.append(_Field(character, end - at))
            at = end
        else:
            parts.append(character)
            at += 1
    return parts


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    """Text between apostrophes; two of them are one."""
    if pattern.startswith("''", at):
        return "'", at + 2
    text, at = "", at + 1
    while at < len(pattern):
        if pattern.startswith("''", at):
            text, at = text + "'", at + 2
        elif pattern[at] == "'":
            return text, at + 1
        else:
            text, at = text + pattern[at], at + 1
    raise NotFormatted("has an apostrophe that nothing closes; write another.")


def _writer(field: _Field) -> _Writer:
    letter, count = field.letter, field.count
    if letter in _NUMBERS:
        number = _NUMBERS[letter]
        return lambda moment: f"{number(moment):0{count}}"
    if letter in "yY":
        year = _year if letter == "y" else _week_year
        return lambda moment: f"{year(moment) % 100:02}" if count == 2 else f"{year(moment):0{count}}"
    if letter in "ML":
        return lambda moment: _month(moment.month, count)
    if letter == "E":
        return lambda moment: _DAYS[moment.weekday - 1][: None if count > 3 else 3]
    if letter in _TEXTS and (letter != "X" or count <= 3):
        return _TEXTS["zzzz" if letter == "z" and count > 3 else letter]
    raise NotFormatted(f"has {letter * count}, which is no letter of SimpleDateFormat; put text between apostrophes.")


def _month(month: int, count: int) -> str:
    if count < 3:
        return f"{month:0{count}}"
    return _MONTHS[month - 1][: None if count > 3 else 3]


def _length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _year(moment: _Moment) -> int:
    return moment.year if moment.year > 0 else 1 - moment.year


def _days_in(year: int) -> int:
    return 337 + _length(year, 2)


def _week(moment: _Moment) -> tuple[int, int]:
    """Week year and week of the year: weeks begin on Sunday, and the first one has 1 January in it."""
    week = (moment.of_year - 1 + moment.first_weekday) // 7 + 1
    last = _days_in(moment.year) - moment.of_year
    saturday = (6 - moment.weekday) % 7
    return (moment.year + 1, 1) if saturday > last else (moment.year, week)


def _week_year(moment: _Moment) -> int:
    return _week(moment)[0]


def _of_month(moment: _Moment) -> int:
    first = (moment.weekday - (moment.day - 1)) % 7
    return (moment.day - 1 + first) // 7 + 1


_NUMBERS: Final[dict[str, Callable[[_Moment], int]]] = {
    "d": lambda moment: moment.day,
    "D": lambda moment: moment.of_year,
    "F": lambda moment: (moment.day - 1) // 7 + 1,
    "u": lambda moment: moment.weekday,
    "w": lambda moment: _week(moment)[1],
    "W": _of_month,
    "H": lambda moment: moment.hour,
    "k": lambda moment: moment.hour or 24,
    "K": lambda moment: moment.hour % 12,
    "h": lambda moment: moment.hour % 12 or 12,
    "m": lambda moment: moment.ms // 60_000 % 60,
    "s": lambda moment: moment.ms // 1000 % 60,
    "S": lambda moment: moment.ms % 1000,
}
_TEXTS: Final[dict[str, _Writer]] = {
    "G": lambda moment: _ERAS[moment.year > 0],
    "a": lambda moment: "AM" if moment.hour < 12 else "PM",
    "Z": lambda moment: "+0000",
    "X": lambda moment: "Z",
    "z": lambda moment: "UTC",
    "zzzz": lambda moment: "Coordinated Universal Time",
}
