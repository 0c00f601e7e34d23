"""Values of asking for an access token: what came, and why none did."""

from dataclasses import dataclass
from enum import StrEnum

from parquet_sink.config.secret import Secret


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
