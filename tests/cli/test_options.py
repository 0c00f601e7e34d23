"""Times as options take them."""

import argparse

import pytest

from parquet_sink.cli import options
from parquet_sink.cli.options import timestamp
from tests.factories import Clock


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01T06:00:00Z", 1_772_344_800_000),
        ("2026-03-01T06:00", 1_772_344_800_000),
        ("2026-03-01T07:00:00.250+01:00", 1_772_344_800_250),
        ("2026-03-01", 1_772_323_200_000),
        ("1772344800000", 1_772_344_800_000),
        ("1970-01-01", 0),
    ],
)
def test_moments(text: str, expected: int) -> None:
    """ISO 8601, where nothing else is said in UTC, or epoch milliseconds."""
    assert timestamp(text) == expected


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("2h", 7_200), ("3d", 259_200)])
def test_ago(text: str, seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long ago, and never before Kafka's timestamps begin."""
    monkeypatch.setattr(options, "time", Clock(1_000_000.0))
    assert timestamp(text) == (1_000_000 - seconds) * 1_000
    assert timestamp("99999d") == 0


@pytest.mark.parametrize(
    "text", ["", "yesterday", "12", "-5m", "5M", "1h30m", "2026-13-01", "99999999999999999", "1969-01-01"]
)
def test_what_is_no_time(text: str) -> None:
    """It is told with the forms that are understood."""
    with pytest.raises(argparse.ArgumentTypeError):
        timestamp(text)
