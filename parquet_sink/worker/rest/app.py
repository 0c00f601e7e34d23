"""The REST API as an ASGI application: endpoints, and around them what every request goes through."""

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parquet_sink.config.report import printable
from parquet_sink.process.logs import about
from parquet_sink.worker.herder.errors import Elsewhere
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.jobs import Jobs
from parquet_sink.worker.rest.authentication import Authentication, CallerKind, caller_of, to_forwarded
from parquet_sink.worker.rest.call import (
    Call,
    Endpoint,
    Pool,
    Reply,
    RestError,
    endpoints_of,
    error_response,
    forwarded_role,
    read_body,
    read_json,
    require,
    response_of,
)
from parquet_sink.worker.rest.connectors import Connectors, Tasks
from parquet_sink.worker.rest.deliveries import Deliveries
from parquet_sink.worker.rest.flushes import Flushes
from parquet_sink.worker.rest.guards import HostAndOrigin, origins_pattern
from parquet_sink.worker.rest.jobs import JobEndpoints
from parquet_sink.worker.rest.offsets import Offsets
from parquet_sink.worker.rest.openapi import document
from parquet_sink.worker.rest.other_histories import OtherHistories
from parquet_sink.worker.rest.peers import Forwarded, NoPeers, Peers
from parquet_sink.worker.rest.plugins import Plugins, Validate
from parquet_sink.worker.rest.purging import Purging
from parquet_sink.worker.rest.service import Loggers, Metrics, Service
from parquet_sink.worker_config.rest.roles import Role
from parquet_sink.worker_config.rest.settings import CrossOrigin, RestSettings
from parquet_sink.worker_config.rest.values import HeaderRule
from parquet_sink.worker_config.worker import Worker

_THREADS: Final[Mapping[Pool, int]] = {"reads": 16, "commands": 64, "cluster": 16, "waits": 32, "health": 4}
_INTERNAL: Final = "An uncaught error kept the worker from doing this; its log has the cause."
_TWO_LENGTHS: Final = (
    "The request has Content-Length and Transfer-Encoding, so two ends of its body, and a proxy may have taken the "
    "other; send one of them."
)


def routes(endpoints: Sequence[Endpoint], peers: Peers, *, signed: bool = False) -> list[Route]:
    """A route for each path. Paths are matched as they were sent, so that a `/` within a name parts nothing.

    signed: they are there for other workers alone.
    """
    pools = {pool: anyio.CapacityLimiter(count) for pool, count in _THREADS.items()}
    paths: dict[str, dict[str, Endpoint]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method] = one
    return [Route(path, _Path(methods, pools, peers, signed=signed)) for path, methods in paths.items()]


