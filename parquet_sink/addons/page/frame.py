"""The page's frame: routes, templates, the token of forms, headers, and parts that are sent again when they change."""

import asyncio
import hmac
import json
import logging
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode

import anyio
import anyio.to_thread
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from parquet_sink import __version__
from parquet_sink.addons.page import charts, words
from parquet_sink.addons.page.transport import (
    HEADERS,
    NOTICE,
    HtmlRoute,
    as_cookie,
    form_of,
    notice_in,
    static_file,
)
from parquet_sink.config.report import printable
from parquet_sink.worker.herder.errors import Elsewhere
from parquet_sink.worker.rest.app import log_request
from parquet_sink.worker.rest.authentication import caller_of
from parquet_sink.worker.rest.call import (
    Endpoint,
    Reply,
    RestError,
    as_rest_errors,
    require,
    response_of,
)
from parquet_sink.worker.rest.in_process import Api
from parquet_sink.worker.rest.peers import NoPeers, Peers
from parquet_sink.worker_config.rest.roles import Role

TOKEN: Final = "token"
"""Field of a form with what its cookie has: a page of another origin can read neither."""
COOKIE: Final = "parquet_sink_page"
MOST_STREAMS: Final = 32
"""Browsers that are kept up to date at once; the others are told to look again."""
STREAM_S: Final = 600.0
EVERY_S: Final = 0.8
_TURN_S: Final = 0.2
_KEPT_RENDERS: Final = 64
_THREADS: Final = 12
_LIVE_THREADS: Final = 4
_MARK: Final = "_page"
_UNCAUGHT: Final = "An uncaught error kept the worker from showing this; its log has the cause."
_EXTENDS: Final = re.compile(r'\{% extends "([^"]+)" %\}')
_FORGED: Final = "This form is not from this page, or is older than its cookie. Load the page again, and repeat it."
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Visit:
    """One request of a browser. path: variable parts, decoded. form: the last value of each field. user: who signed in.

    target: path and query as they were asked for.
    """

    api: Api
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    target: str = "/ui"

    @property
    def connector(self) -> str:
        return self.path["connector"]


@dataclass(frozen=True)
class View:
    """A screen. rows: HTML by id of the rows in its part `rows`, which are sent one by one when they change."""

    template: str
    context: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    rows: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Done:
    """An action was done: where the browser goes, and what it says there, once. failed: it could not be done."""

    to: str
    notice: str
    failed: bool = False


@dataclass(frozen=True)
class File:
    """Something to download."""

    name: str
    content: str
    media_type: str


Shown = View | Done | File
Handler = Callable[[Visit], Shown]


@dataclass(frozen=True)
class Screen:
    """A path of the page. live: parts that are kept up to date."""

    method: str
    path: str
    handler: Handler
    live: tuple[str, ...] = ()


def shows(path: str, live: tuple[str, ...] = ()) -> Callable[[Any], Any]:
    """Makes a method the screen at this path."""
    return _marked("GET", path, live)


def does(path: str) -> Callable[[Any], Any]:
    """Makes a method the action that a form sends to this path."""
    return _marked("POST", path, ())


def _marked(method: str, path: str, live: tuple[str, ...]) -> Callable[[Any], Any]:
    def mark(handler: Any) -> Any:
        vars(handler).setdefault(_MARK, []).append((method, path, live))
        return handler

    return mark


def screens_of(*objects: object) -> list[Screen]:
    """Those of objects with such methods."""
    return [
        Screen(method, path, getattr(one, name), live)
        for one in objects
        for name, marked in vars(type(one)).items()
        for method, path, live in getattr(marked, "__dict__", {}).get(_MARK, ())
    ]


