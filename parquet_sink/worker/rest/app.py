"""The REST API as an ASGI application: endpoints, and around them what every request goes through."""

import logging
import re
import time
from collections.abc import Callable, Sequence
from email.utils import formatdate
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.rest.answers import error_response
from parquet_sink.worker.rest.call import Reply
from parquet_sink.worker.rest.config_infos import Judge, by_keys
from parquet_sink.worker.rest.connectors import Connectors
from parquet_sink.worker.rest.endpoints import (
    Endpoint,
    admin_endpoints,
    connector_endpoints,
    detail_endpoints,
    plugin_endpoints,
    service_endpoints,
)
from parquet_sink.worker.rest.guards import Meant, SignIn, Users, origins_pattern
from parquet_sink.worker.rest.loggers import Loggers
from parquet_sink.worker.rest.offsets import Offsets
from parquet_sink.worker.rest.openapi import document
from parquet_sink.worker.rest.plugins import Plugins
from parquet_sink.worker.rest.routes import Lanes, http_error, routes
from parquet_sink.worker.rest.service import Metrics, Service
from parquet_sink.worker.rest.tasks import Tasks
from parquet_sink.worker_config.rest.header_rules import HeaderRule
from parquet_sink.worker_config.rest.settings import CrossOrigin, RestSettings
from parquet_sink.worker_config.worker import Worker

MOST_AT_ONCE: Final = 256
"""Requests that are being answered; those above are told to come again."""
_ESCAPES: Final = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*")
_CORS_HEADERS: Final = ("X-Requested-With", "Content-Type", "Accept", "Origin", "Authorization")
_CORS_AGE_S: Final = 1800
log = logging.getLogger(__name__)


def make_app(
    herder: Herder,
    worker: Worker,
    settings: RestSettings,
    metrics: Metrics | None = None,
    judge: Judge | None = None,
) -> Starlette:
    """The whole API. metrics: the exposition for Prometheus and its media type.

    judge: what `/config/validate` goes by, which is to be what the herder goes by; the tables of keys alone when None.
    """
    connectors = Connectors(herder, settings)
    found: list[Endpoint] = [
        *service_endpoints(Service(herder, metrics)),
        *connector_endpoints(connectors),
        *detail_endpoints(connectors, Tasks(herder), Offsets(herder)),
        *plugin_endpoints(Plugins(herder, judge or by_keys(worker), _defaults(worker))),
        *(admin_endpoints(Loggers()) if settings.admin is None else ()),
    ]
    return _application(found, settings)


def _defaults(worker: Worker) -> dict[str, str]:
    """The converters of the worker file."""
    keys = ("key.converter", "value.converter", "header.converter")
    return {key: worker.converters.shown(key) for key in keys if key in worker.converters.given}


def make_admin_app(settings: RestSettings) -> Starlette:
    """What the addresses of `admin.listeners` have."""
    return _application(admin_endpoints(Loggers()), settings)


def _application(found: Sequence[Endpoint], settings: RestSettings) -> Starlette:
    text = document(found, signs_in=bool(settings.users))
    openapi = Endpoint("GET", "/openapi.json", lambda call: Reply(text), "This document")
    app = Starlette(
        routes=routes([*found, openapi], Lanes()),
        middleware=_middleware(settings),
        exception_handlers={HTTPException: _http_error},  # type: ignore[dict-item]
    )
    app.router.redirect_slashes = False
    return app


def _middleware(settings: RestSettings) -> list[Middleware]:
    """The first is the outermost."""
    found = [Middleware(Bounds)]
    if settings.headers:
        found.append(Middleware(ResponseHeaders, rules=settings.headers))
    if settings.cross_origin.origins:
        found.append(_cross_origin(settings.cross_origin))
    found.append(Middleware(Meant, settings=settings))
    if settings.users:
        found.append(Middleware(SignIn, users=Users(settings.users), anonymous_health=settings.anonymous_health))
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


class Bounds:
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
