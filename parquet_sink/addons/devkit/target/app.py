"""The target's routes: uploads, faults to order; the read-outs stand in `readout`.

Starlette is used as it is; what differs by mode (store, or discard) is the `Receiver`.
"""

import asyncio
import hmac
import json
import logging
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from parquet_sink.addons.devkit.target import contract
from parquet_sink.addons.devkit.target.body import UploadBody, boundary_of
from parquet_sink.addons.devkit.target.contract import BadUpload, UploadParameters
from parquet_sink.addons.devkit.target.discard import DiscardLog
from parquet_sink.addons.devkit.target.faults import At, BadFault, Fault, choose, parse_fault
from parquet_sink.addons.devkit.target.store import Acceptance, FileStore
from parquet_sink.addons.devkit.target.tokens import Tokens
from parquet_sink.config.secret import Secret

MAX_ORDER_BYTES: Final = 2_000_000
MAX_RULES: Final = 100
logger = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]


class Receiver(Protocol):
    """What is done with an upload's bytes."""

    async def receive(
        self, body: UploadBody, name: str, parameters: UploadParameters, received_at_ms: int
    ) -> Acceptance: ...


class StoringReceiver:
    """Accepts durably, then tells the upserter."""

    def __init__(self, store: FileStore, notify: Callable[[], None]) -> None:
        self._store, self._notify = store, notify

    async def receive(
        self, body: UploadBody, name: str, parameters: UploadParameters, received_at_ms: int
    ) -> Acceptance:
        part = self._store.open_part()
        try:
            await body.copy_to(part)
            acceptance = await asyncio.to_thread(self._store.accept, part, name, parameters, received_at_ms)
        finally:
            part.drop()
        self._notify()
        return acceptance


class DiscardingReceiver:
    """Counts the bytes and remembers that the file came."""

    def __init__(self, log: DiscardLog) -> None:
        self._log = log

    async def receive(
        self, body: UploadBody, name: str, parameters: UploadParameters, received_at_ms: int
    ) -> Acceptance:
        size = await body.measure()
        return self._log.accept(name, parameters, size, (received_at_ms, now_ms()))


class Keys:
    """The accepted values of the Authorization header: fixed ones, and access tokens."""

    def __init__(self, accepted: Sequence[Secret], tokens: Tokens | None = None) -> None:
        self._accepted = tuple(key.reveal().encode() for key in accepted)
        self._tokens = tokens

    def allow(self, request: Request) -> bool:
        """Whether the request carries one of the keys; takes equally long for every wrong one."""
        text = request.headers.get("authorization", "")
        if self._tokens is not None and self._tokens.allow(text):
            return True
        given = text.encode("latin-1", "replace")
        return sum(hmac.compare_digest(given, key) for key in self._accepted) > 0


@dataclass
class Desk:
    """The state of a running target: what it accepts, the faults ordered, and how uploads were answered.

    tokens: those that it gives itself, None when it gives none.
    slow_s: what every answer to a good upload waits for, in seconds.
    """

    receiver: Receiver
    keys: Keys
    slow_s: float = 0.0
    faults: tuple[Fault, ...] = ()
    tokens: Tokens | None = None
    by_status: Counter[str] = field(default_factory=Counter)

    def choose_fault(self, target: str, name: str, at: At = "upload") -> Fault | None:
        chosen, self.faults = choose(self.faults, target, name, random.random, at)
        return chosen

    @property
    def refused(self) -> int:
        """How many uploads were answered with 4xx."""
        return sum(count for status, count in self.by_status.items() if status.startswith("4"))


class CutResponse(Response):
    """No answer, or half of one: closes the TCP connection under the client."""

    def __init__(self, half_of: Response | None = None) -> None:
        super().__init__()
        self._half_of = half_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._half_of is not None:
            body = bytes(self._half_of.body)
            await send({"type": "http.response.start", "status": 200, "headers": self._half_of.raw_headers})
            await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
        transport: asyncio.Transport = scope["state"]["transport"]
        transport.abort()
        with suppress(asyncio.CancelledError):  # when the target stops
            while (await receive())["type"] != "http.disconnect":
                pass  # until the server has noticed, else it would try to answer by itself


def now_ms() -> int:
    """The time of day, epoch milliseconds."""
    return time.time_ns() // 1_000_000


def refusal(status: int, text: str) -> Response:
    """An error in the push API's words."""
    return JSONResponse({"reference": "target", "message": text}, status)


def unauthorized() -> Response:
    """The answer to a request without an accepted key."""
    return refusal(401, "the Authorization header is missing or holds no accepted key")


