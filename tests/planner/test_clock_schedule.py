"""When files end by the clock, in any time zone, also when its clocks change."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.planner.clock_schedule import last_boundary_ms, next_boundary_ms

HOUR_MS = 3_600_000
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo"]
ZONES += ["Africa/Cairo", "Asia/Beirut", "Pacific/Apia", "America/Havana"]


def flush(interval_ms: int, zone: str = "UTC") -> FlushSettings:
    """Files end by this clock."""
    return FlushSettings(1_000_000, 1_000, 5_000, interval_ms, zone)


def local(ms: int, zone: str) -> datetime:
    """What the clock shows."""
    return datetime.fromtimestamp(ms / 1000, ZoneInfo(zone))


def between(begin: datetime, hours: float, interval_ms: int) -> list[str]:
    """What the clock shows at all boundaries of a time."""
    zone = str(begin.tzinfo)
    at, end, found = int(begin.timestamp() * 1000) - 1, (begin.astimezone(UTC) + timedelta(hours=hours)), []
    while (at := next_boundary_ms(at, flush(interval_ms, zone)) or 0) < end.timestamp() * 1000:
        found.append(local(at, zone).strftime("%H:%M"))
    return found


def test_without_a_schedule_there_is_no_boundary() -> None:
    """-1 is how Confluent writes that."""
    assert last_boundary_ms(10**12, flush(-1)) is None
    assert next_boundary_ms(10**12, flush(-1)) is None


def test_full_hours_when_clocks_change() -> None:
    """The hour that is left out has none of its own; the one that is repeated ends twice."""
    spring = datetime(2026, 3, 29, 0, tzinfo=ZoneInfo("Europe/Berlin"))
    autumn = datetime(2026, 10, 25, 0, tzinfo=ZoneInfo("Europe/Berlin"))
    assert between(spring, 4, HOUR_MS) == ["00:00", "01:00", "03:00", "04:00"]
    assert between(autumn, 5, HOUR_MS) == ["00:00", "01:00", "02:00", "02:00", "03:00"]


def test_larger_steps_follow_the_clock_of_the_zone() -> None:
    """Every six hours is at 0, 6, 12 and 18 o'clock, also on days of 23 and 25 hours; every day at midnight."""
    for day in (
        datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2026, 10, 25, tzinfo=ZoneInfo("UTC")),
    ):
        assert between(day, 22, 6 * HOUR_MS) == ["00:00", "06:00", "12:00", "18:00"]
    assert between(datetime(2026, 10, 24, tzinfo=ZoneInfo("Europe/Berlin")), 72, 24 * HOUR_MS) == ["00:00"] * 3


def test_a_day_begins_anew_where_the_interval_does_not_divide_it() -> None:
    """Every five hours is at 0, 5, 10, 15, 20 and 0 o'clock."""
    day = datetime(2026, 6, 1, tzinfo=ZoneInfo("UTC"))
    assert between(day, 26, 5 * HOUR_MS) == ["00:00", "05:00", "10:00", "15:00", "20:00", "00:00"]


@given(
    st.sampled_from(ZONES),
    st.integers(0, 4_000_000_000_000),
    st.sampled_from([60_000, 7 * 60_000, 15 * 60_000, HOUR_MS, 5 * HOUR_MS, 24 * HOUR_MS]),
)
def test_boundaries_follow_each_other(zone: str, now_ms: int, interval_ms: int) -> None:
    """The last one is not later than now and the next one is; none is between, and no gap is longer than it may be."""
    by_clock = flush(interval_ms, zone)
    last, following = last_boundary_ms(now_ms, by_clock), next_boundary_ms(now_ms, by_clock)
    assert last is not None
    assert following is not None
    assert last <= now_ms < following
    assert last_boundary_ms(following, by_clock) == following
    assert last_boundary_ms(following - 1, by_clock) == last
    assert next_boundary_ms(last, by_clock) == following
    assert following - last <= interval_ms + 2 * HOUR_MS


@pytest.mark.parametrize("zone", ZONES)
def test_midnight_is_a_boundary_of_every_day(zone: str) -> None:
    """Also where clocks change at midnight: the first moment of the day."""
    by_clock = flush(HOUR_MS, zone)
    at = int(datetime(2011, 1, 1, tzinfo=UTC).timestamp() * 1000)
    hours = [at := next_boundary_ms(at, by_clock) or 0 for _ in range(24 * 400)]
    first = [one for before, one in pairwise(hours) if local(one, zone).date() != local(before, zone).date()]
    assert {local(one, zone).strftime("%M") for one in first} == {"00"}
    assert all(local(one - 1, zone).date() != local(one, zone).date() for one in first)
