"""The Gregorian and the Julian calendar, both without an end: days since 1 January 1970 to dates, and back.

Years are counted through: the one before 1 is 0. Java's calendar is the Julian one before `CUTOVER`.
"""

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
