"""Moments as options take them: ISO 8601, epoch milliseconds, or how long ago."""

import argparse
import re
import time
from datetime import UTC, datetime
from typing import Final

HELP: Final = "2026-03-01T06:00Z (without a zone: UTC), epoch milliseconds, or how long ago: 90s, 10m, 2h, 3d"
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGO: Final = re.compile(r"(\d{1,9})([smhd])")
_LATEST_MS: Final = 253_402_300_799_999


def moment(text: str) -> int:
    """Epoch milliseconds. Raises argparse.ArgumentTypeError with the forms that are understood."""
    if text.isascii() and text.isdigit() and len(text) >= 10 and int(text) <= _LATEST_MS:
        return int(text)
    if (ago := _AGO.fullmatch(text)) is not None:
        return max(int(time.time() * 1000) - int(ago[1]) * _UNIT_MS[ago[2]], 0)
    try:
        found = datetime.fromisoformat(text)
        at_s = (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is no time; give {HELP}") from None
    if at_s < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is before 1970; Kafka's timestamps begin there")
    return round(at_s * 1000)


def moment_text(at_ms: int) -> str:
    """ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
