"""Who may ask: the user's name and password, the host that was meant, the page that a request comes from."""

import hmac
import ipaddress
import logging
import re
import time
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from parquet_sink.config.report import printable
from parquet_sink.config.secret import Secret
from parquet_sink.net.settings import is_loopback
from parquet_sink.worker.rest.call import error_response
from parquet_sink.worker_config.rest.roles import Role, role_of
from parquet_sink.worker_config.rest.settings import CrossOrigin, RestSettings

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
CHALLENGE: Final = 'Basic realm="parquet-sink", charset="UTF-8"'
SIGNATURE: Final = "X-Parquet-Sink-Signature"
"""Header of a request that another worker of the group sent; whether it did is looked at where the body is read."""
ROLE_HEADER: Final = "X-Parquet-Sink-Role"
"""Of such a request: the role of who asked the other worker, signed with all else; absent for an admin."""
ROLE: Final = "parquet_sink.role"
"""The role of who asks, in the scope of a request; None: of who has none."""
SUBJECT: Final = "parquet_sink.subject"
"""Of a client's certificate, in the scope's state; absent without TLS, empty without a certificate."""
USER: Final = "parquet_sink.user"
"""Who signed in, in the scope of a request."""
_LONGEST_ORIGIN: Final = 1_000
"""Browsers send a scheme, a name of 253 characters at most, and a port."""
_REPORT_S: Final = 10.0
log = logging.getLogger(__name__)


class Users:
    """Names and passwords, of which only digests are kept."""

    def __init__(self, users: Sequence[tuple[str, Secret]]) -> None:
        self._known = tuple((name, _digest(f"{name}:{password.reveal()}".encode())) for name, password in users)

    def signed_in(self, authorization: str | None) -> str | None:
        """Who a header signs in, None for nobody; takes equally long for every wrong one."""
        scheme, _, credentials = (authorization or "").partition(" ")
        try:
            given = _digest(b64decode(credentials.strip(), validate=True))
        except (NotBase64, ValueError):
            return None
        matching = [name for name, known in self._known if hmac.compare_digest(given, known)]
        return matching[0] if matching and scheme.lower() == "basic" else None


def _digest(text: bytes) -> bytes:
    return sha256(text).digest()


class SignIn:
    """Lets nobody through who does not sign in. Names of those who failed are never logged: they may be passwords."""

    def __init__(
        self, app: ASGIApp, users: Users, *, anonymous_health: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app, self._users, self._clock = app, users, clock
        self._anonymous_health = anonymous_health
        self._warned_s, self._failures = -_REPORT_S, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        free = SIGNATURE in headers or self._is_anonymous(scope)
        user = self._users.signed_in(headers.get("authorization"))
        if free or user is not None:
            await self._app({**scope, USER: user}, receive, send)
            return
        self._warn(scope)
        refused = error_response(401, "User cannot access the resource.", {"WWW-Authenticate": CHALLENGE})
        await refused(scope, receive, send)

    def _is_anonymous(self, scope: Scope) -> bool:
        return self._anonymous_health and scope["path"] == "/health" and scope["method"] in ("GET", "HEAD")

    def _warn(self, scope: Scope) -> None:
        """One line in ten seconds, however often somebody tries."""
        self._failures += 1
        if self._clock() - self._warned_s < _REPORT_S:
            return
        client = scope.get("client")
        log.warning(
            "REST API: %d request(s) without a valid user and password were refused, the last from %s",
            self._failures,
            client[0] if client else "an unknown address",
        )
        self._warned_s, self._failures = self._clock(), 0


class Roles:
    """Gives each request the role of who asks: of the user, of the certificate, the lower one where there are both.

    Where nobody is told apart by a role everybody is an admin: who is let in at all is decided before.
    """

    def __init__(self, app: ASGIApp, settings: RestSettings) -> None:
        self._app, self._users, self._rules = app, dict(settings.roles), settings.certificate_roles

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, ROLE: self._role(scope)}, receive, send)

    def _role(self, scope: Scope) -> Role | None:
        of_user = self._users.get(scope.get(USER) or "", Role.ADMIN)
        if not self._rules or scope.get("scheme") != "https" or scope["path"] == "/health":
            return of_user
        certified = role_of(self._rules, scope.get("state", {}).get(SUBJECT, ()))
        return certified if certified is None or of_user.includes(certified) else of_user


def role_in(scope: Scope) -> Role | None:
    """The role of who asks."""
    found: Role | None = scope[ROLE]
    return found


def on_the_way(role: Role | None) -> str:
    """How a role is sent on to another worker: nothing for an admin, as all were before there were roles."""
    return "" if role is Role.ADMIN else str(role)


class HostAndOrigin:
    """Refuses what a web page makes a browser send here: requests for another host name, or from another origin.

    Without signing in, an address of this machine alone is as open as the pages that are looked at on it.
    """

    def __init__(self, app: ASGIApp, settings: RestSettings) -> None:
        self._app, self._signs_in = app, bool(settings.users)
        self._origins = origins_pattern(settings.cross_origin)
        every = (*settings.listeners, *(settings.admin or ()))
        hosts = {one.host for one in every if one.host} | {settings.advertised_host or "", settings.host_name}
        self._hosts = frozenset(host.lower() for host in hosts if host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._signs_in and _on_loopback(scope) and not self._knows(host):
            shown = printable(host[:200])
            message = f"{shown} is not a name of this worker; name it in rest.advertised.host.name, or use localhost."
            await error_response(421, message)(scope, receive, send)
        elif scope["method"] not in SAFE and not self._same_origin(headers.get("origin"), host):
            message = "This origin may not change anything; name it in access.control.allow.origin of the worker file."
            await error_response(403, message)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _knows(self, host: str) -> bool:
        name = _host_name(host)
        return not host or name in self._hosts or (name is not None and is_loopback(urlsplit(f"//{host}")))

    def _same_origin(self, origin: str | None, host: str) -> bool:
        if origin is None:
            return True
        if len(origin) > _LONGEST_ORIGIN:
            return False
        if self._origins is not None and self._origins.fullmatch(origin):
            return True
        return urlsplit(origin).netloc.lower() == host.lower() != ""


def origins_pattern(allowed: CrossOrigin) -> re.Pattern[str] | None:
    """Matches the origins that are let in; None for none. `*` stands for anything within one."""
    if not allowed.origins:
        return None
    each = ("[^/@]*".join(map(re.escape, one.split("*"))) if one != "*" else ".*" for one in allowed.origins)
    return re.compile("|".join(f"(?:{one})" for one in each))


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _on_loopback(scope: Scope) -> bool:
    """Whether the request came to an address of this machine alone."""
    server = scope.get("server")
    try:
        return server is not None and ipaddress.ip_address(server[0]).is_loopback
    except ValueError:
        return False
