"""Timestamps as SimpleDateFormat writes them: each line was seen to come from Java."""

import pytest

from parquet_sink.transform.whole.timestamp_format import NotFormatted, TimestampFormat

LATE = 1_704_067_199_005  # 2023-12-31T23:59:59.005Z, a Sunday


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyyMMdd", "20231231"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "2023-12-31T23:59:59.005Z"),
        ("yy y M MMM MMMM L", "23 2023 12 Dec December 12"),
        ("YYYY-ww W", "2024-01 6"),
        ("D F E EEEE u", "365 5 Sun Sunday 7"),
        ("h a K k H", "11 PM 11 23 23"),
        ("G z zzzz Z X XXX", "AD UTC Coordinated Universal Time +0000 Z Z"),
        ("'o''clock' ''", "o'clock '"),
        ("dddd/SS", "0031/05"),
    ],
)
def test_formats(pattern: str, text: str) -> None:
    """Every letter, in English and UTC."""
    assert TimestampFormat(pattern).text(LATE) == text


def test_before_1970() -> None:
    """Days and the time of the day count down from there."""
    assert TimestampFormat("yyyy-MM-dd HH:mm:ss.SSS EEE").text(-1) == "1969-12-31 23:59:59.999 Wed"


@pytest.mark.parametrize("pattern", ["'open", "b", "QQ", "XXXX"])
def test_what_java_refuses_is_refused(pattern: str) -> None:
    """Unknown letters and texts without an end."""
    with pytest.raises(NotFormatted):
        TimestampFormat(pattern)


@pytest.mark.parametrize(("pattern", "step"), [("yyyyMMdd", 86_400_000), ("yyyyMMddHH", 1), ("'H'", 86_400_000)])
def test_a_format_of_days_is_the_same_all_day(pattern: str, step: int) -> None:
    """Only formats with a letter for the time of the day look at it."""
    assert TimestampFormat(pattern).step_ms == step
