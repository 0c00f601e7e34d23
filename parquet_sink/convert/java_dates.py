"""Dates and times of ISO 8601 as Java's SimpleDateFormat reads them: leniently, with months and hours that roll over.

The calendar is Java's, too: Julian before 15 October 1582.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

DAY_MS: Final = 86_400_000

_NUMBER = r"[ \t]*(-?\d{1,9})"
_DATE = rf"{_NUMBER}-{_NUMBER}-{_NUMBER}"
_TIME = rf"{_NUMBER}:{_NUMBER}:{_NUMBER}\.{_NUMBER}Z"
_EPOCH_ORDINAL: Final = 719_163
_CUTOVER_YEAR: Final = 1582
_CUTOVER: Final = 577_736
"""The first day of the Gregorian calendar, as an ordinal of the proleptic one."""
_JULIAN_SHIFT: Final = -2
"""Ordinal of 1 January of the year 1 of the Julian calendar, less 1, in days of the Gregorian one."""


def _date(parts: list[int]) -> int:
    return _days(*parts) * DAY_MS


def _time(parts: list[int]) -> int:
    hour, minute, second, millisecond = parts
    return ((hour * 60 + minute) * 60 + second) * 1000 + millisecond


_PATTERNS: Final[Mapping[str, tuple[re.Pattern[str], Callable[[list[int]], int]]]] = {
    "date": (re.compile(_DATE), _date),
    "time": (re.compile(_TIME), _time),
    "timestamp": (re.compile(rf"{_DATE}T{_TIME}"), lambda parts: _date(parts[:3]) + _time(parts[3:])),
}


def parsed(kind: str, text: str) -> int | None:
    """Epoch milliseconds of a text that begins with a date, time or timestamp (UTC); None when it does not.

    kind: `date` (yyyy-MM-dd), `time` (HH:mm:ss.SSS'Z', of 1 January 1970) or `timestamp`, with a T between.
    """
    pattern, to_ms = _PATTERNS[kind]
    found = pattern.match(text)
    return None if found is None else to_ms([int(part) for part in found.groups()])


def _days(year: int, month: int, day: int) -> int:
    """Days since 1 January 1970; month and day may be beyond their ranges."""
    is_julian = year < _CUTOVER_YEAR  # as it is written, before months roll over
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    gregorian = _ordinal(year, month, day, julian=False)
    if is_julian or gregorian < _CUTOVER:
        return _ordinal(year, month, day, julian=True) - _EPOCH_ORDINAL
    return gregorian - _EPOCH_ORDINAL


_BEFORE_MONTH: Final = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


def _ordinal(year: int, month: int, day: int, *, julian: bool) -> int:
    """Days since the day before 1 January of the year 1 of the Gregorian calendar."""
    past = year - 1
    leap = year % 4 == 0 and (julian or year % 100 != 0 or year % 400 == 0)
    days = past * 365 + past // 4 + _BEFORE_MONTH[month - 1] + (leap and month > 2) + day
    return days + _JULIAN_SHIFT if julian else days - past // 100 + past // 400


def text(kind: str, ms: int) -> str:
    """Epoch milliseconds as such a text: the reverse of `parsed`, with the years of ISO 8601: 0000 before 0001, -0001 before that.

    A time of the day may have 24 hours and more, as it was read.
    """
    days, rest = divmod(ms, DAY_MS) if kind != "time" or ms < 0 else (0, ms)
    seconds, millisecond = divmod(rest, 1000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{millisecond:03}Z"
    if kind == "time":
        return clock
    year, month, day = civil(days)
    date = f"{'-' if year < 0 else ''}{abs(year):04}-{month:02}-{day:02}"
    return date if kind == "date" else f"{date}T{clock}"


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of the Gregorian calendar, of days since 1 January 1970."""
    cycle, rest = divmod(days + _EPOCH_ORDINAL - 1 + _FROM_MARCH, 146_097)
    year = (rest - rest // 1460 + rest // 36_524 - rest // 146_096) // 365
    rest -= 365 * year + year // 4 - year // 100
    month = (5 * rest + 2) // 153
    day = rest - (153 * month + 2) // 5 + 1
    return year + cycle * 400 + (month >= 10), month + (3 if month < 10 else -9), day


_FROM_MARCH: Final = 306
"""Days from 1 March of the year 0 to 1 January of the year 1."""
