"""A deadline for one exchange that holds whatever the other side does: drip, stall, or never end.

Socket timeouts bound one read or write each, never their sum. So a thread keeps the time and shuts the socket down
when it is over, which ends any read or write at once.
"""

import socket
import threading
import time
from contextlib import suppress
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Final, Self

_CUT_AGAIN_SECONDS: Final = 0.05


class ExchangeDeadline:
    """Context manager around one request and its answer, made by the current thread.

    total_seconds: for the whole exchange. answer_seconds: from the end of the request to the end of the answer.
    `fired`: the time ran out. `connected`: a connection was there, TLS and proxies included.
    """

    def __init__(self, total_seconds: float, answer_seconds: float) -> None:
        self.answer_seconds = answer_seconds
        self.fired = self.connected = False
        self._end = time.monotonic() + total_seconds
        self._done = False
        self._connection: Any = None
        self._socket: Any = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="http-deadline", daemon=True)
        self._token: Token[ExchangeDeadline | None] | None = None

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)
        with self._changed:
            self._done = True
            self._changed.notify()
        self._thread.join()

    def seconds_left(self) -> float:
        """Until the deadline, at least 1 ms."""
        return max(0.001, self._end - time.monotonic())

    def connecting(self, connection: Any) -> None:
        """Names the connection of this exchange; its attribute `sock` is what is shut down when the time is over."""
        with self._changed:
            self._connection = connection
            self._socket = connection.sock or self._socket

    def has_connection(self, connection: Any) -> None:
        """The connection is there, be it new or used again."""
        self.connecting(connection)
        self.connected = True

    def request_sent(self) -> None:
        """From now on the time to answer runs."""
        with self._changed:
            self._end = min(self._end, time.monotonic() + self.answer_seconds)
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while not self._done:
                left = self._end - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                else:
                    self.fired = True
                    self._cut()
                    self._changed.wait(_CUT_AGAIN_SECONDS)  # a socket that is not there yet will be

    def _cut(self) -> None:
        socks: tuple[Any, ...] = (getattr(self._connection, "sock", None), self._socket)
        for sock in socks:
            with suppress(OSError, TypeError):  # not connected yet, or closed already
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # SSLSocket's own is not safe across threads


_current: ContextVar[ExchangeDeadline | None] = ContextVar("parquet_sink_exchange_deadline", default=None)


def current_deadline() -> ExchangeDeadline | None:
    """The deadline of the exchange that the current thread makes."""
    return _current.get()
