"""What stands in the `Authorization` header of a push target: the configured key, or an access token.

A token is kept by the process for all connectors with the same credentials and the same way to the endpoint, renewed
before it ends, and asked for anew once when the target answers 401.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from parquet_sink.config.secret import Secret
from parquet_sink.net.exchange import Answer
from parquet_sink.net.session import HttpSession, proxy_secrets
from parquet_sink.net.settings import ClientCredentials, ProxySettings
from parquet_sink.net.tls import Authorities, target_authorities, tls_context
from parquet_sink.net.tokens import TokenEndpoint, TokenSource
from parquet_sink.process.per_process import PerProcess
from parquet_sink.targets.push.settings import PushSettings

UNAUTHORIZED: Final = 401


class Authorization(Protocol):
    """Gives the header's value; threads may share it. secrets: what may not be in a message."""

    secrets: tuple[str, ...]

    def header(self, seconds: float) -> str:
        """The value to send, within so many seconds. Raises TokenFailed."""
        ...

    def renew(self, header: str) -> bool:
        """The target does not take this value: whether another one can be had."""
        ...


class FixedKey:
    """The key of the connector's file."""

    def __init__(self, key: Secret) -> None:
        self._key = key
        self.secrets: tuple[str, ...] = (key.reveal(),)

    def header(self, seconds: float) -> str:
        return self._key.reveal()

    def renew(self, header: str) -> bool:
        return False


class AccessTokens:
    """Tokens of one client. secrets: what tokens are asked for with."""

    def __init__(self, source: TokenSource, secrets: tuple[str, ...]) -> None:
        self._source, self.secrets = source, secrets

    def header(self, seconds: float) -> str:
        return f"Bearer {self._source.get(seconds).value.reveal()}"

    def renew(self, header: str) -> bool:
        self._source.reject(Secret(header.removeprefix("Bearer ")))
        return True


def authorization_of(settings: PushSettings, environment: Mapping[str, str]) -> Authorization:
    """What a target's requests are signed with. Raises InvalidConfiguration when the CA file cannot be read."""
    if isinstance(settings.authorization, Secret):
        return FixedKey(settings.authorization)
    way = _Way(
        settings.authorization,
        target_authorities(settings.ca_file, environment),
        settings.proxy,
        settings.connect_timeout_ms / 1000,
        settings.response_timeout_ms / 1000,
    )
    return _kept.get(way)


def signed(
    authorization: Authorization,
    seconds: float,
    send: Callable[[str, float], Answer],
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Answer, str]:
    """What `send(header, seconds left)` gives, with the header; once more with another one when that is not taken.

    Raises TokenFailed, and what `send` raises.
    """
    end = clock() + seconds
    header = authorization.header(seconds)
    answer = send(header, end - clock())
    if answer.status == UNAUTHORIZED and authorization.renew(header):
        header = authorization.header(max(0.0, end - clock()))
        answer = send(header, max(0.0, end - clock()))
    return answer, header


@dataclass(frozen=True)
class _Way:
    """Who asks for tokens, and how the endpoint is reached."""

    client: ClientCredentials
    authorities: Authorities | None
    proxy: ProxySettings | None
    connect_s: float
    answer_s: float


def _open(way: _Way) -> AccessTokens:
    http = HttpSession(tls_context(way.authorities), way.proxy)
    endpoint = TokenEndpoint(way.client, http, way.connect_s, way.answer_s, hidden=proxy_secrets(way.proxy))
    return AccessTokens(TokenSource(endpoint.ask), endpoint.secrets)


_kept: Final = PerProcess(_open)
