"""Converts days since 1 January 1970 to dates of the Gregorian and the Julian calendar, and texts of ISO 8601.

Years are counted through: the one before 1 is 0. Java's calendar is the Julian one before `CUTOVER`. Texts are read as
Java's SimpleDateFormat reads them: leniently, with months and hours that roll over.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import numpy as np

Whole = TypeVar("Whole", int, np.ndarray)
"""One number, or many at once."""

DAY_MS: Final = 86_400_000
CUTOVER: Final = -141_427
"""Days since 1970 of 15 October 1582, the first day of the Gregorian calendar."""

CUTOVER_YEAR: Final = 1582

_DAYS_TO_1970: Final = 719_468
_ERA: Final = 146_097
"""Days of 400 years."""

_JULIAN_DAY: Final = 2_440_588
"""The Julian day number of 1 January 1970."""


def gregorian(day: int) -> tuple[int, int, int]:
    """Year, month and day of the month."""
    era, rest = divmod(day + _DAYS_TO_1970, _ERA)
    year = (rest - rest // 1460 + rest // 36524 - rest // 146_096) // 365
    of_year = rest - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153  # months since March
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def julian(day: int) -> tuple[int, int, int]:
    """Year, month and day of the month."""
    count = day + _JULIAN_DAY + 32_082
    years = (4 * count + 3) // 1461
    rest = count - 1461 * years // 4
    march = (5 * rest + 2) // 153
    return years - 4800 + march // 10, march + 3 - 12 * (march // 10), rest - (153 * march + 2) // 5 + 1


def gregorian_month(year: Whole, month: Whole) -> Whole:
    """The first of a month as a day. month: from 1 to 12."""
    before = year - (month <= 2)
    era = before // 400
    of_era = before - 400 * era
    of_year = (153 * ((month + 9) % 12) + 2) // 5
    found: Whole = era * _ERA + of_era * 365 + of_era // 4 - of_era // 100 + of_year - _DAYS_TO_1970
    return found


def julian_month(year: int, month: int) -> int:
    """Likewise."""
    early = month <= 2
    march, years = month + 12 * early - 3, year - early
    return (153 * march + 2) // 5 + 365 * years + years // 4 + 1_721_118 - _JULIAN_DAY


_NUMBER = r"[ \t]*(-?\d{1,9})"
_DATE = rf"{_NUMBER}-{_NUMBER}-{_NUMBER}"
_TIME = rf"{_NUMBER}:{_NUMBER}:{_NUMBER}\.{_NUMBER}Z"


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
    is_julian = year < CUTOVER_YEAR  # as it is written, before months roll over
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    found = gregorian_month(year, month) + day - 1
    return julian_month(year, month) + day - 1 if is_julian or found < CUTOVER else found


def text(kind: str, ms: int) -> str:
    """Epoch milliseconds as such a text: the reverse of `parsed`.

    Years are those of ISO 8601: 0000 before 0001, -0001 before that. A time may have 24 hours and more.
    """
    days, rest = divmod(ms, DAY_MS) if kind != "time" or ms < 0 else (0, ms)
    seconds, millisecond = divmod(rest, 1000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{millisecond:03}Z"
    if kind == "time":
        return clock
    year, month, day = gregorian(days)
    date = f"{'-' if year < 0 else ''}{abs(year):04}-{month:02}-{day:02}"
    return date if kind == "date" else f"{date}T{clock}"


def chosen_text(ms: int) -> str:
    """As Kafka Connect's `Values` writes epoch milliseconds, in a form that the value itself chooses; in UTC.

    Before 2 January 1970 the time of the day alone, at midnight the date alone, else both.
    """
    if ms < DAY_MS:
        return text("time", ms % DAY_MS)
    return text("timestamp" if ms % DAY_MS else "date", ms)
