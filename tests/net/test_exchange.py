"""How long a server asks to be left alone."""

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.net.exchange import asked_wait, parse_reset, parse_retry_after

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        (" 120 ", 120),
        ("9" * 400, 999_999_999),
        (format_datetime(NOON.replace(minute=2), usegmt=True), 120),
        (format_datetime(NOON.replace(hour=11), usegmt=True), 0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("٣", None),
        ("Thu, 99 Jan 2026 12:00:00 GMT", None),
    ],
)
def test_parse_retry_after(text: str | None, seconds: float | None) -> None:
    """Seconds and HTTP dates are understood, junk is ignored."""
    assert parse_retry_after(text, NOON.timestamp()) == seconds


@given(st.text())
def test_junk_in_retry_after_is_harmless(text: str) -> None:
    """No text raises or gives a negative wait."""
    assert (parse_retry_after(text, 0.0) or 0) >= 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        (" 30 ", 30),
        ("0.25", 0.25),
        (str(int(NOON.timestamp()) + 90), 90),
        (str(int(NOON.timestamp()) - 90), 0),
        ("86400", 86_400),
        ("9" * 400, None),
        ("-5", None),
        ("1e3", None),
        ("30, 60", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("٣", None),
    ],
)
def test_parse_reset(text: str | None, seconds: float | None) -> None:
    """Seconds to wait, or the time in epoch seconds, are understood; junk is ignored."""
    assert parse_reset(text, NOON.timestamp()) == seconds


@given(st.text())
def test_junk_in_a_reset_is_harmless(text: str) -> None:
    """No text raises or gives a negative wait."""
    assert (parse_reset(text, 0.0) or 0) >= 0


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {"retry-after": "5", "x-ratelimit-reset": "3600"}, 5),
        (429, {"retry-after": "soon", "x-ratelimit-reset": "7"}, 7),
        (429, {"x-ratelimit-reset": "7"}, 7),
        (429, {"x-ratelimit-remaining": "0"}, None),
        (503, {"x-ratelimit-reset": "7"}, None),
        (503, {"retry-after": "5", "x-ratelimit-reset": "7"}, 5),
    ],
)
def test_which_header_counts(status: int, headers: dict[str, str], seconds: float | None) -> None:
    """`Retry-After` before `x-ratelimit-reset`, which means something only where there were too many requests."""
    assert asked_wait(status, headers, NOON.timestamp()) == seconds
