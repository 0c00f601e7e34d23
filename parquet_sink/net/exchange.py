"""Values of one HTTP exchange: its limits, what came back, and why nothing did."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


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
