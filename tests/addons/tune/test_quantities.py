"""Durations, sizes, rates and bursts are read as people write them, and written as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.tune import quantities as q
from tests.messages import saying


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("30s", 30), ("1.5h", 5400), ("5m", 300), ("5min", 300), (" 2 d ", 172_800), ("0.5s", 0.5)],
)
def test_durations(text: str, seconds: float) -> None:
    """A number and its unit."""
    assert q.duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "30", "0s", "-1s", "1 week", "1e3s", "9999999d", "s"])
def test_what_is_no_duration(text: str) -> None:
    """A number without a unit, nothing, or 0 is refused with an example."""
    with pytest.raises(ValueError, match=saying(repr(text), "not a duration", "500ms, 30s")):
        q.duration_s(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("300", 300), ("300B", 300), ("10MB", 10_000_000), ("10mb", 10_000_000), ("1.5 kB", 1_500), ("2KiB", 2_048)],
)
def test_sizes(text: str, size: int) -> None:
    """Bytes, or thousands of them, or powers of 1024 where that is said."""
    assert q.size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "10 XB", "-1", "MB", "10m", "9999999999999GB"])
def test_what_is_no_size(text: str) -> None:
    """Other text is refused with an example."""
    with pytest.raises(ValueError, match=saying(repr(text), "not a size", "300, 512KiB")):
        q.size_bytes(text)


@pytest.mark.parametrize(
    ("text", "rate"), [("500/s", 500), ("20k/s", 20_000), ("300/min", 5), ("40/h", 40 / 3600), ("0.5M/d", 5e5 / 86_400)]
)
def test_rates(text: str, rate: float) -> None:
    """Records by a time."""
    assert q.rate_per_s(text) == pytest.approx(rate)


@pytest.mark.parametrize("text", ["500", "0/s", "/s", "500/week", "500 s"])
def test_what_is_no_rate(text: str) -> None:
    """Other text is refused with an example."""
    with pytest.raises(ValueError, match=saying(repr(text), "not a rate", "500/s")):
        q.rate_per_s(text)


def test_bursts() -> None:
    """Records, how often, and within how long; a second unless it is said."""
    assert q.bursts("20000/5m:10s") == q.Bursts(20_000, 300.0, 10.0)
    assert q.bursts("600/1m") == q.Bursts(600, 60.0, 1.0)
    assert q.bursts("600/1m").per_second == 10


@pytest.mark.parametrize("text", ["600", "0/1m", "600/1", "a/1m", "600/1m:"])
def test_what_are_no_bursts(text: str) -> None:
    """Other text is refused with the form and an example."""
    with pytest.raises(ValueError, match=saying(repr(text), "RECORDS/EVERY", "20000/5m")):
        q.bursts(text)


def test_bursts_that_would_meet() -> None:
    """One that would not end before the next is none."""
    with pytest.raises(ValueError, match=saying("'600/1m:2m'", "takes 2m", "cannot come each 1m")):
        q.bursts("600/1m:2m")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0.0004, "0 ms"), (0.85, "850 ms"), (0.9999, "1 s"), (1.234, "1.23 s"), (30, "30 s"), (100, "100 s")),
        *((300, "5 min"), (7_200, "2 h"), (172_800, "2 d"), (86_400 * 200, "200 d")),
    ],
)
def test_durations_in_words(seconds: float, text: str) -> None:
    """The unit in which it is a number that one can take in."""
    assert q.duration_text(seconds) == text


@given(st.floats(0.001, 1e8))
def test_durations_come_back(seconds: float) -> None:
    """What is written of a duration is read as about the same."""
    assert q.duration_s(q.duration_text(seconds).replace(",", "")) == pytest.approx(seconds, rel=0.01, abs=0.0006)


def test_other_words() -> None:
    """Sizes, counts and rates for people."""
    assert [q.size_text(n) for n in (12, 1_234, 10_000_000, 2.5e9)] == ["12 B", "1.23 kB", "10 MB", "2.5 GB"]
    assert [q.count_text(n) for n in (0, 0.253, 3.5, 40.4, 12_000)] == ["0", "0.25", "3.5", "40", "12,000"]
    rates = [q.rate_text(n) for n in (500, 0.5, 0.01, 0.0001)]
    assert rates == ["500 a second", "30 a minute", "36 an hour", "8.6 a day"]
