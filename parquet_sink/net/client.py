"""HTTP with one server: each request within its bounds, whatever the server does."""

import ssl
from typing import Final

import urllib3

from parquet_sink.net.connections import open_manager
from parquet_sink.net.deadline import ExchangeDeadline
from parquet_sink.net.exchange import Answer, Body, FailureKind, Limits, Request, RequestFailed
from parquet_sink.net.failures import failure_of
from parquet_sink.net.settings import ProxySettings

_ERRORS: Final = (urllib3.exceptions.HTTPError, OSError)


class HttpClient:
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
        self._manager = open_manager(context, proxy, max_idle, keepalive_seconds)

    def send(self, request: Request, limits: Limits) -> Answer:
        """One exchange. Raises RequestFailed when there is no answer, and what iterating the body raises."""
        deadline = ExchangeDeadline(limits.total_seconds, limits.answer_seconds)
        try:
            with deadline:
                return self._exchange(request, limits, deadline)
        except _ERRORS as error:
            raise _failed(error, deadline, request.body) from error

    def close(self) -> None:
        """Closes idle connections; a later exchange opens new ones."""
        for key in self._manager.pools.keys():  # noqa: SIM118 - urllib3's container cannot be iterated
            if (pool := self._manager.pools.get(key)) is not None:
                pool.close()
        self._manager.clear()

    def _exchange(self, request: Request, limits: Limits, deadline: ExchangeDeadline) -> Answer:
        connect_seconds = min(limits.connect_seconds, deadline.seconds_left())
        response = self._manager.urlopen(
            request.method,
            request.url,
            body=request.body,
            headers=request.all_headers(),
            timeout=urllib3.Timeout(connect=connect_seconds, read=deadline.answer_seconds),
            retries=False,
            redirect=False,
            preload_content=False,
        )
        try:
            content, broken, too_long = _read(response, limits.answer_bytes, deadline)
            if broken or too_long:
                response.close()
        finally:
            response.release_conn()
        named = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status, content, named, broken, too_long)


def _read(
    response: urllib3.BaseHTTPResponse, most_bytes: int, deadline: ExchangeDeadline
) -> tuple[bytes, FailureKind | None, bool]:
    """At most so much of the body, why it broke off, and whether it goes on. What came before trouble is kept."""
    parts: list[bytes] = []
    size = 0
    try:
        while size <= most_bytes:
            part = response.read1(most_bytes + 1 - size, decode_content=True)
            if not part:
                broken = FailureKind.NO_ANSWER if deadline.fired else None
                return b"".join(parts), broken, False
            parts.append(part)
            size += len(part)
    except _ERRORS as error:
        late = (
            deadline.fired or failure_of(error, request_started=True, body_started=True).kind is FailureKind.NO_ANSWER
        )
        return b"".join(parts)[:most_bytes], FailureKind.NO_ANSWER if late else FailureKind.BROKEN, False
    return b"".join(parts)[:most_bytes], None, True


def _failed(error: BaseException, deadline: ExchangeDeadline, body: Body | None) -> RequestFailed:
    body_started = body is not None and body.started
    request_started = body_started if body is not None else deadline.connected
    if deadline.fired:
        return RequestFailed(FailureKind.NO_ANSWER if request_started else FailureKind.CONNECT_TIMEOUT)
    return failure_of(error, request_started=request_started, body_started=body_started)
