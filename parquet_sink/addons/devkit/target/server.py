"""A running target: its parts put together, and the uvicorn server around them."""

import asyncio
import fcntl
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from parquet_sink.addons.devkit.target.app import (
    CutResponse,
    Desk,
    DiscardingReceiver,
    Keys,
    StoringReceiver,
    bounded,
    build,
    guarded,
    misbehave,
)
from parquet_sink.addons.devkit.target.contract import Repeats
from parquet_sink.addons.devkit.target.discard import DiscardLog
from parquet_sink.addons.devkit.target.faults import BadFault
from parquet_sink.addons.devkit.target.readout import Books, Warehouse
from parquet_sink.addons.devkit.target.store import FileStore
from parquet_sink.addons.devkit.target.tables import Tables
from parquet_sink.addons.devkit.target.tokens import TOKEN_PATH, Client, Denied, Tokens
from parquet_sink.addons.devkit.target.upsert import Upserter
from parquet_sink.config.secret import Secret
from parquet_sink.errors import SetupError
from parquet_sink.net.listening import listen

GRACE_S: Final = 3
KEEP_ALIVE_S: Final = 300
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class TargetSettings:
    """How a target runs. `data_dir` None: files are discarded. `guard_all`: read-outs and faults need a key as well.

    `deleted_column`: see `Tables`. `repeats`: what becomes of a file that comes again. `slow_s`: see `Desk`.
    `clients`: who may ask for access tokens; none: there are none. `token_s`, `scope`: see `Tokens`.
    """

    host: str
    port: int
    data_dir: Path | None
    authorization: Sequence[Secret]
    guard_all: bool = False
    access_log: bool = False
    deleted_column: str | None = None
    repeats: Repeats = "recognise"
    slow_s: float = 0.0
    clients: Sequence[Client] = ()
    token_s: int = 900
    scope: str | None = None


class CuttableProtocol(H11Protocol):
    """Lets the application reach the TCP connection of a request, to cut it to order."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, "transport": transport}


def serve(settings: TargetSettings) -> None:
    """Serve until SIGTERM or SIGINT. Prints the address as soon as connections are taken. Raises SetupError."""
    with _bound(settings.host, settings.port) as listener, _application(settings) as app:
        config = uvicorn.Config(
            app,
            http=CuttableProtocol,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=settings.access_log,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
        )
        server = uvicorn.Server(config)
        with _stopping(server):
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            print(f"target ready at http://{shown}:{port}", flush=True)
            server.run(sockets=[listener])


@contextmanager
def _application(settings: TargetSettings) -> Iterator[Starlette]:
    tokens = Tokens(settings.clients, settings.token_s, settings.scope) if settings.clients else None
    keys = Keys(settings.authorization, tokens)
    guard = keys if settings.guard_all else None
    if settings.data_dir is None:
        log = DiscardLog(settings.repeats)
        desk = Desk(DiscardingReceiver(log), keys, settings.slow_s, tokens=tokens)
        yield build(desk, [*Books(desk, log).routes(guard), *token_routes(desk, guard)], guard)
        return
    with _locked(settings.data_dir):
        store = FileStore(settings.data_dir, settings.repeats)
        tables = Tables(settings.data_dir / "tables.duckdb", settings.deleted_column)
        upserter = Upserter(store, tables)
        upserter.start()
        try:
            desk = Desk(StoringReceiver(store, upserter.notify), keys, settings.slow_s, tokens=tokens)
            read_outs = Warehouse(desk, store, tables, upserter).routes(guard)
            yield build(desk, [*read_outs, *token_routes(desk, guard)], guard)
        finally:
            upserter.stop()
            tables.close()
            store.journal.close()


@contextmanager
def _locked(data_dir: Path) -> Iterator[None]:
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        lock = (data_dir / "lock").open("w")
    except OSError as reason:
        raise SetupError(f"--data-dir {data_dir}: {reason.strerror}. Name a folder that can be written.") from reason
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as reason:
            raise SetupError(f"--data-dir {data_dir}: another target uses it. Stop that, or name another.") from reason
        yield


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    try:
        listener = listen(host, port)
    except OSError as reason:
        raise SetupError(f"--host {host} --port {port}: {reason.strerror}. Name a free port, or 0 for any.") from reason
    with listener:
        yield listener


@contextmanager
def _stopping(server: uvicorn.Server) -> Iterator[None]:
    """Signals end the server, and never the process: uvicorn raises them again once it has stopped."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class TokenDesk:
    """Answers clients; rules for `token` befall those that are known."""

    def __init__(self, desk: Desk, tokens: Tokens) -> None:
        self._desk, self._tokens = desk, tokens

    async def give(self, request: Request) -> Response:
        try:
            response = await self._answer(request)
        except Denied as denied:
            error = {"error": denied.code, "error_description": denied.text}
            headers = {"WWW-Authenticate": "Basic"} if denied.status == 401 else None
            response = JSONResponse(error, denied.status, headers)
        except BadFault as large:
            response = JSONResponse({"error": "invalid_request", "error_description": str(large)}, 400)
        status = "cut" if isinstance(response, CutResponse) else str(response.status_code)
        self._tokens.asked[status] += 1
        return response

    async def withdraw(self, _: Request) -> Response:
        return JSONResponse({"withdrawn": self._tokens.withdraw()})

    async def _answer(self, request: Request) -> Response:
        given = self._tokens.give(request.headers.get("authorization"), await bounded(request))
        good = JSONResponse(given, headers={"Cache-Control": "no-store"})
        fault = self._desk.choose_fault("", "", "token")
        return good if fault is None else await misbehave(fault, good)


def token_routes(desk: Desk, guard: Keys | None) -> list[BaseRoute]:
    """None, where the target gives no tokens. guard: see `app.build`."""
    if desk.tokens is None:
        return []
    route = TokenDesk(desk, desk.tokens)
    return [
        Route(TOKEN_PATH, route.give, methods=["POST"]),
        Route("/tokens", guarded(route.withdraw, guard), methods=["DELETE"]),
    ]
