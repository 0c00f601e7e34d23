"""Decide who sends a request and with which role, once, before a route is looked for.

Every request has exactly one caller: a worker of the group, a user, a client certificate, or nobody. Routes read it
with `caller_of`. Who must sign in and does not, or has no role, reaches no route at all.
"""

import hmac
import logging
import time
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from parquet_sink.config.secret import Secret
from parquet_sink.worker.rest.call import RestError, error_response, read_body
from parquet_sink.worker.rest.peers import NOT_BELIEVED, ROLE_HEADER, SIGNATURE, Forwarded, Peers
from parquet_sink.worker_config.rest.roles import Role, role_named, role_of
from parquet_sink.worker_config.rest.settings import RestSettings

CHALLENGE: Final = 'Basic realm="parquet-sink", charset="UTF-8"'
SUBJECT: Final = "parquet_sink.subject"
"""Key of the scope's state: the subject of a client's certificate; absent without TLS, empty without a certificate."""
_CALLER: Final = "parquet_sink.caller"
_REPORT_S: Final = 10.0
_NO_RULE: Final = (
    "The client's certificate fits no rule of rest.client.certificate.roles of the worker file; add a rule for it."
)
log = logging.getLogger(__name__)


class CallerKind(StrEnum):
    """How a caller proved who it is."""

    WORKER = "worker"
    USER = "user"
    CERTIFICATE = "certificate"
    NOBODY = "nobody"


@dataclass(frozen=True)
class Caller:
    """The sender of a request. role: what it may do. user: the name that signed in, None without one."""

    kind: CallerKind
    role: Role
    user: str | None = None


def caller_of(scope: Scope) -> Caller:
    """Return the caller of a request. Raise KeyError if `Authentication` was not passed: such a request is a defect."""
    caller: Caller = scope[_CALLER]
    return caller


class Users:
    """Names and passwords, of which only digests are kept."""

    def __init__(self, users: Sequence[tuple[str, Secret]]) -> None:
        self._digests = tuple((name, _digest(f"{name}:{password.reveal()}".encode())) for name, password in users)

    def find_user(self, authorization: str | None) -> str | None:
        """Return the user that an Authorization header signs in, or None; take equally long for every wrong header."""
        scheme, _, credentials = (authorization or "").partition(" ")
        try:
            given = _digest(b64decode(credentials.strip(), validate=True))
        except (NotBase64, ValueError):
            return None
        matching = [name for name, digest in self._digests if hmac.compare_digest(given, digest)]
        return matching[0] if matching and scheme.lower() == "basic" else None


def _digest(text: bytes) -> bytes:
    return sha256(text).digest()


class Authentication:
    """Give each request its caller, or refuse it with 401 or 403.

    Names of users that failed are never logged, because they may be passwords. clock: monotonic seconds.
    """

    def __init__(
        self, app: ASGIApp, settings: RestSettings, peers: Peers, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app, self._settings, self._peers, self._clock = app, settings, peers, clock
        self._users, self._roles = Users(settings.users), dict(settings.roles)
        self._reported_s, self._failures = -_REPORT_S, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            if SIGNATURE in request.headers:
                body = await read_body(request)
                caller, receive = self._verify_worker(request, body), _replay(body, receive)
            else:
                caller = self._identify_client(request)
        except RestError as error:
            await error_response(error.status, error.message, error.headers)(scope, receive, send)
        except ClientDisconnect:
            return
        else:
            await self._app({**scope, _CALLER: caller}, receive, send)

    def _verify_worker(self, request: Request, body: bytes) -> Caller:
        """Return the worker that signed a request, with the role of its own client. Raise RestError for a forgery."""
        forwarded = to_forwarded(request, body, request.headers.get(ROLE_HEADER, ""))
        role = role_named(forwarded.role) if forwarded.role else Role.ADMIN
        if role is None or not self._peers.believes(forwarded):
            raise RestError(403, NOT_BELIEVED)
        return Caller(CallerKind.WORKER, role)

    def _identify_client(self, request: Request) -> Caller:
        """Return the user, the certificate or nobody. Raise RestError for who must sign in, or has no role."""
        user = self._users.find_user(request.headers.get("authorization")) if self._settings.users else None
        is_probe = request.method in ("GET", "HEAD") and request.scope["path"] == "/health"
        if self._settings.users and user is None:
            if is_probe and self._settings.anonymous_health:
                return Caller(CallerKind.NOBODY, Role.VIEWER)
            self._report_failure(request)
            raise RestError(401, "User cannot access the resource.", {"WWW-Authenticate": CHALLENGE})
        role = Role.ADMIN if user is None else self._roles.get(user, Role.ADMIN)
        subject = request.scope.get("state", {}).get(SUBJECT, ())
        if self._settings.certificate_roles and request.scope.get("scheme") == "https":
            certified = role_of(self._settings.certificate_roles, subject) or (Role.VIEWER if is_probe else None)
            if certified is None:
                raise RestError(403, _NO_RULE)
            role = certified if role.includes(certified) else role
        if user is not None:
            return Caller(CallerKind.USER, role, user)
        return Caller(CallerKind.CERTIFICATE if subject else CallerKind.NOBODY, role)

    def _report_failure(self, request: Request) -> None:
        """Log at most one line in ten seconds, however often somebody tries."""
        self._failures += 1
        if self._clock() - self._reported_s < _REPORT_S:
            return
        log.warning(
            "REST API: %d request(s) without a valid user and password were refused, the last from %s",
            self._failures,
            request.client.host if request.client else "an unknown address",
        )
        self._reported_s, self._failures = self._clock(), 0


def to_forwarded(request: Request, body: bytes, role: str) -> Forwarded:
    """Return a request in the form that workers sign and send on. role: "" for an admin."""
    scope = request.scope
    target: bytes = scope.get("raw_path") or scope["path"].encode()
    if scope.get("query_string"):
        target += b"?" + scope["query_string"]
    return Forwarded(request.method, target.decode("latin-1"), dict(request.headers), body, role)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was read once more, and then what follows it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again
