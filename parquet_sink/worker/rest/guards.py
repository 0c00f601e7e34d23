"""Refuse requests that web pages make a browser send, by the host they name and the origin they come from."""

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from parquet_sink.config.report import printable
from parquet_sink.net.settings import is_loopback
from parquet_sink.worker.rest.call import error_response
from parquet_sink.worker_config.rest.settings import CrossOrigin, RestSettings

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_LONGEST_ORIGIN: Final = 1_000
"""Browsers send a scheme, a name of 253 characters at most, and a port."""


class HostAndOrigin:
    """Refuse what a web page makes a browser send here: requests for another host name, or from another origin.

    An address of this machine alone answers to its own names alone, because any page in a browser on it can reach it.
    Any other address has TLS: there a browser compares the host with the certificate.
    """

    def __init__(self, app: ASGIApp, settings: RestSettings) -> None:
        self._app = app
        self._origins = origins_pattern(settings.cross_origin)
        every = (*settings.listeners, *(settings.admin or ()))
        hosts = {one.host for one in every if one.host} | {settings.advertised_host or "", settings.host_name}
        self._hosts = frozenset(host.lower() for host in hosts if host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if _on_loopback(scope) and not self._knows(host):
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
        try:
            return urlsplit(origin).netloc.lower() == host.lower() != ""
        except ValueError:  # such as `http://[`
            return False


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