class Pages:
    """All screens, as routes. worker_id: shown at the top. for_workers: what other workers alone may ask."""

    def __init__(self, worker_id: str, screens: Callable[["Environment"], Sequence[object]]) -> None:
        self._env = environment()
        self._env.globals["worker_id"] = worker_id
        self._known_blocks: dict[str, Mapping[str, Any]] = {}
        self._screens = screens_of(*screens(self._env))
        self.for_workers: Sequence[Endpoint] = ()
        self._renders: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._streams = 0
        self._closing = threading.Event()
        self._api = Api((), NoPeers())
        self._pool = anyio.CapacityLimiter(_THREADS)
        self._live_pool = anyio.CapacityLimiter(_LIVE_THREADS)

    def routes(self, endpoints: Sequence[Endpoint], peers: Peers) -> list[BaseRoute]:
        """They go before those of REST: `/` is the page for who asks for HTML, and Kafka Connect's for all others."""
        self._api = Api(endpoints, peers)
        found: list[BaseRoute] = [
            Route("/ui/live", self._live, methods=["GET"]),
            Route("/ui/static/{name}", static_file, methods=["GET"]),
            *(Route(one.path, partial(self._serve, one), methods=[one.method]) for one in self._screens),
        ]
        found.append(Route("/ui/{rest:path}", partial(self._serve, Screen("GET", "/ui/*", _missing)), methods=["GET"]))
        first = next((one for one in self._screens if one.path == "/ui"), None)
        return found if first is None else [*found, HtmlRoute("/", partial(self._serve, first), methods=["GET"])]

    def close(self) -> None:
        """Ends what is sent to browsers, within a second."""
        self._closing.set()

    async def _serve(self, screen: Screen, request: Request) -> Response:
        cookie = request.cookies.get(COOKIE, "")
        token = cookie or secrets.token_urlsafe(24)
        try:
            visit = await self._visit(request, screen, cookie)
            answer = partial(self._answer, screen, visit, request, token)
            response = await anyio.to_thread.run_sync(answer, limiter=self._pool)
        except RestError as error:
            response = self._html(screen, _error(error.status, error.message), request, token)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception:  # a defect of ours must not end the server, nor show the browser what is inside
            log.exception("Page: %s %s failed", request.method, printable(request.scope["path"]))
            response = self._html(screen, _error(500, _UNCAUGHT), request, token)
        if not cookie:
            response.set_cookie(COOKIE, token, httponly=True, samesite="lax", secure=request.url.scheme == "https")
        log_request("Page", request, response)
        return response

    def _answer(self, screen: Screen, visit: Visit, request: Request, token: str) -> Response:
        shown = _asked(screen, visit)
        if isinstance(shown, View):
            return self._html(screen, shown, request, token)
        return _redirect(shown) if isinstance(shown, Done) else _download(shown)

    async def _visit(self, request: Request, screen: Screen, cookie: str) -> Visit:
        caller = caller_of(request.scope)
        require(caller.role, Role.VIEWER)
        form: dict[str, str] = {}
        if screen.method == "POST":
            form = await form_of(request)
            if not (cookie and hmac.compare_digest(form.pop(TOKEN, "").encode(), cookie.encode())):
                raise RestError(403, _FORGED)
        path = {name: unquote(text) for name, text in request.path_params.items()}
        query = dict(request.query_params)
        return Visit(self._api.by(caller.role), path, query, form, caller.user, _target(request))

    def _html(self, screen: Screen, view: View, request: Request, token: str) -> Response:
        notice = notice_in(request.cookies.get(NOTICE))
        render = secrets.token_urlsafe(9) if screen.live and view.status == 200 else ""
        field_ = Markup('<input type="hidden" name="{}" value="{}">').format(TOKEN, token)
        context = {
            **view.context,
            "rows": view.rows or {},
            "token": lambda: field_,
            "notice": notice,
            "render": render,
            "target": _target(request),
            "user": caller_of(request.scope).user,
        }
        text = self._env.get_template(view.template).render(context)
        if render:
            self._keep(render, self._parts(screen, view))
        headers = {**HEADERS, "Cache-Control": "no-store", "Vary": "Accept"}
        response = Response(text, view.status, headers, "text/html; charset=utf-8")
        if notice is not None:
            response.delete_cookie(NOTICE)
        return response

    def _keep(self, render: str, parts: dict[str, Any]) -> None:
        with self._lock:
            self._renders[render] = parts
            while len(self._renders) > _KEPT_RENDERS:
                self._renders.popitem(last=False)

    def _parts(self, screen: Screen, view: View) -> dict[str, Any]:
        """HTML of the live blocks by name; of rows by id, in their order."""
        template, blocks = self._env.get_template(view.template), self._blocks(view.template)
        context = template.new_context({**view.context, "rows": view.rows or {}})
        parts: dict[str, Any] = {name: "".join(blocks[name](context)) for name in screen.live}
        return parts if view.rows is None else {**parts, "rows": dict(view.rows)}

    def _blocks(self, name: str) -> Mapping[str, Any]:
        """Of a template and those that it extends, the nearest first."""
        if name not in self._known_blocks:
            assert self._env.loader is not None
            above = _EXTENDS.match(self._env.loader.get_source(self._env, name)[0])
            inherited = {} if above is None else self._blocks(above[1])
            self._known_blocks[name] = {**inherited, **self._env.get_template(name).blocks}
        return self._known_blocks[name]

    async def _live(self, request: Request) -> Response:
        """Parts of a screen, sent when they change. of: its path and query; render: what the browser has."""
        if self._streams >= MOST_STREAMS or self._closing.is_set():
            busy = RestError(503, "Too many browsers are kept up to date; load the page again.")
            return response_of(Reply({"error_code": 503, "message": busy.message}, 503, {"Retry-After": "10"}))
        found = self._screen_of(request.query_params.get("of", "/ui"), caller_of(request.scope).role)
        if found is None:
            return response_of(Reply({"error_code": 404, "message": "There is no such screen."}, 404))
        screen, visit = found
        again = "last-event-id" in request.headers
        with self._lock:
            before = {} if again else self._renders.get(request.query_params.get("render", ""), {})
        headers = {**HEADERS, "Cache-Control": "no-store"}
        return StreamingResponse(self._stream(screen, visit, before), 200, headers, "text/event-stream")

    def _screen_of(self, target: str, role: Role) -> tuple[Screen, Visit] | None:
        path, _, query = target.partition("?")
        for one in self._screens:
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", one.path)
            if one.live and (match := re.fullmatch(pattern, path.removesuffix("/") or "/ui")):
                names = {name: unquote(text) for name, text in match.groupdict().items()}
                return one, Visit(self._api.by(role), names, dict(parse_qsl(query)), target=target)
        return None

    async def _stream(self, screen: Screen, visit: Visit, before: dict[str, Any]) -> AsyncIterator[bytes]:
        self._streams += 1
        until_s, number = time.monotonic() + STREAM_S, 0
        try:
            yield b"retry: 2000\n\n"
            while not self._closing.is_set() and time.monotonic() < until_s:
                try:
                    asked = partial(self._now, screen, visit)
                    now = await anyio.to_thread.run_sync(asked, limiter=self._live_pool, abandon_on_cancel=True)
                except RestError as error:
                    yield _event("gone", number, {"message": error.message})
                    return
                changed, before = _changes(before, now), now
                number += 1
                yield _event("parts", number, changed) if changed else b": \n\n"
                await self._wait(EVERY_S)
        finally:
            self._streams -= 1

    def _now(self, screen: Screen, visit: Visit) -> dict[str, Any]:
        shown = _asked(screen, visit)
        return self._parts(screen, shown) if isinstance(shown, View) else {}

    async def _wait(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while not self._closing.is_set() and time.monotonic() < until_s:  # noqa: ASYNC110 -- a thread closes it
            await asyncio.sleep(_TURN_S)


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What a browser replaces: parts whole, and rows one by one while the same ones stand in the same order."""
    changed: dict[str, Any] = {name: text for name, text in now.items() if before.get(name) != text and name != "rows"}
    rows, had = now.get("rows"), before.get("rows")
    if rows is None or rows == had:
        return {"parts": changed} if changed else {}
    if had is None or [*had] != [*rows]:
        return {"parts": {**changed, "rows": "".join(rows.values())}}
    return {"parts": changed, "rows": {key: text for key, text in rows.items() if had[key] != text}}


def _event(name: str, number: int, content: Any) -> bytes:
    return f"event: {name}\nid: {number}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n".encode()


def _missing(visit: Visit) -> Shown:
    raise RestError(404, "The page has no such screen.")


def _asked(screen: Screen, visit: Visit) -> Shown:
    """What a screen shows. Raises RestError."""
    try:
        with as_rest_errors():
            return screen.handler(visit)
    except Elsewhere as elsewhere:
        raise RestError(409, str(elsewhere)) from elsewhere


def _error(status: int, message: str) -> View:
    return View("error.html", {"message": message, "status": status}, status)


def environment() -> Environment:
    """Templates of this package: everything is escaped, and a name that is not there is an error."""
    env = Environment(
        loader=PackageLoader("parquet_sink.addons.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= words.FILTERS
    env.globals |= {"version": __version__, "charts": charts, "link": link}
    return env


def link(path: str, **query: object) -> str:
    """A path with a query of what is given; empty values are left out."""
    given = {name: str(value) for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def _target(request: Request) -> str:
    path = request.scope["path"]
    return f"{path}?{request.url.query}" if request.url.query else path


def _redirect(done: Done) -> Response:
    response = RedirectResponse(done.to, 303, HEADERS)
    value = as_cookie(done.notice, failed=done.failed)
    response.set_cookie(NOTICE, value, max_age=60, httponly=True, samesite="lax")
    return response


def _download(file: File) -> Response:
    name = file.name.encode("ascii", "replace").decode().translate(str.maketrans('"\\/?', "____"))
    headers = {**HEADERS, "Cache-Control": "no-store", "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(file.content, 200, headers, file.media_type)
