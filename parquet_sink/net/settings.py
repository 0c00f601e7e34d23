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
