"""HTTP sessions of requests with one server: connections with deadlines and proxies, exchanges and their failures."""

import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Self
from urllib.parse import quote

import requests
import socks  # type: ignore[import-untyped]
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.contrib.socks import SOCKSProxyManager
from urllib3.exceptions import NewConnectionError

from parquet_sink.net.deadline import ExchangeDeadline, current_deadline
from parquet_sink.net.exchange import Answer, FailureKind, Limits, RequestFailed
from parquet_sink.net.settings import HttpSettings, ProxySettings
from parquet_sink.net.tls import target_authorities, tls_context

_TUNNEL_STATUS: Final = re.compile(r"Tunnel connection failed: (\d{3})")
_PROXY_REFUSES: Final = range(400, 500)
_PROXY_MAY_PASS: Final = frozenset({408, 425, 429})
_TLS_CUT: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
_SOCKS_SCHEMES: Final = {"SOCKS4": "socks4a", "SOCKS5": "socks5h"}  # the proxy resolves the server's name
_ERRORS: Final = (urllib3.exceptions.HTTPError, OSError)  # errors of requests are OSErrors


def failure_of(error: BaseException, *, connected: bool, body_started: bool = False) -> RequestFailed:
    """What an exception of the libraries means.

    connected: the server may have seen some of the request; body_started: some of its body.
    """
    chain = list(_chain(error))
    kind = _tls_failure(chain, body_started=body_started) or _proxy_failure(chain, body_started=body_started)
    return RequestFailed(kind or _connection_failure(chain, connected=connected), _detail(chain))


def _tls_failure(chain: list[BaseException], *, body_started: bool) -> FailureKind | None:
    """A handshake that fails for a reason would fail again; one that is cut, or trouble after it, is a broken line."""
    if _holds(chain, ssl.SSLCertVerificationError):
        return FailureKind.TLS
    if not _holds(chain, urllib3.exceptions.SSLError) or _holds(chain, _TLS_CUT):
        return None
    return FailureKind.BROKEN if body_started else FailureKind.TLS


def _connection_failure(chain: list[BaseException], *, connected: bool) -> FailureKind:
    """Time that runs out before the request has begun was spent on connecting, the TLS handshake included."""
    if _holds(chain, (urllib3.exceptions.TimeoutError, TimeoutError)) and not _holds(chain, NewConnectionError):
        return FailureKind.NO_ANSWER if connected else FailureKind.CONNECT_TIMEOUT
    return FailureKind.CONNECT if _holds(chain, NewConnectionError) else FailureKind.BROKEN


def _proxy_failure(chain: list[BaseException], *, body_started: bool) -> FailureKind | None:
    """Who has sent of the body had a connection: what ends it then may be the server's doing, which may have it all."""
    for error in chain:
        if isinstance(error, socks.SOCKS5AuthError):
            return FailureKind.PROXY_REFUSED
        if status := _TUNNEL_STATUS.search(str(error)):
            refused = int(status[1]) in _PROXY_REFUSES and int(status[1]) not in _PROXY_MAY_PASS
            return FailureKind.PROXY_REFUSED if refused else FailureKind.PROXY
    if body_started and not _holds(chain, (ConnectionRefusedError, NewConnectionError)):
        return None
    return FailureKind.PROXY if _holds(chain, (urllib3.exceptions.ProxyError, socks.ProxyError)) else None


