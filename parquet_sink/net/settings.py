"""How to leave for a server over HTTP."""

from dataclasses import dataclass
from typing import Literal

from parquet_sink.config.secret import Secret

ProxyType = Literal["HTTP", "SOCKS4", "SOCKS5"]


@dataclass(frozen=True)
class ProxySettings:
    """How to leave for the target. User and password go to the proxy alone."""

    host: str
    port: int
    type: ProxyType = "HTTP"
    username: str | None = None
    password: Secret | None = None


@dataclass(frozen=True)
class ClientCredentials:
    """As whom an access token is asked for, and where (RFC 6749, section 4.4).

    in_body: id and secret go as fields of the form in place of a Basic header.
    """

    token_url: str
    client_id: str
    client_secret: Secret
    scope: str | None = None
    in_body: bool = False
