"""Exceptions of requests, urllib3, ssl and PySocks, told apart as the ways in which an exchange fails."""

import re
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import socks  # type: ignore[import-untyped]
import urllib3
from urllib3.exceptions import NewConnectionError

from parquet_sink.net.exchange import FailureKind, RequestFailed

_TUNNEL_STATUS: Final = re.compile(r"Tunnel connection failed: (\d{3})")
_PROXY_REFUSES: Final = range(400, 500)
_PROXY_MAY_PASS: Final = frozenset({408, 425, 429})
_TLS_CUT: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


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
