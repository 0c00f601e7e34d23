"""When files end by the clock: the boundaries of each day in a time zone."""

from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from parquet_sink.kafka.settings import FlushSettings

_ONE_MS: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def last_boundary_ms(now_ms: int, flush: FlushSettings) -> int | None:
    """The latest boundary up to now, epoch milliseconds; None where files do not end by the clock.

    Boundaries are midnight of the time zone's clock, and each interval after it as that clock shows it: an hour that is
    repeated when clocks go back has its boundaries twice, and a time that is left out when they go forward comes as
    much later.
    """
    if flush.schedule_interval_ms <= 0:
        return None
    today = _day(now_ms, flush)
    found = today[: bisect_right(today, now_ms)]
    return found[-1] if found else None


def next_boundary_ms(after_ms: int, flush: FlushSettings) -> int | None:
    """The first boundary after a time; None where files do not end by the clock."""
    if flush.schedule_interval_ms <= 0:
        return None
    found = _day(after_ms, flush)
    return found[bisect_right(found, after_ms)]


def _day(at_ms: int, flush: FlushSettings) -> tuple[int, ...]:
    """The boundaries of a day and the days beside it, in order."""
    day = (_EPOCH + at_ms * _ONE_MS).astimezone(ZoneInfo(flush.timezone)).date()
    return _boundaries(day, flush.timezone, flush.schedule_interval_ms)


@lru_cache(maxsize=16)
def _boundaries(day: date, zone: str, interval_ms: int) -> tuple[int, ...]:
    one_day, found = timedelta(days=1), set[int]()
    for midnight in (datetime.combine(day + n * one_day, datetime.min.time(), ZoneInfo(zone)) for n in (-1, 0, 1, 2)):
        for number in range(-(-one_day // (interval_ms * _ONE_MS))):
            found |= _instants(midnight + number * interval_ms * _ONE_MS)
    return tuple(sorted(found))


def _instants(local: datetime) -> set[int]:
    """When a clock shows this: twice where it is set back over it; what it leaves out comes as much later."""
    first, second = ((local.replace(fold=fold).astimezone(UTC) - _EPOCH) // _ONE_MS for fold in (0, 1))
    return {first, max(first, second)}
