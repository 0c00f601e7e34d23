"""How long a server asks to be left alone: `Retry-After`, and beside it `x-ratelimit-reset`."""

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

TOO_MANY: Final = 429
_SECONDS: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_EPOCH_FROM: Final = 1_000_000_000.0
"""A number as large as this is no wait (of 31 years), but a time: some servers give it so."""


def asked_wait(status: int, headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that an answer asks to wait, None when it does not. headers: names in lower case. now: epoch seconds.

    `Retry-After` counts first; `x-ratelimit-reset` where it cannot be understood or is not there, and only of a 429:
    servers send it with any answer.
    """
    asked = parse_retry_after(headers.get("retry-after"), now)
    if asked is not None or status != TOO_MANY:
        return asked
    return parse_reset(headers.get("x-ratelimit-reset"), now)


def parse_retry_after(text: str | None, now: float) -> float | None:
    """Seconds that `Retry-After` asks for, given as seconds or as an HTTP date; None for junk. Never negative."""
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def parse_reset(text: str | None, now: float) -> float | None:
    """Seconds until a limit ends, given as seconds or as a time in epoch seconds; None for junk. Never negative."""
    text = (text or "").strip()
    if _SECONDS.fullmatch(text) is None:
        return None
    seconds = float(text)
    return seconds if seconds < _EPOCH_FROM else max(0.0, seconds - now)
