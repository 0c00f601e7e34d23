"""Exceptions of requests, urllib3, ssl and PySocks as kinds of failure."""

import re
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import requests
import socks  # type: ignore[import-untyped]
from urllib3.exceptions import NewConnectionError

from parquet_sink.targets.outcome import Failure

_TUNNEL_STATUS: Final = re.compile(r"Tunnel connection failed: (\d{3})")
_PROXY_REFUSES: Final = range(400, 500)
_TLS_CUT: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


def failure_of(error: BaseException, *, body_started: bool) -> tuple[Failure, str]:
    """The kind of failure, and what the library said of it. `body_started`: some of the file may have gone out."""
    chain = list(_chain(error))
    kind = _tls_failure(chain, body_started=body_started) or _proxy_failure(chain)
    return kind or _connection_failure(chain, body_started=body_started), _detail(chain)


def _tls_failure(chain: list[BaseException], *, body_started: bool) -> Failure | None:
    """A handshake that fails for a reason would fail again; one that is cut, or trouble after it, is a broken line."""
    if _holds(chain, ssl.SSLCertVerificationError):
        return Failure.TLS
    if not _holds(chain, requests.exceptions.SSLError) or _holds(chain, _TLS_CUT):
        return None
    return Failure.BROKEN if body_started else Failure.TLS


def _connection_failure(chain: list[BaseException], *, body_started: bool) -> Failure:
    """Time that runs out before the body has begun was spent on connecting, the TLS handshake included."""
    if _holds(chain, (requests.Timeout, TimeoutError)):
        return Failure.NO_ANSWER if body_started else Failure.CONNECT_TIMEOUT
    return Failure.CONNECT if _holds(chain, NewConnectionError) else Failure.BROKEN


def _proxy_failure(chain: list[BaseException]) -> Failure | None:
    for error in chain:
        if isinstance(error, socks.SOCKS5AuthError):
            return Failure.PROXY_REFUSED
        if status := _TUNNEL_STATUS.search(str(error)):
            refused = int(status[1]) in _PROXY_REFUSES and int(status[1]) not in (408, 425, 429)
            return Failure.PROXY_REFUSED if refused else Failure.PROXY
    return Failure.PROXY if _holds(chain, (requests.exceptions.ProxyError, socks.ProxyError)) else None


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
