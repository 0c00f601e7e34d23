"""Requests that botocore signed go out by our own client: its TLS, proxies, deadlines and bounds are the push API's.

botocore lets an answer be given before it sends a request (its event `before-send`); so nothing of its own connections,
retries of connections or proxies of the environment is used for a bucket.
"""

import io
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Final, Protocol

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from requests import Request

from parquet_sink.net.exchange import Answer, FailureKind, Limits, RequestFailed
from parquet_sink.net.session import HttpSession
from parquet_sink.targets.s3.failures import STATUS_HEADER

PIECE_BYTES: Final = 256 * 1024
MOST_ANSWER_BYTES: Final = 32 << 20
"""An answer is a piece of an object, or a page of a list; both are asked for by size."""


class Readable(Protocol):
    """A body that is read from where it stands."""

    def read(self, size: int, /) -> bytes: ...


class SentBody:
    """The body of one request, of a known length."""

    def __init__(self, body: Readable, size_bytes: int) -> None:
        self._body, self._size = body, size_bytes

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        while piece := self._body.read(PIECE_BYTES):
            yield piece


class Transport:
    """Sends requests to one server; threads may share it. headers: added to each. monotonic: seconds."""

    def __init__(
        self,
        http: HttpSession,
        connect_seconds: float,
        answer_seconds: float,
        headers: Mapping[str, str] = MappingProxyType({}),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._http, self._monotonic = http, monotonic
        self._headers = headers
        self._connect_s, self._answer_s = connect_seconds, answer_seconds
        self._end: ContextVar[float] = ContextVar("parquet_sink_s3_end")

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """All requests of the current thread herein take so many seconds at most."""
        token = self._end.set(self._monotonic() + seconds)
        try:
            yield
        finally:
            self._end.reset(token)

    def seconds_left(self) -> float:
        """Of `within`."""
        return self._end.get() - self._monotonic()

    def send(self, request: AWSPreparedRequest, **event: Any) -> AWSResponse:
        """One exchange. Raises RequestFailed, and what reading the body raises."""
        left = self.seconds_left()
        if left <= 0:
            raise RequestFailed(FailureKind.CONNECT_TIMEOUT, "no time was left for it")
        limits = Limits(left, self._connect_s, self._answer_s, MOST_ANSWER_BYTES)
        answer = self._http.exchange(_request(request, self._headers), limits)
        if answer.broken is not None or answer.too_long:
            raise RequestFailed(answer.broken or FailureKind.BROKEN, f"of an answer with status {answer.status}")
        headers = {**answer.headers, STATUS_HEADER: str(answer.status)}
        return AWSResponse(request.url, answer.status, headers, _Raw(answer))

    def close(self) -> None:
        """Closes idle connections."""
        self._http.close()


class _Raw(io.BytesIO):
    """An answer's body as botocore reads it."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body)

    def stream(self) -> Iterator[bytes]:
        yield self.read()


def _request(request: AWSPreparedRequest, more: Mapping[str, str]) -> Request:
    """Without `Expect`: our client sends the body at once, and hears an early refusal all the same."""
    headers = {name: _text(value) for name, value in request.headers.items()}
    length = next((int(value) for name, value in headers.items() if name.lower() == "content-length"), 0)
    kept = {name: value for name, value in headers.items() if name.lower() not in ("content-length", "expect")}
    body = request.body
    if hasattr(body, "read"):
        body = SentBody(body, length) if length else None  # an empty stream would go out as chunks, which S3 refuses
    return Request(request.method, request.url, headers={**kept, **more}, data=body)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
