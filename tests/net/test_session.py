"""Addresses of proxies."""

import socket
import ssl
from http.client import RemoteDisconnected

import pytest
import socks
from urllib3.exceptions import ProtocolError, ProxyError, ReadTimeoutError, SSLError

from parquet_sink.config.secret import Secret
from parquet_sink.net.exchange import FailureKind
from parquet_sink.net.session import failure_of, proxy_url
from parquet_sink.net.settings import ProxySettings


@pytest.mark.parametrize(
    ("proxy", "url"),
    [
        (ProxySettings("p", 1, "HTTP", "u", Secret("s")), "http://p:1"),
        (ProxySettings("p", 1, "SOCKS4"), "socks4a://p:1"),
        (ProxySettings("p", 1, "SOCKS5", "u", Secret("s")), "socks5h://p:1"),
        (ProxySettings("::1", 1), "http://[::1]:1"),
        (ProxySettings("a@b/c", 1), "http://a%40b%2Fc:1"),
    ],
)
def test_proxy_url_has_no_credentials(proxy: ProxySettings, url: str) -> None:
    """A proxy's address holds no user or password, so no message of a library can show them."""
    assert proxy_url(proxy) == url


def caused(error: Exception, *causes: BaseException) -> Exception:
    """An error with a chain of causes."""
    below: BaseException = error
    for cause in causes:
        below.__cause__ = cause
        below = cause
    return error


VERIFICATION = ssl.SSLCertVerificationError(1, "certificate verify failed")
VERIFICATION.verify_message = "self-signed certificate"


@pytest.mark.parametrize(
    ("error", "before", "within"),
    [
        (ProtocolError("aborted", ConnectionResetError(104, "reset")), FailureKind.BROKEN, FailureKind.BROKEN),
        (ReadTimeoutError(None, "/", "slow"), FailureKind.CONNECT_TIMEOUT, FailureKind.NO_ANSWER),  # type: ignore[arg-type]
        (TimeoutError(), FailureKind.CONNECT_TIMEOUT, FailureKind.NO_ANSWER),
        (SSLError(VERIFICATION), FailureKind.TLS, FailureKind.TLS),
        (SSLError(ssl.SSLError(1, "alert: certificate required")), FailureKind.TLS, FailureKind.BROKEN),
        (caused(SSLError("cut"), OSError(), ssl.SSLEOFError(8, "EOF")), FailureKind.BROKEN, FailureKind.BROKEN),
        (ProxyError("no", OSError("Tunnel connection failed: 407 No")), *[FailureKind.PROXY_REFUSED] * 2),
        (ProxyError("no", OSError("Tunnel connection failed: 502 No")), *[FailureKind.PROXY] * 2),
        (ProxyError("no", OSError("Tunnel connection failed: 429 No")), *[FailureKind.PROXY] * 2),
        (ProxyError("no", ConnectionRefusedError(111, "refused")), *[FailureKind.PROXY] * 2),
        (ProxyError("no", RemoteDisconnected("no answer")), FailureKind.PROXY, FailureKind.BROKEN),
        (ProxyError("no", TimeoutError()), FailureKind.PROXY, FailureKind.NO_ANSWER),
        (caused(OSError(), socks.SOCKS5AuthError("no")), *[FailureKind.PROXY_REFUSED] * 2),
    ],
)
def test_kinds(error: Exception, before: FailureKind, within: FailureKind) -> None:
    """What happened before any of the body was sent is told from what happened after."""
    assert failure_of(error, connected=False).kind is before
    assert failure_of(error, connected=True, body_started=True).kind is within


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (SSLError(VERIFICATION), "self-signed certificate"),
        (caused(OSError("x"), socket.gaierror(-2, "Name or service not known")), "Name or service not known"),
        (caused(OSError("x"), ConnectionRefusedError(111, "Connection refused")), "Connection refused"),
        (ProtocolError("odd"), "ProtocolError"),
    ],
)
def test_details_are_the_systems_words(error: Exception, detail: str) -> None:
    """The innermost error that the system or TLS has words for is quoted."""
    assert failure_of(error, connected=False).detail == detail
