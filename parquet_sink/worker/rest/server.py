"""The server around the application: uvicorn in a thread of its own, one for each kind of address."""

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from threading import Thread
from typing import Any, Final

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from parquet_sink.errors import SetupError
from parquet_sink.net.listening import BACKLOG, listen
from parquet_sink.worker.rest.authentication import SUBJECT
from parquet_sink.worker.rest.tls import server_context
from parquet_sink.worker_config.rest.roles import Subject
from parquet_sink.worker_config.rest.settings import RestSettings, TlsSettings
from parquet_sink.worker_config.rest.values import Address


@dataclass(frozen=True)
class Listening:
    """Sockets in the order of the addresses. settings: with the port that was found in place of 0."""

    settings: RestSettings
    sockets: tuple[socket.socket, ...]
    admin_sockets: tuple[socket.socket, ...] = ()

    def close(self) -> None:
        """Gives the addresses back. May be called more than once."""
        for one in (*self.sockets, *self.admin_sockets):
            one.close()


def open_listeners(settings: RestSettings) -> Listening:
    """Takes all addresses, or none. Raises SetupError that names the key, the address and the cure."""
    with ExitStack() as taken:
        plain = [taken.enter_context(_listen("listeners", one)) for one in settings.listeners]
        admin = [taken.enter_context(_listen("admin.listeners", one)) for one in settings.admin or ()]
        taken.pop_all()
    found = replace(
        settings,
        listeners=_with_ports(settings.listeners, plain),
        admin=None if settings.admin is None else _with_ports(settings.admin, admin),
    )
    return Listening(found, tuple(plain), tuple(admin))


def _listen(key: str, address: Address) -> socket.socket:
    try:
        return listen(address.host, address.port)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SetupError(
            f"Invalid [{key}]. {address} cannot be listened on: {reason}. Name a free port, or 0 for any, on a host of "
            "this machine."
        ) from error


def _with_ports(addresses: Sequence[Address], sockets: Sequence[socket.socket]) -> tuple[Address, ...]:
    return tuple(replace(address, port=one.getsockname()[1]) for address, one in zip(addresses, sockets, strict=True))


GRACE_S: Final = 5
"""What requests in progress have when the server stops."""
START_S: Final = 10.0
MOST_CONNECTIONS: Final = 512
"""With more, requests are refused and may come again."""
MOST_HEAD_BYTES: Final = 32 * 1024
HEAD_S: Final = 10.0
"""How long a client may take to send the head of a request: else half-sent ones take all connections for good."""
IDLE_S: Final = 30
"""Between two requests."""
_LOOK_S: Final = 0.02
log = logging.getLogger(__name__)
Served = tuple[uvicorn.Server, list[socket.socket]]


class RestServer:
    """Serves from `start` to `stop`, which closes the addresses, too. admin: what those of `admin.listeners` have."""

    def __init__(self, app: ASGIApp, admin: ASGIApp, listening: Listening) -> None:
        self._app, self._admin, self._listening = app, admin, listening
        self._served: list[Served] = []
        self._thread: Thread | None = None

    @property
    def addresses(self) -> tuple[Address, ...]:
        return self._listening.settings.listeners

    def start(self) -> None:
        """Returns when connections are taken. Raises SetupError that names the key; then nothing is taken."""
        settings = self._listening.settings
        try:
            self._served = [*_servers(self._app, settings.listeners, self._listening.sockets, settings.tls)]
            if settings.admin:
                sockets = self._listening.admin_sockets
                self._served += _servers(self._admin, settings.admin, sockets, settings.admin_tls)
        except BaseException:
            self._listening.close()
            raise
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        self._thread = Thread(target=self._run, name="rest", daemon=True)
        self._thread.start()
        if not self._is_up():
            self.stop()
            raise SetupError("The REST API did not start; the log has the cause.")
        for one in (*self.addresses, *(settings.admin or ())):
            log.info("REST API at %s", one)

    def _is_up(self) -> bool:
        """Whether all take connections within START_S."""
        until = time.monotonic() + START_S
        while not all(server.started for server, _ in self._served):
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_S)
        return True

    def stop(self) -> None:
        """Answers what is in progress, for some seconds, and gives the addresses back. May be called twice."""
        for server, _ in self._served:
            server.should_exit = True
        if self._thread is not None:
            self._thread.join(GRACE_S + START_S)
        self._listening.close()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        serving = (server.serve(sockets) for server, sockets in self._served)
        for outcome in await asyncio.gather(*serving, return_exceptions=True):
            if isinstance(outcome, BaseException):
                log.error("REST API: a listener ended: %s", outcome)


class _Protocol(H11Protocol):
    """HTTP/1.1 that tells the application whose certificate a connection showed, and bounds the time of each head."""

    _head_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        secured = transport.get_extra_info("ssl_object")
        if secured is not None:
            self.app_state = {**self.app_state, SUBJECT: _subject(secured.getpeercert())}
        self._head_deadline = self.loop.call_later(HEAD_S, self._close_without_head)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._forget_head_deadline()
        elif self._head_deadline is None:
            self._head_deadline = self.loop.call_later(HEAD_S, self._close_without_head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head_deadline()
        super().connection_lost(exc)

    def _forget_head_deadline(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _close_without_head(self) -> None:
        if not self.transport.is_closing():
            log.debug("REST API: a connection was closed, as the head of its request did not come in %g s", HEAD_S)
            self.transport.close()


def _subject(certificate: Mapping[str, Any] | None) -> Subject:
    """Attributes of its subject, one after the other."""
    return tuple(pair for parts in (certificate or {}).get("subject", ()) for pair in parts)


def _server(app: ASGIApp, context: ssl.SSLContext | None) -> uvicorn.Server:
    """Not started yet."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=GRACE_S,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
    )
    config.load()
    config.ssl = context
    return uvicorn.Server(config)


def _servers(
    app: ASGIApp, addresses: Sequence[Address], sockets: Sequence[socket.socket], tls: TlsSettings | None
) -> Iterator[Served]:
    """One for sockets without TLS, and one for those with it. Raises SetupError."""
    pairs = list(zip(addresses, sockets, strict=True))
    plain = [one for address, one in pairs if address.scheme == "http"]
    secure = [one for address, one in pairs if address.scheme == "https"]
    if plain:
        yield _server(app, None), plain
    if secure:
        assert tls is not None
        yield _server(app, server_context(tls)), secure
