"""One path with its methods: what a request must be to reach an endpoint, and the thread that the endpoint runs in."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from parquet_sink.config.report import printable
from parquet_sink.process.log_format import about
from parquet_sink.worker.rest import bodies
from parquet_sink.worker.rest.answers import error_of, error_response, response_of
from parquet_sink.worker.rest.call import Call, Reply, RestError
from parquet_sink.worker.rest.endpoints import Endpoint, Lane
from parquet_sink.worker.rest.guards import USER

BODY_S: Final = 30.0
"""How long a client may take to send a body."""
_THREADS: Final[Mapping[Lane, int]] = {"reads": 16, "commands": 64, "cluster": 16, "health": 4}
_INTERNAL: Final = "The worker could not do this for a reason that nobody foresaw; its log has the cause."
log = logging.getLogger(__name__)


class Lanes:
    """Threads for endpoints, so many for each lane."""

    def __init__(self) -> None:
        self._limits = {lane: anyio.CapacityLimiter(count) for lane, count in _THREADS.items()}

    async def run(self, endpoint: Endpoint, call: Call, raw: bytes) -> Reply:
        """The endpoint's reply. Raises what it raises, RestError above all."""
        act = partial(_act, endpoint, call, raw)
        return await anyio.to_thread.run_sync(act, limiter=self._limits[endpoint.lane], abandon_on_cancel=True)


def _act(endpoint: Endpoint, call: Call, raw: bytes) -> Reply:
    body = bodies.read_json(raw) if endpoint.takes is not None else call.body
    return endpoint.handler(Call(call.path, call.query, body, call.base_url))


def routes(endpoints: Sequence[Endpoint], lanes: Lanes) -> list[Route]:
    """A route for each path. Paths are matched as they were sent, so that a `/` within a name parts nothing."""
    paths: dict[str, dict[str, Endpoint]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method] = one
    return [Route(path, _Path(methods, lanes)) for path, methods in paths.items()]


class _Path:
    """The methods of one path."""

    def __init__(self, methods: Mapping[str, Endpoint], lanes: Lanes) -> None:
        self._methods, self._lanes = methods, lanes
        safe = ["HEAD"] if "GET" in methods else []
        self._allow = ", ".join(sorted([*methods, *safe, "OPTIONS"]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except RestError as error:
            response = error_of(error)
        except ClientDisconnect:
            return
        except Exception:  # a defect of ours must not end the server, nor tell the client what is inside
            log.exception("REST API: %s %s failed", request.method, printable(scope["path"]))
            response = error_response(500, _INTERNAL)
        _tell(request, response)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
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
        path = {name: _decoded(text) for name, text in request.path_params.items()}
        call = Call(path, request.query_params, base_url=_base_url(request))
        return response_of(await self._lanes.run(endpoint, call, raw))


_TWO_LENGTHS: Final = (
    "The request has Content-Length and Transfer-Encoding, so two ends of its body, and a proxy may have taken the "
    "other; send one of them."
)


def http_error(status: int) -> str:
    """What Kafka Connect says where only HTTP itself is to blame."""
    return f"HTTP {status} {HTTPStatus(status).phrase}"


def _tell(request: Request, response: Response) -> None:
    """Who changed what is worth a line; who looks is not."""
    level = logging.DEBUG if request.method in ("GET", "HEAD", "OPTIONS") else logging.INFO
    address = request.client.host if request.client else "an unknown address"
    user = request.scope.get(USER)
    who = address if user is None else f"{printable(user)} at {address}"
    path = printable(request.scope["path"])
    name = request.path_params.get("connector")
    extra = None if name is None else about(connector=unquote(name))
    log.log(level, "REST API: %s %s by %s: %d", request.method, path, who, response.status_code, extra=extra)


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
    """The body, within limits of size and time. Raises RestError, ClientDisconnect."""
    length = request.headers.get("content-length", "0")
    if length != "0" or "transfer-encoding" in request.headers:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise RestError(415, http_error(415))
    if length.isascii() and length.isdigit() and int(length) > bodies.MOST_BYTES:
        raise _too_large()
    received = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                received += part
                if len(received) > bodies.MOST_BYTES:
                    raise _too_large()
    except TimeoutError:
        message = f"The body did not come within {BODY_S:g} s."
        raise RestError(408, message, {"Connection": "close"}) from None
    return bytes(received)


def _too_large() -> RestError:
    return RestError(413, f"The body is larger than {bodies.MOST_BYTES} bytes; send less.")