class Uploads:
    """The upload route: authorization, parameters, ordered fault, file, answer; in this order."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, request: Request) -> Response:
        try:
            response = await self._answer(request, now_ms())
        except BadUpload as bad:
            response = JSONResponse(bad.as_json(), bad.status)
        except ClientDisconnect:
            response = Response(status_code=400)  # nobody is there to read it
            self._desk.by_status["disconnected"] += 1
            return response
        except asyncio.CancelledError:
            response = CutResponse()  # the target stops: the client gets no answer
        except OSError as reason:
            logger.warning("an upload could not be stored: %s", reason)
            response = refusal(500, f"the file could not be stored: {reason.strerror or reason}")
        status = "cut" if isinstance(response, CutResponse) else str(response.status_code)
        self._desk.by_status[status] += 1
        return response

    async def _answer(self, request: Request, received_at_ms: int) -> Response:
        if not self._desk.keys.allow(request):
            return unauthorized()
        parameters = contract.parse_parameters(request.path_params["pool"], request.query_params)
        chunks = (chunk async for chunk in request.stream())
        body = UploadBody(chunks, boundary_of(request.headers.get("content-type")))
        name = await body.head()
        fault = self._desk.choose_fault(parameters.target, name)
        if fault is None or fault.stores:
            acceptance = await self._desk.receiver.receive(body, name, parameters, received_at_ms)
            await asyncio.sleep(self._desk.slow_s)
            good = JSONResponse(contract.answer(acceptance.file, parameters))
            return good if fault is None else await misbehave(fault, good)
        if fault.cut is None:
            await body.drain()
        return await misbehave(fault, Response())


async def misbehave(fault: Fault, good: Response) -> Response:
    """The answer that was ordered, in place of the good one."""
    await asyncio.sleep(fault.latency_s)
    if fault.cut:
        return CutResponse(half_of=good if fault.cut == "during" else None)
    response = _ordered_answer(fault) if fault.replaces_answer else good
    if fault.retry_after is not None:
        response.headers["Retry-After"] = fault.retry_after
    if fault.ratelimit_reset is not None:
        response.headers["X-RateLimit-Reset"] = fault.ratelimit_reset
    return response


def _ordered_answer(fault: Fault) -> Response:
    status, body = fault.answer_status, fault.body
    if body is None:
        response = refusal(status, "a fault that was ordered") if status >= 400 else Response(status_code=status)
    else:
        kind = "text/html" if body.lstrip().startswith("<") else "text/plain"
        response = Response(body, status, media_type=kind)
    if fault.location is not None:
        response.headers["Location"] = fault.location
    return response


class Faults:
    """The routes that order faults, list and withdraw them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def order(self, request: Request) -> Response:
        try:
            rules = _parse_orders(await _bounded_json(request))
        except BadFault as bad:
            return JSONResponse({"errors": [str(bad)]}, 400)
        if len(self._desk.faults) + len(rules) > MAX_RULES:
            return JSONResponse({"errors": [f"at most {MAX_RULES} rules at a time; DELETE /faults first"]}, 400)
        self._desk.faults += rules
        return await self.show(request)

    async def show(self, _: Request) -> Response:
        return JSONResponse({"faults": [rule.as_json() for rule in self._desk.faults]})

    async def withdraw(self, request: Request) -> Response:
        self._desk.faults = ()
        return await self.show(request)


def _parse_orders(order: object) -> tuple[Fault, ...]:
    orders = order if isinstance(order, list) else [order]
    return tuple(parse_fault(one) for one in orders)


async def bounded(request: Request) -> bytes:
    """A small body. Raises BadFault for a large one."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_ORDER_BYTES:
            raise BadFault(f"at most {MAX_ORDER_BYTES} bytes")
    return data


async def _bounded_json(request: Request) -> Any:
    try:
        return json.loads(await bounded(request))
    except (ValueError, RecursionError) as reason:
        raise BadFault(f"not JSON: {reason}") from reason


def guarded(handler: Handler, keys: Keys | None) -> Handler:
    """The handler, open when `keys` is None, else for requests that carry one."""

    async def checked(request: Request) -> Response:
        return unauthorized() if keys and not keys.allow(request) else await handler(request)

    return checked


def build(desk: Desk, more: Sequence[BaseRoute], guard: Keys | None) -> Starlette:
    """The application. guard: keys that everything but uploads and health needs as well, None on loopback."""
    faults = Faults(desk)
    app = Starlette(
        routes=[
            Route(contract.UPLOAD_PATH, Uploads(desk).__call__, methods=["POST"]),
            Route("/faults", guarded(faults.show, guard), methods=["GET"]),
            Route("/faults", guarded(faults.order, guard), methods=["POST"]),
            Route("/faults", guarded(faults.withdraw, guard), methods=["DELETE"]),
            *more,
        ]
    )
    app.router.redirect_slashes = False
    return app
