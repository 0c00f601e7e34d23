"""Values of one HTTP exchange: its limits, what came back, why nothing did; and of asking for an access token."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Final

from parquet_sink.config.secret import Secret

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


class FailureKind(StrEnum):
    """Why there is no answer.

    Up to CONNECT_TIMEOUT, and with TLS and both of the proxy, the server has certainly seen nothing of the body.
    """

    CONNECT = "connect"
    CONNECT_TIMEOUT = "connect timeout"
    PROXY = "proxy"  # it could not reach the server, or could not be reached
    PROXY_REFUSED = "proxy refused"
    TLS = "tls"  # certificate or version are not acceptable: it would fail again
    BROKEN = "broken"
    NO_ANSWER = "no answer"  # in time


class RequestFailed(Exception):
    """An exchange that ended without an answer. detail: what the system or the library said, unredacted."""

    def __init__(self, kind: FailureKind, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail


@dataclass(frozen=True)
class Limits:
    """Seconds for the whole exchange, for each step of connecting, and from the request's end to the answer's end.

    answer_bytes: how much of an answer's body is read.
    """

    total_seconds: float
    connect_seconds: float
    answer_seconds: float
    answer_bytes: int


@dataclass(frozen=True)
class Answer:
    """Status, headers (found by names in lower case), and what was read of the body.

    broken: why the body ended early. too_long: it goes on after what was read.
    """

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    broken: FailureKind | None = None
    too_long: bool = False

    @property
    def complete(self) -> bool:
        return self.broken is None and not self.too_long


class Blame(StrEnum):
    """What must change before another attempt can do better."""

    CLIENT = "client"  # id, secret, or how they are sent
    SCOPE = "scope"
    ADDRESS = "address"
    TLS = "TLS"
    PROXY = "proxy"
    NETWORK = "network"
    SERVER = "server"


class TokenFailed(Exception):
    """No token came. cause: the middle of a sentence, without secrets. passing: it may come at another attempt.

    wait_s: how long the server asks to be left alone.
    """

    def __init__(self, cause: str, blame: Blame, *, passing: bool, wait_s: float | None = None) -> None:
        super().__init__(cause)
        self.cause, self.blame, self.passing, self.wait_s = cause, blame, passing, wait_s


@dataclass(frozen=True)
class AccessToken:
    """A token, and the seconds it lives, None when its server does not say."""

    value: Secret
    lives_s: float | None = None