class _Path:
    """The methods of one path."""

    def __init__(
        self,
        methods: Mapping[str, Endpoint],
        pools: Mapping[Pool, anyio.CapacityLimiter],
        peers: Peers,
        *,
        signed: bool,
    ) -> None:
        self._methods, self._pools, self._peers, self._signed = methods, pools, peers, signed
        safe = ["HEAD"] if "GET" in methods else []
        self._allow = ", ".join(sorted([*methods, *safe, "OPTIONS"]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except RestError as error:
            response = error_response(error.status, error.message, error.headers)
        except ClientDisconnect:
            return
        except Exception:  # a defect of ours must not end the server, nor show the client what is inside
            log.exception("REST API: %s %s failed", request.method, printable(scope["path"]))
            response = error_response(500, _INTERNAL)
        log_request("REST API", request, response)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        caller = caller_of(request.scope)
        if self._signed and caller.kind is not CallerKind.WORKER:
            raise RestError(404, http_error(404))
        if "content-length" in request.headers and "transfer-encoding" in request.headers:
            raise RestError(400, _TWO_LENGTHS, {"Connection": "close"})
        if request.method == "OPTIONS":
            return Response(status_code=200, headers={"Allow": self._allow})
        endpoint = self._methods.get("GET" if request.method == "HEAD" else request.method)
        if endpoint is None:
            raise RestError(405, http_error(405), {"Allow": self._allow})
        if endpoint.path != "/metrics":
            _acceptable(request.headers.get("accept"))
        raw = b"" if endpoint.takes is None else await _body(request)
        whole = to_forwarded(request, raw, forwarded_role(caller.role))
        role = require(caller.role, endpoint.role)
        path = {name: _decoded(text) for name, text in request.path_params.items()}
        call = Call(path, request.query_params, base_url=_base_url(request), role=role)

        def reply() -> Reply:
            try:
                return endpoint.handler(call if endpoint.takes is None else replace(call, body=read_json(raw)))
            except Elsewhere as elsewhere:
                return self._peers.forward(elsewhere, whole)

        pool = self._pools[endpoint.pool]
        return response_of(await anyio.to_thread.run_sync(reply, limiter=pool, abandon_on_cancel=True))


def http_error(status: int) -> str:
    """What Kafka Connect says where only HTTP itself is to blame."""
    return f"HTTP {status} {HTTPStatus(status).phrase}"


def log_request(door: str, request: Request, response: Response) -> None:
    """Who changed what is worth a line; who looks is not."""
    level = logging.DEBUG if request.method in ("GET", "HEAD", "OPTIONS") else logging.INFO
    address = request.client.host if request.client else "an unknown address"
    user = caller_of(request.scope).user
    who = address if user is None else f"{printable(user)} at {address}"
    path = printable(request.scope["path"])
    name = request.path_params.get("connector")
    extra = None if name is None else about(connector=unquote(name))
    log.log(level, "%s: %s %s by %s: %d", door, request.method, path, who, response.status_code, extra=extra)


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise RestError(400, "The path is not UTF-8; encode it so before percent-encoding it.") from None


def _base_url(request: Request) -> str:
    """As the client called this server; the server's own address where that makes no sense."""
    host = request.headers.get("host", "")
    try:
        there = bool(urlsplit(f"//{host}").hostname) and not set(host) & set("/?#@ ")
    except ValueError:
        there = False
    if not there:
        name, port = request.scope.get("server") or ("localhost", None)
        host = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    return f"{request.scope['scheme']}://{host}"


def _acceptable(accept: str | None) -> None:
    """Refuses a client that takes no JSON. Raises RestError."""
    if accept is None or not accept.strip():
        return
    for one in accept.split(","):
        media_type, *parameters = (part.strip().lower() for part in one.split(";"))
        refused = any(text.replace(" ", "") in ("q=0", "q=0.0", "q=0.00", "q=0.000") for text in parameters)
        if media_type in ("application/json", "application/*", "*/*", "*") and not refused:
            return
    raise RestError(406, http_error(406))


async def _body(request: Request) -> bytes:
    """Return the body, which must be JSON. Raise RestError, ClientDisconnect."""
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise RestError(415, http_error(415))
    return await read_body(request)


MOST_AT_ONCE: Final = 256
"""Requests that are being answered; those above are refused and may come again."""
_ESCAPES: Final = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*")
_CORS_HEADERS: Final = ("X-Requested-With", "Content-Type", "Accept", "Origin", "Authorization")
_CORS_AGE_S: Final = 1800
log = logging.getLogger(__name__)


class Pages(Protocol):
    """What a browser is shown, over the same endpoints. for_workers: what other workers alone may ask."""

    for_workers: Sequence[Endpoint]

    def routes(self, endpoints: Sequence[Endpoint], peers: Peers) -> Sequence[BaseRoute]:
        """They are looked at before those of the endpoints."""

    def close(self) -> None:
        """Ends what is sent to browsers."""


def make_app(
    herder: Herder,
    worker: Worker,
    settings: RestSettings,
    metrics: Metrics,
    validate: Validate,
    peers: Peers | None = None,
    pages: Pages | None = None,
) -> Starlette:
    """The whole API. metrics: the exposition for Prometheus and its media type. peers: None for one that is alone.

    validate: what `/config/validate` goes by, which is to be what the herder goes by. pages: beside it, for browsers.
    """
    peers = peers or NoPeers()
    ask = partial(_ask, peers)
    plugins, purging = Plugins(herder, validate, _defaults(worker)), Purging(herder, ask)
    connectors, tasks = Connectors(herder, settings, purging.purge), Tasks(herder)
    files = (Deliveries(herder), JobEndpoints(herder, Jobs(), OtherHistories(herder, ask)))
    of_connectors = (connectors, tasks, Offsets(herder), Flushes(herder), *files)
    found = endpoints_of(Service(herder, metrics), *of_connectors, plugins)
    loggers, of_workers = endpoints_of(Loggers(herder)), purging.endpoints()
    if settings.admin is None:
        return _application([*found, *loggers], settings, peers, of_workers, pages)
    return _application(found, settings, peers, [*loggers, *of_workers], pages)


def _ask(peers: Peers, worker: Elsewhere, method: str, target: str) -> Reply:
    """Asks another worker itself. Raises RestError."""
    return peers.forward(worker, Forwarded(method, target, {"accept": "application/json"}, b""))


def _defaults(worker: Worker) -> dict[str, str]:
    keys = ("key.converter", "value.converter", "header.converter")
    return {key: worker.converters.shown(key) for key in keys if key in worker.converters.given}


def make_admin_app(herder: Herder, settings: RestSettings, peers: Peers | None = None) -> Starlette:
    """What the addresses of `admin.listeners` have."""
    return _application(endpoints_of(Loggers(herder)), settings, peers or NoPeers())


def _application(
    found: Sequence[Endpoint],
    settings: RestSettings,
    peers: Peers,
    for_workers: Sequence[Endpoint] = (),
    pages: Pages | None = None,
) -> Starlette:
    """for_workers: what other workers alone may ask, which send a request on to where everybody asks."""
    text = document(found, signs_in=bool(settings.users))
    openapi = Endpoint("GET", "/openapi.json", lambda call: Reply(text), "This document", Role.VIEWER)
    shown: Sequence[BaseRoute] = () if pages is None else pages.routes(found, peers)
    internal = [*for_workers, *(() if pages is None else pages.for_workers)]
    app = Starlette(
        routes=[*shown, *routes([*found, openapi], peers), *routes(internal, peers, signed=True)],
        middleware=_middleware(settings, peers),
        exception_handlers={HTTPException: _http_error},  # type: ignore[dict-item]
    )
    app.router.redirect_slashes = False
    return app


def _middleware(settings: RestSettings, peers: Peers) -> list[Middleware]:
    """The first is the outermost."""
    found = [Middleware(RequestLimits)]
    if settings.headers:
        found.append(Middleware(ResponseHeaders, rules=settings.headers))
    if settings.cross_origin.origins:
        found.append(_cross_origin(settings.cross_origin))
    found.append(Middleware(HostAndOrigin, settings=settings))
    found.append(Middleware(Authentication, settings=settings, peers=peers))
    return found


def _cross_origin(allowed: CrossOrigin) -> Middleware:
    """Credentials only for origins that are named."""
    everybody = "*" in allowed.origins
    pattern = origins_pattern(allowed)
    return Middleware(
        CORSMiddleware,
        allow_origins=["*"] if everybody else [],
        allow_origin_regex=None if everybody or pattern is None else pattern.pattern,
        allow_credentials=not everybody,
        allow_methods=allowed.methods,
        allow_headers=_CORS_HEADERS,
        max_age=_CORS_AGE_S,
    )


async def _http_error(request: Request, error: HTTPException) -> Response:
    return error_response(error.status_code, http_error(error.status_code), error.headers)


class RequestLimits:
    """At most so many requests at once; paths as they were sent, with or without a slash at their end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._at_once = app, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        if self._at_once >= MOST_AT_ONCE:
            busy = error_response(503, "Too many requests at once; send this one again.", {"Retry-After": "1"})
            await busy(scope, receive, send)
        elif _ESCAPES.fullmatch(path) is None:
            await error_response(400, "The path has a % that begins no escape; write it as %25.")(scope, receive, send)
        else:
            plain = path.removesuffix("/") or "/"
            self._at_once += 1
            try:
                await self._app({**scope, "path": plain}, receive, send)
            finally:
                self._at_once -= 1


class ResponseHeaders:
    """The rules of `response.http.headers.config`. now: epoch seconds."""

    def __init__(self, app: ASGIApp, rules: Sequence[HeaderRule], now: Callable[[], float] = time.time) -> None:
        self._app, self._rules, self._now = app, rules, now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for rule in self._rules:
                    self._apply(rule, headers)
            await send(message)

        await self._app(scope, receive, with_headers)

    def _apply(self, rule: HeaderRule, headers: MutableHeaders) -> None:
        value = formatdate(self._now() + int(rule.value) / 1000, usegmt=True) if rule.is_date else rule.value
        if rule.replaces:
            headers[rule.name] = value
        else:
            headers.append(rule.name, value)
