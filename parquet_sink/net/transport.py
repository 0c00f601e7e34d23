"""HTTP connections of one target: pool, proxy, TLS and deadlines, as a requests session.

The session takes nothing from the environment: proxies and credentials (HTTPS_PROXY, .netrc) come from the connector's
keys alone, and no cookie is kept.
"""

import ssl
import time
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Final
from urllib.parse import quote

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.contrib.socks import SOCKSConnection, SOCKSHTTPSConnection, SOCKSProxyManager

from parquet_sink.net.deadline import current
from parquet_sink.net.settings import ProxySettings
from parquet_sink.targets.push.settings import PushSettings

_SOCKS_SCHEMES: Final = {"SOCKS4": "socks4a", "SOCKS5": "socks5h"}  # the proxy resolves the target's name


class _Watched:
    """Mixin for a connection: tells the attempt's watch which socket it uses, and when the request has gone out."""

    sock: Any
    timeout: Any
    idle_since = 0.0

    def connect(self) -> None:
        watch = current()
        if watch is not None:
            watch.follow(self)
        super().connect()  # type: ignore[misc]
        if watch is not None:
            watch.follow(self)
            self.sock.settimeout(watch.answer_seconds)  # a stalled body: the connect timeout is too short for it

    def request(self, *arguments: Any, **options: Any) -> None:
        watch = current()
        if watch is not None:
            watch.follow(self)
            if self.sock is not None:
                self.timeout = watch.answer_seconds
        try:
            super().request(*arguments, **options)  # type: ignore[misc]
        finally:
            if watch is not None:
                watch.request_sent()


class _WatchedHTTP(_Watched, HTTPConnection):
    pass


class _WatchedHTTPS(_Watched, HTTPSConnection):
    pass


class _WatchedSocksHTTP(_Watched, SOCKSConnection):
    pass


class _WatchedSocksHTTPS(_Watched, SOCKSHTTPSConnection):
    pass


class _Fresh:
    """Mixin for a pool: a connection that was idle longer than `keepalive_seconds` is opened anew."""

    keepalive_seconds: float = 300.0

    def _get_conn(self, timeout: float | None = None) -> Any:
        connection = super()._get_conn(timeout)  # type: ignore[misc]
        if connection.sock is not None and time.monotonic() - connection.idle_since > self.keepalive_seconds:
            connection.close()
        return connection

    def _put_conn(self, connection: Any) -> None:
        if connection is not None:
            connection.idle_since = time.monotonic()
        super()._put_conn(connection)  # type: ignore[misc]


class PushAdapter(HTTPAdapter):
    """Adapter of one target; `context` verifies it when it is reached by https."""

    def __init__(self, settings: PushSettings, context: ssl.SSLContext) -> None:
        self._proxy, self._context = settings.proxy, context
        self._pools = _pool_classes(settings.pool_keepalive_ms / 1000, socks=_is_socks(settings.proxy))
        self._idle = max(1, settings.pool_max_idle)
        super().__init__(pool_connections=1, pool_maxsize=self._idle, max_retries=0)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        if proxy not in self.proxy_manager:
            manager = (
                self._socks_manager(proxy) if _is_socks(self._proxy) else super().proxy_manager_for(proxy, **options)
            )
            manager.pool_classes_by_scheme = self._pools
            self.proxy_manager[proxy] = manager
        return self.proxy_manager[proxy]

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        """The proxy's credential. urllib3 sends it with CONNECT, or with a request that the proxy forwards."""
        user = self._proxy.username if self._proxy else None
        if self._proxy is None or user is None:
            return {}
        password = self._proxy.password.reveal() if self._proxy.password else ""
        credential = f"{user}:{password}".encode().decode("latin-1")  # make_headers encodes as Latin-1: keeps UTF-8
        return dict(urllib3.make_headers(proxy_basic_auth=credential))

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: Any, cert: Any = None
    ) -> Any:
        """Our own TLS context in place of the one requests would choose (certifi's list)."""
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        tls = {"ssl_context": self._context, "cert_reqs": "CERT_REQUIRED"} if host["scheme"] == "https" else {}
        return host, tls

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Nothing to add: verification is set in the context, and certifi's list must not be loaded into it."""

    def close(self) -> None:
        """Closes idle connections now: urllib3 leaves that to the garbage collector, which an error may hold up."""
        for manager in (self.poolmanager, *self.proxy_manager.values()):
            for key in list(manager.pools.keys()):
                if (pool := manager.pools.get(key)) is not None:
                    pool.close()
        super().close()

    def _socks_manager(self, proxy: str) -> Any:
        assert self._proxy is not None
        password = self._proxy.password.reveal() if self._proxy.password else None
        return SOCKSProxyManager(
            proxy,
            username=self._proxy.username,
            password=password,
            num_pools=1,
            maxsize=self._idle,
            block=False,
        )


def open_session(settings: PushSettings, context: ssl.SSLContext) -> requests.Session:
    """A session that threads may share: what is not thread-safe in requests (cookies, redirects) is switched off."""
    session = requests.Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    adapter = PushAdapter(settings, context)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    if settings.proxy is not None:
        session.proxies = dict.fromkeys(("http", "https"), proxy_url(settings.proxy))
    return session


def proxy_url(proxy: ProxySettings) -> str:
    """Address of a proxy, without credentials."""
    host = f"[{proxy.host}]" if ":" in proxy.host else quote(proxy.host, safe=".-_")
    return f"{_SOCKS_SCHEMES.get(proxy.type, 'http')}://{host}:{proxy.port}"


def _is_socks(proxy: ProxySettings | None) -> bool:
    return proxy is not None and proxy.type in _SOCKS_SCHEMES


def _pool_classes(keepalive_seconds: float, *, socks: bool) -> dict[str, Any]:
    plain = _WatchedSocksHTTP if socks else _WatchedHTTP
    tls = _WatchedSocksHTTPS if socks else _WatchedHTTPS

    class Plain(_Fresh, HTTPConnectionPool):
        ConnectionCls = plain

    class Tls(_Fresh, HTTPSConnectionPool):
        ConnectionCls = tls

    Plain.keepalive_seconds = Tls.keepalive_seconds = keepalive_seconds
    return {"http": Plain, "https": Tls}
