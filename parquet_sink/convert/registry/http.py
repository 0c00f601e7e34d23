"""HTTP to one address of a schema registry: Confluent's client over a session with bounds that the client lacks.

The client of confluent-kafka 2.16, left to itself, waits without an end, reads answers of any size (gzip'd ones, too),
takes proxies from the environment, keeps every schema for ever, takes a bearer token only together with the id of a
Confluent Cloud cluster, and tries one address over and over, pausing, before it turns to the next. Here it gets a
session that has none of that, and is told not to retry: `registry` does.
"""

import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import httpcore2
import httpx2
from confluent_kafka.schema_registry import SchemaRegistryClient

from parquet_sink.config.secret import Secret
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.net import pem

CONNECT_S: Final = 10.0
"""So that one of several addresses that swallows packets does not use up the time for the others."""
MOST_ANSWER_BYTES: Final = 8 * 1024 * 1024


class BadAnswer(Exception):
    """An answer that no schema registry gives; the text says what is wrong with it."""


@dataclass(frozen=True)
class Address:
    """Where a registry is, without credentials, and the credentials that its URL or the settings have for it."""

    url: str
    credentials: tuple[str, Secret] | None = None

    @classmethod
    def of(cls, url: str, settings: RegistrySettings) -> "Address":
        """Raises InvalidConfiguration for what is no URL."""
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError as error:
            raise _no_url() from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise _no_url()
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        place = host if port is None else f"{host}:{port}"
        shown = urlunsplit(SplitResult(parts.scheme, place, parts.path.rstrip("/"), "", ""))
        return cls(shown, _credentials(parts, settings))

    @property
    def secure(self) -> bool:
        """Whether it is reached by https."""
        return self.url.startswith("https:")


def _no_url() -> InvalidConfiguration:
    return InvalidConfiguration(["Invalid [schema.registry.url]. Each must be http:// or https://, a host and a path."])


def _credentials(parts: SplitResult, settings: RegistrySettings) -> tuple[str, Secret] | None:
    if settings.username is not None:
        return settings.username, settings.password or Secret("")
    if parts.username is not None:
        return unquote(parts.username), Secret(unquote(parts.password or ""))
    return None


class Deadline:
    """Until when everything that a session does must be done; what comes later fails as a timeout."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._until = clock, 0.0

    def set(self, seconds: float) -> None:
        self._until = self._clock() + seconds

    def left(self, wanted: float | None = None) -> float:
        """Seconds that a step may take. Raises httpcore2.ReadTimeout when the time is over."""
        left = self._until - self._clock()
        if left <= 0:
            raise httpcore2.ReadTimeout("the time is over")
        return left if wanted is None else min(left, wanted)


class _Stream(httpcore2.NetworkStream):
    """A connection whose every step ends with the deadline, so that an answer in drops does not last."""

    def __init__(self, inner: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._inner, self._deadline = inner, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._deadline.left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, self._deadline.left(timeout))
        return _Stream(inner, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore2.SyncBackend):
    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        left = self._deadline.left(timeout)
        return _Stream(super().connect_tcp(host, port, left, local_address, socket_options), self._deadline)


class _Capped(httpx2.SyncByteStream):
    """The bytes of an answer, up to a bound."""

    def __init__(self, inner: httpx2.SyncByteStream) -> None:
        self._inner = inner

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for part in self._inner:
            size += len(part)
            if size > MOST_ANSWER_BYTES:
                raise BadAnswer(f"an answer of more than {MOST_ANSWER_BYTES // 1024**2} MiB")
            yield part

    def close(self) -> None:
        self._inner.close()


class _Transport(httpx2.HTTPTransport):
    """Bounds time and size of each exchange; takes no proxy from the environment; keeps no idle connection.

    A schema is asked for once, so a connection would idle for months, for each worker and connector.
    """

    def __init__(self, context: ssl.SSLContext, deadline: Deadline) -> None:
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore2.ConnectionPool(
            ssl_context=context, max_keepalive_connections=0, network_backend=_Backend(deadline)
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = super().handle_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            response.close()
            raise BadAnswer("a compressed answer, which was not asked for")
        assert isinstance(response.stream, httpx2.SyncByteStream)
        response.stream = _Capped(response.stream)
        return response


def open_client(
    address: Address, settings: RegistrySettings, context: ssl.SSLContext, deadline: Deadline
) -> SchemaRegistryClient:
    """A client of one address, that asks once and keeps to the deadline. Raises InvalidConfiguration."""
    client = SchemaRegistryClient({"url": address.url, "max.retries": 0})
    headers = {"Accept-Encoding": "identity"}
    auth = None
    if settings.bearer_token is not None:
        headers["Authorization"] = f"Bearer {_token(settings.bearer_token)}"
    elif address.credentials is not None:
        auth = httpx2.BasicAuth(address.credentials[0], address.credentials[1].reveal())
    seconds = settings.timeout_ms / 1000
    client._rest_client.session.close()  # noqa: SLF001 -- the client has no other door for a transport
    client._rest_client.session = httpx2.Client(  # noqa: SLF001
        transport=_Transport(context, deadline),
        auth=auth,
        headers=headers,
        timeout=httpx2.Timeout(seconds, connect=min(seconds, CONNECT_S)),
        trust_env=False,
        follow_redirects=False,
    )
    return client


def _token(token: Secret) -> str:
    text = token.reveal()
    if not text or not all("!" <= character <= "~" for character in text):
        raise InvalidConfiguration(["Invalid [bearer.auth.token]. It must be printable ASCII without blanks."])
    return text


def tls_context(settings: RegistrySettings) -> ssl.SSLContext:
    """A verifying context: the CA of the settings alone, else the system's; with the client's certificate, if any.

    Raises InvalidConfiguration when a file cannot be read.
    """
    context = _trusting(settings.ca_file)
    if settings.certificate_file is not None:
        password = settings.key_password.reveal() if settings.key_password else ""
        try:  # a password, be it empty: OpenSSL would ask for it on the terminal
            context.load_cert_chain(settings.certificate_file, settings.key_file, password)
        except (OSError, ValueError) as error:
            files = " and ".join(filter(None, (settings.certificate_file, settings.key_file)))
            raise _unreadable(
                "schema.registry.ssl.keystore.location",
                files,
                pem.why(error, "a certificate with its key", locked=True),
            ) from error
    return context


def _trusting(ca_file: str | None) -> ssl.SSLContext:
    if ca_file is None:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(ca_file)
    except (OSError, ValueError) as error:
        raise _unreadable("schema.registry.ssl.truststore.location", ca_file, pem.why(error, "certificates")) from error
    return context


def _unreadable(key: str, files: str, cause: str) -> InvalidConfiguration:
    return InvalidConfiguration([f"Invalid [{key}]. {files} cannot be used: {cause}. Correct it."])
