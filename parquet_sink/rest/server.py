"""The server around the application: uvicorn in a thread of its own, one for each kind of address."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from parquet_sink.connectors.rest.addresses import Address
from parquet_sink.connectors.rest.settings import RestSettings, TlsSettings
from parquet_sink.errors import SetupError
from parquet_sink.net.listening import BACKLOG
from parquet_sink.rest import protocol
from parquet_sink.rest.app import make_admin_app
from parquet_sink.rest.handshakes import Handshakes
from parquet_sink.rest.listening import Listening, open_listeners
from parquet_sink.rest.protocol import IDLE_S, MOST_HEAD_BYTES, BoundedProtocol
from parquet_sink.rest.tls import server_context

GRACE_S: Final = 5
"""What requests in progress have when the server stops."""
START_S: Final = 10.0
log = logging.getLogger(__name__)


class RestServer:
    """Serves from `start` to `stop`. listening: addresses that were taken before; None takes them at the start."""

    def __init__(self, app: ASGIApp, settings: RestSettings, listening: Listening | None = None) -> None:
        self._app, self._settings = app, settings
        self._listening = listening
        self._servers: list[_Server] = []
        self._thread: Thread | None = None

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Where it listens; with the ports that were found once it was started."""
        return (self._listening.settings if self._listening else self._settings).listeners

    def start(self) -> None:
        """Returns when connections are taken. Raises SetupError that names the key; then nothing is taken."""
        listening = self._listening = self._listening or open_listeners(self._settings)
        try:
            self._servers = self._made(listening)
        except BaseException:
            listening.close()
            raise
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        self._thread = Thread(target=self._run, name="rest", daemon=True)
        self._thread.start()
        if not all(server.up.wait(START_S) for server in self._servers):
            self.stop()
            raise SetupError("The REST API did not start; the log has the cause.")
        for one in (*self.addresses, *(listening.settings.admin or ())):
            log.info("REST API at %s", one)

    def stop(self) -> None:
        """Answers what is in progress, for some seconds, and gives the addresses back. May be called twice."""
        for server in self._servers:
            server.end()
        if self._thread is not None:
            self._thread.join(GRACE_S + START_S)
        if self._listening is not None:
            self._listening.close()

    def _made(self, listening: Listening) -> "list[_Server]":
        settings = listening.settings
        groups = _by_scheme(self._app, settings.listeners, listening.sockets, settings.tls)
        if settings.admin:
            groups += _by_scheme(make_admin_app(settings), settings.admin, listening.admin_sockets, settings.admin_tls)
        return [_Server(app, sockets, context) for app, sockets, context in groups]

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        serving = (server.serve(server.sockets) for server in self._servers)
        for outcome in await asyncio.gather(*serving, return_exceptions=True):
            if isinstance(outcome, BaseException):
                log.error("REST API: a listener ended: %s", outcome)


class _Server(uvicorn.Server):
    """One uvicorn: its sockets share whether there is TLS. up: set once connections are taken."""

    def __init__(self, app: ASGIApp, sockets: Sequence[socket.socket], context: ssl.SSLContext | None) -> None:
        config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(IDLE_S),
            timeout_graceful_shutdown=GRACE_S,
            h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        )
        super().__init__(config)
        self.sockets, self.up = list(sockets), Event()
        self._context = context
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup([])
        make = self._factory()
        for one in sockets or []:
            self.servers.append(await self._loop.create_server(make, sock=one, backlog=BACKLOG))
        self.up.set()

    def _factory(self) -> Callable[[], asyncio.BaseProtocol]:
        def plain() -> asyncio.Protocol:
            return BoundedProtocol(self.config, self.server_state, self.lifespan.state)

        return plain if self._context is None else Handshakes(self._context, plain, protocol.MOST_CONNECTIONS)

    async def main_loop(self) -> None:
        """Wakes once in a second, for the header `Date`, where uvicorn's own wakes ten times."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), 1.0)

    def end(self) -> None:
        """May be called from any thread."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it ended meanwhile
                self._loop.call_soon_threadsafe(self._ending.set)


def _by_scheme(
    app: ASGIApp, addresses: Sequence[Address], sockets: Sequence[socket.socket], tls: TlsSettings | None
) -> list[tuple[ASGIApp, list[socket.socket], ssl.SSLContext | None]]:
    """Sockets without TLS, and those with it. Raises SetupError."""
    pairs = list(zip(addresses, sockets, strict=True))
    plain = [one for address, one in pairs if address.scheme == "http"]
    secure = [one for address, one in pairs if address.scheme == "https"]
    groups: list[tuple[ASGIApp, list[socket.socket], ssl.SSLContext | None]] = []
    if plain:
        groups.append((app, plain, None))
    if secure:
        assert tls is not None
        groups.append((app, secure, server_context(tls)))
    return groups
