"""Java's GregorianCalendar in UTC: Julian before 15 October 1582, and lenient: fields may be beyond their ranges."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from parquet_sink.convert import calendars
from parquet_sink.convert.calendars import CUTOVER, CUTOVER_YEAR, DAY_MS, gregorian_month, julian_month
from parquet_sink.transform.fields.java.numbers import wrapped

_NOON: Final = 12


@dataclass(frozen=True)
class Moment:
    """An instant by its fields. year: 1 and more, before that also, in the era before; month: from 1."""

    is_ad: bool
    year: int
    month: int
    day: int
    of_year: int
    weekday: int
    time: int
    """weekday: 1 for Monday to 7. time: milliseconds of the day."""


def moment(epoch_ms: int) -> Moment:
    """The fields of an instant."""
    day, time = divmod(epoch_ms, DAY_MS)
    year, month, of_month = calendars.gregorian(day) if day >= CUTOVER else calendars.julian(day)
    first = _first(year, 1, julian=year <= CUTOVER_YEAR)
    shown = year if year > 0 else 1 - year
    return Moment(year > 0, shown, month, of_month, day - first + 1, (day + 3) % 7 + 1, time)


def week(at: Moment) -> tuple[int, int]:
    """Week year and week of the year: weeks begin on Sunday, and the first one has 1 January in it."""
    year = at.year if at.is_ad else 1 - at.year
    days = _first(year + 1, 1, julian=year < CUTOVER_YEAR) - _first(year, 1, julian=year <= CUTOVER_YEAR)
    saturday = (6 - at.weekday) % 7
    if saturday > days - at.of_year:
        return year + 1, 1
    first_weekday = (at.weekday - (at.of_year - 1)) % 7
    return year, (at.of_year - 1 + first_weekday) // 7 + 1


def week_of_month(at: Moment) -> int:
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
