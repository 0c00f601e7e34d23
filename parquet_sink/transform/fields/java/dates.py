"""Dates and times as texts, as Kafka Connect's `Values` writes them: in a form that the value itself chooses."""

from typing import Final, TypeVar

import numpy as np

Whole = TypeVar("Whole", int, np.ndarray)
"""One number, or many at once."""

DAY_MS: Final = 86_400_000
"""Milliseconds."""

_DAYS_TO_1970: Final = 719_468
_ERA: Final = 146_097
"""Days of 400 years."""


def text_of(epoch_ms: int) -> str:
    """Before 2 January 1970 the time of the day alone, at midnight the date alone, else both; in UTC."""
    day, time = divmod(epoch_ms, DAY_MS)
    if epoch_ms < DAY_MS:
        return _time(time)
    date = "{:04d}-{:02d}-{:02d}".format(*civil(day))
    return date if not time else f"{date}T{_time(time)}"


def civil(day: int) -> tuple[int, int, int]:
    """Year, month and day of the month of a day since 1970, in the Gregorian calendar; the year before 1 is 0."""
    era, rest = divmod(day + _DAYS_TO_1970, _ERA)
    year = (rest - rest // 1460 + rest // 36524 - rest // 146_096) // 365
    of_year = rest - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153  # months since March
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def day_of(year: Whole, month: Whole) -> Whole:
    """The first of a month as days since 1970, in the Gregorian calendar. month: from 1."""
    before = year - (month <= 2)
    era = before // 400
    of_era = before - 400 * era
    of_year = (153 * ((month + 9) % 12) + 2) // 5
    found: Whole = era * _ERA + of_era * 365 + of_era // 4 - of_era // 100 + of_year - _DAYS_TO_1970
    return found


def _time(time: int) -> str:
    seconds, millis = divmod(time, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{millis:03d}Z"
