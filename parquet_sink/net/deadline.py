"""A deadline for one exchange that holds whatever the other side does: drip, stall, or never end.

Socket timeouts bound one read or write each, never their sum. So a thread, one for the process, keeps the time and
shuts the socket down when it is over, which ends any read or write at once.
"""

import math
import os
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
    `end`: in seconds of the monotonic clock. `fired`: the time ran out. `connected`: a connection was there, TLS and
    proxies included.
    """

    def __init__(self, total_seconds: float, answer_seconds: float) -> None:
        self.answer_seconds = answer_seconds
        self.fired = self.connected = False
        self.end = time.monotonic() + total_seconds
        self._connection: Any = None
        self._socket: Any = None
        self._token: Token[ExchangeDeadline | None] | None = None

    def __enter__(self) -> Self:
        _timekeeper.watch(self)
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _timekeeper.forget(self)
        if self._token is not None:
            _current.reset(self._token)

    def seconds_left(self) -> float:
        """Until the deadline, at least 1 ms."""
        return max(0.001, self.end - time.monotonic())

    def connecting(self, connection: Any) -> None:
        """Names the connection of this exchange; its attribute `sock` is what is shut down when the time is over."""
        self._connection = connection
        self._socket = connection.sock or self._socket

    def has_connection(self, connection: Any) -> None:
        """The connection is there, be it new or used again."""
        self.connecting(connection)
        self.connected = True

    def request_sent(self) -> None:
        """From now on the time to answer runs."""
        self.end = min(self.end, time.monotonic() + self.answer_seconds)
        _timekeeper.watch(self)

    def fire(self) -> None:
        """The time is over. Called again and again until the exchange has ended: a socket may be there only then."""
        self.fired = True
        socks: tuple[Any, ...] = (getattr(self._connection, "sock", None), self._socket)
        for sock in socks:
            with suppress(OSError, TypeError):  # not connected yet, or closed already
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # SSLSocket's own is not safe across threads


class _Timekeeper:
    """Fires what is late. Its thread sleeps until the next deadline; most exchanges end before without waking it."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Watches nothing. A fork has neither the thread nor, perhaps, a lock that anyone will release."""
        self._changed = threading.Condition()
        self._under_way: set[ExchangeDeadline] = set()
        self._awake_at = math.inf
        self._thread: threading.Thread | None = None

    def watch(self, deadline: ExchangeDeadline) -> None:
        """Until `forget`; again, when its end has come nearer."""
        with self._changed:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="http-deadline", daemon=True)
                self._thread.start()
            self._under_way.add(deadline)
            if deadline.end < self._awake_at:
                self._changed.notify()

    def forget(self, deadline: ExchangeDeadline) -> None:
        """It is not fired any more: its connection is the next exchange's."""
        with self._changed:
            self._under_way.discard(deadline)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                late = [one for one in self._under_way if one.end <= now]
                for one in late:
                    one.fire()
                again = now + _CUT_AGAIN_SECONDS if late else math.inf
                self._awake_at = min([again, *(one.end for one in self._under_way if one.end > now)])
                self._changed.wait(None if self._awake_at == math.inf else self._awake_at - now)


_timekeeper: Final = _Timekeeper()
os.register_at_fork(after_in_child=_timekeeper.begin)
_current: ContextVar[ExchangeDeadline | None] = ContextVar("parquet_sink_exchange_deadline", default=None)


def current_deadline() -> ExchangeDeadline | None:
    """The deadline of the exchange that the current thread makes."""
    return _current.get()
