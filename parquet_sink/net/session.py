"""A session of requests with one server, whose exchanges end within their limits, whatever the server does."""

import ssl
from http.cookiejar import DefaultCookiePolicy
from typing import Final

import requests
import urllib3

from parquet_sink.net.adapter import ServerAdapter
from parquet_sink.net.deadline import ExchangeDeadline
from parquet_sink.net.exchange import Answer, FailureKind, Limits, RequestFailed
from parquet_sink.net.failures import failure_of
from parquet_sink.net.settings import ProxySettings

_ERRORS: Final = (urllib3.exceptions.HTTPError, OSError)  # errors of requests are OSErrors


class HttpSession(requests.Session):
    """Exchanges with one server through pooled connections; threads may share it.

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
        super().__init__()
        self.trust_env = False
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        adapter = ServerAdapter(context, proxy, max_idle, keepalive_seconds)
        for scheme in ("http://", "https://"):
            self.mount(scheme, adapter)

    def exchange(self, request: requests.Request, limits: Limits) -> Answer:
        """One request and its answer. Raises RequestFailed when there is none, and what iterating the body raises."""
        deadline = ExchangeDeadline(limits.total_seconds, limits.answer_seconds)
        try:
            with deadline:
                times = (min(limits.connect_seconds, deadline.seconds_left()), deadline.answer_seconds)
                with self.send(request.prepare(), timeout=times, stream=True, allow_redirects=False) as response:
                    return _answer(response, limits.answer_bytes, deadline)
        except _ERRORS as error:
            raise _failed(error, deadline, has_body=bool(request.data) or request.json is not None) from error

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Nowhere: to find the next request, requests would read the whole body of this answer."""


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
