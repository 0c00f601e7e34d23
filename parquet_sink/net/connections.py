"""Connections and their pools, as urllib3 lets both be replaced: they report to the deadline, and grow old.

Direct, through an HTTP proxy, or through a SOCKS proxy; with or without TLS.
"""

import ssl
import time
from typing import Any, Final
from urllib.parse import quote

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.contrib.socks import SOCKSConnection, SOCKSHTTPSConnection, SOCKSProxyManager

from parquet_sink.net.deadline import current_deadline
from parquet_sink.net.settings import ProxySettings

_SOCKS_SCHEMES: Final = {"SOCKS4": "socks4a", "SOCKS5": "socks5h"}  # the proxy resolves the server's name


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


def open_manager(
    context: ssl.SSLContext, proxy: ProxySettings | None, max_idle: int, keepalive_seconds: float
) -> urllib3.PoolManager:
    """A manager of pools to one server; threads may share it.

    max_idle: connections kept, at least one. Nothing is taken from the environment: no proxy, no credentials.
    """
    options: dict[str, Any] = {
        "num_pools": 1,
        "maxsize": max(1, max_idle),
        "block": False,
        "ssl_context": context,
        "cert_reqs": "CERT_REQUIRED",
    }
    if proxy is None:
        manager = urllib3.PoolManager(**options)
    elif proxy.type in _SOCKS_SCHEMES:
        password = proxy.password.reveal() if proxy.password else None
        manager = SOCKSProxyManager(proxy_url(proxy), username=proxy.username, password=password, **options)
    else:
        manager = urllib3.ProxyManager(proxy_url(proxy), proxy_headers=_proxy_headers(proxy), **options)
    socks = proxy is not None and proxy.type in _SOCKS_SCHEMES
    manager.pool_classes_by_scheme = _pool_classes(keepalive_seconds, socks=socks)
    return manager


def proxy_url(proxy: ProxySettings) -> str:
    """Address of a proxy, without credentials."""
    host = f"[{proxy.host}]" if ":" in proxy.host else quote(proxy.host, safe=".-_")
    return f"{_SOCKS_SCHEMES.get(proxy.type, 'http')}://{host}:{proxy.port}"


def _proxy_headers(proxy: ProxySettings) -> dict[str, str]:
    """The proxy's credential. urllib3 sends it with CONNECT, or with a request that the proxy forwards."""
    if proxy.username is None:
        return {}
    password = proxy.password.reveal() if proxy.password else ""
    credential = f"{proxy.username}:{password}".encode().decode("latin-1")  # make_headers encodes as Latin-1
    return dict(urllib3.make_headers(proxy_basic_auth=credential))


def _pool_classes(keepalive: float, *, socks: bool) -> dict[str, Any]:
    plain_base = SOCKSConnection if socks else HTTPConnection
    tls_base = SOCKSHTTPSConnection if socks else HTTPSConnection

    class Plain(_Timed, plain_base):  # type: ignore[misc,valid-type]
        keepalive_seconds = keepalive

    class Tls(_Timed, tls_base):  # type: ignore[misc,valid-type]
        keepalive_seconds = keepalive

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls = Tls

    return {"http": PlainPool, "https": TlsPool}