def _holds(chain: list[BaseException], kinds: type[BaseException] | tuple[type[BaseException], ...]) -> bool:
    return any(isinstance(error, kinds) for error in chain)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and all it was made from: causes, contexts, reasons and arguments."""
    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = (one.__cause__, one.__context__, getattr(one, "reason", None), *one.args)
        waiting.extend(e for e in inner if isinstance(e, BaseException))


def _detail(chain: list[BaseException]) -> str:
    """The words of the innermost error of the system or of TLS, else of the outermost."""
    inner = [e for e in chain if isinstance(e, ssl.SSLError | socket.gaierror | ConnectionError | socks.ProxyError)]
    if inner and isinstance(inner[-1], ssl.SSLCertVerificationError):
        return inner[-1].verify_message
    if inner:
        return str(getattr(inner[-1], "strerror", None) or inner[-1])
    return type(chain[0]).__name__


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


def proxy_secrets(proxy: ProxySettings | None) -> tuple[str, ...]:
    """What a message about a proxy may not hold."""
    return () if proxy is None or proxy.password is None else (proxy.password.reveal(),)


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


class HttpSession:
    """Exchanges with one server through pooled connections; threads may share it. A context manager.

    Redirects are answers like others. Nothing is tried again, no cookie is kept, and nothing is taken from the
    environment. context: verifies the server. max_idle, keepalive_seconds: how many connections are kept, how long.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        proxy: ProxySettings | None = None,
        *,
        max_idle: int = 1,
        keepalive_seconds: float = 300.0,
    ) -> None:
        self._adapter = ServerAdapter(context, proxy, max_idle, keepalive_seconds)

    def exchange(self, request: requests.Request, limits: Limits) -> Answer:
        """One request and its answer. Raises RequestFailed when there is none, and what iterating the body raises."""
        deadline = ExchangeDeadline(limits.total_seconds, limits.answer_seconds)
        try:
            with deadline:
                times = (min(limits.connect_seconds, deadline.seconds_left()), deadline.answer_seconds)
                with self._adapter.send(_prepared(request), stream=True, timeout=times) as response:
                    return _answer(response, limits.answer_bytes, deadline)
        except _ERRORS as error:
            raise _failed(error, deadline, has_body=bool(request.data) or request.json is not None) from error

    def close(self) -> None:
        """Closes idle connections; a later request opens new ones."""
        self._adapter.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _prepared(request: requests.Request) -> requests.PreparedRequest:
    """As `Request.prepare` does it, but for cookies and parameters, which nobody gives; addresses are kept."""
    prepared = requests.PreparedRequest()
    prepared.method, prepared.url = request.method, _whole_url(request.url)
    prepared.prepare_headers(request.headers)
    prepared.prepare_body(request.data, None, request.json)
    prepared.prepare_auth(request.auth, request.url)
    return prepared


@lru_cache(maxsize=64)
def _whole_url(url: str) -> str | None:
    """The address as it is sent: what may not stand in one is quoted, its host is in ASCII. Raises RequestException."""
    prepared = requests.PreparedRequest()
    prepared.prepare_url(url, None)
    return prepared.url


def session_for(settings: HttpSettings, environment: Mapping[str, str]) -> HttpSession:
    """Of a target. Raises InvalidConfiguration when the CA file cannot be read."""
    return HttpSession(
        tls_context(target_authorities(settings.ca_file, environment)),
        settings.proxy,
        max_idle=settings.pool_max_idle,
        keepalive_seconds=settings.pool_keepalive_ms / 1000,
    )


def _answer(response: requests.Response, most_bytes: int, deadline: ExchangeDeadline) -> Answer:
    """At most so much of the body, why it broke off, and whether it goes on. What came before trouble is kept."""
    parts: list[bytes] = []
    left, broken = most_bytes + 1, None
    try:
        while left > 0 and (part := response.raw.read1(left, decode_content=True)):
            parts.append(part)
            left -= len(part)
        if left > 0 and deadline.fired:
            broken = FailureKind.NO_ANSWER
    except _ERRORS as error:
        late = deadline.fired or failure_of(error, connected=True).kind is FailureKind.NO_ANSWER
        broken = FailureKind.NO_ANSWER if late else FailureKind.BROKEN
    body = b"".join(parts)[:most_bytes]
    return Answer(response.status_code, body, response.headers, broken, too_long=broken is None and left <= 0)


def _failed(error: BaseException, deadline: ExchangeDeadline, *, has_body: bool) -> RequestFailed:
    if deadline.fired:
        return RequestFailed(FailureKind.NO_ANSWER if deadline.connected else FailureKind.CONNECT_TIMEOUT)
    return failure_of(error, connected=deadline.connected, body_started=deadline.connected and has_body)
