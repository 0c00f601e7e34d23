"""The adapter that gives a session its connections: they report to the deadline, and grow old.

Direct, through an HTTP proxy, or through a SOCKS proxy; with or without TLS.
"""

import ssl
import time
from typing import Any, Final
from urllib.parse import quote

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.contrib.socks import SOCKSProxyManager

from parquet_sink.net.deadline import current_deadline
from parquet_sink.net.settings import ProxySettings

_SOCKS_SCHEMES: Final = {"SOCKS4": "socks4a", "SOCKS5": "socks5h"}  # the proxy resolves the server's name


class ServerAdapter(HTTPAdapter):
    """Connections to one server; threads may share it.

    context: verifies the server. max_idle: connections kept, at least one. keepalive_seconds: how long.
    """

    def __init__(
        self, context: ssl.SSLContext, proxy: ProxySettings | None, max_idle: int, keepalive_seconds: float
    ) -> None:
        self._context, self._proxy, self._keepalive = context, proxy, keepalive_seconds
        super().__init__(pool_connections=1, pool_maxsize=max(1, max_idle))

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **options: Any) -> None:
        """Of the one way there is. requests would make that of a proxy later, once for each thread that comes first."""
        options |= {"num_pools": connections, "maxsize": maxsize, "block": block, "ssl_context": self._context}
        self.poolmanager = _manager(self._proxy, options)
        pools = self.poolmanager.pool_classes_by_scheme
        self.poolmanager.pool_classes_by_scheme = {name: _timed(pools[name], self._keepalive) for name in pools}

    def request_url(self, request: requests.PreparedRequest, proxies: object) -> str:
        """The path; the whole address for a proxy that forwards the request."""
        assert request.url is not None
        forwarded = isinstance(self.poolmanager, urllib3.ProxyManager) and request.url.startswith("http:")
        return request.url if forwarded else request.path_url

    def cert_verify(self, conn: object, url: object, verify: object, cert: object) -> None:
        """The context does that. requests would have it trust certifi's authorities beside its own."""

    def close(self) -> None:
        """Closes idle connections at once; a later request opens new ones."""
        for key in self.poolmanager.pools.keys():  # noqa: SIM118 - urllib3's container cannot be iterated
            if (pool := self.poolmanager.pools.get(key)) is not None:
                pool.close()  # requests drops it, and it lives on in the traceback of a failed request
        super().close()


def _manager(proxy: ProxySettings | None, options: dict[str, Any]) -> urllib3.PoolManager:
    if proxy is None:
        return urllib3.PoolManager(**options)
    if proxy.type in _SOCKS_SCHEMES:
        password = proxy.password.reveal() if proxy.password else None
        return SOCKSProxyManager(proxy_url(proxy), username=proxy.username, password=password, **options)
    return urllib3.ProxyManager(proxy_url(proxy), proxy_headers=_proxy_headers(proxy), **options)


def proxy_url(proxy: ProxySettings) -> str:
    """Address of a proxy, without credentials."""
    host = f"[{proxy.host}]" if ":" in proxy.host else quote(proxy.host, safe=".-_")
    return f"{_SOCKS_SCHEMES.get(proxy.type, 'http')}://{host}:{proxy.port}"


def _proxy_headers(proxy: ProxySettings) -> dict[str, str]:
    """The proxy's credential, in UTF-8. It is sent with CONNECT, or with a request that the proxy forwards."""
    if proxy.username is None:
        return {}
    password = proxy.password.reveal() if proxy.password else ""
    credential = f"{proxy.username}:{password}".encode().decode("latin-1")  # make_headers encodes as Latin-1
    return dict(urllib3.make_headers(proxy_basic_auth=credential))


def _timed(pool: Any, keepalive_seconds: float) -> Any:
    """Such a pool, of connections that know the time."""
    connection = type("Timed", (_Timed, pool.ConnectionCls), {"keepalive_seconds": keepalive_seconds})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})


class _Timed:
    """Mixin for a connection: tells the exchange's deadline which socket it uses, and when the request has gone out.

    A connection that was idle for longer than `keepalive_seconds` counts as closed, and so is opened anew.
    """

    sock: Any
    timeout: Any
    keepalive_seconds: float
    used_at = 0.0

    @property
    def is_connected(self) -> bool:
        fresh = time.monotonic() - self.used_at <= self.keepalive_seconds
        return fresh and bool(super().is_connected)  # type: ignore[misc]

    def connect(self) -> None:
        deadline = current_deadline()
        if deadline is not None:
            deadline.connecting(self)
        super().connect()  # type: ignore[misc]
        if deadline is not None:
            deadline.has_connection(self)
            self.sock.settimeout(deadline.answer_seconds)  # a stalled body: the connect timeout is too short for it

    def request(self, *arguments: Any, **options: Any) -> None:
        deadline = current_deadline()
        if deadline is not None and self.sock is not None:
            deadline.has_connection(self)
            self.timeout = deadline.answer_seconds
        cut: ssl.SSLEOFError | None = None
        try:
            super().request(*arguments, **options)  # type: ignore[misc]
        except ssl.SSLEOFError as error:
            cut = error
        finally:
            if deadline is not None:
                deadline.request_sent()
        if cut is not None:
            raise self._alert() or cut

    def _alert(self) -> ssl.SSLError | None:
        """Why the server ended TLS while we wrote, if it said so: TLS 1.3 refuses a client's certificate only then."""
        try:
            self.sock.recv(1)
        except ssl.SSLError as error:
            return None if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) else error
        except OSError:
            pass
        return None

    def getresponse(self) -> Any:
        try:
            return super().getresponse()  # type: ignore[misc]
        finally:
            self.used_at = time.monotonic()
