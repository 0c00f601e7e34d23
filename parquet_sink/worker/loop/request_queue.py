"""Work between the worker's loop and other threads: the queue of requests to the loop, and work in the background."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from parquet_sink.worker.herder.errors import HerderError, ShuttingDown, TimedOut

T = TypeVar("T")
MOST_WAITING: Final = 1_000
"""Requests that may wait; one more is refused."""
ENDING: Final = "The worker is shutting down; ask again once it is back."
log = logging.getLogger(__name__)


class Background(Protocol):
    """A way to do something: `at_once`, `process.threads.in_thread`, or in a thread for that alone (`Launcher`)."""

    def __call__(self, act: Callable[[], T], /) -> "Future[T]": ...


def at_once(act: Callable[[], T], /) -> "Future[T]":
    """Here and now, for who has nothing else to look after."""
    future: Future[T] = Future()
    try:
        future.set_result(act())
    except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
        future.set_exception(error)
    return future


class RequestQueue:
    """`ask` from any thread; `work` in the loop."""

    def __init__(self) -> None:
        self._queue: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = queue.Queue(MOST_WAITING)
        self._guard = threading.Lock()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the loop takes no more requests, and begins nothing any more."""
        return self._closed

    def ask(self, act: Callable[[], T], timeout_s: float) -> T:
        """What `act` returns or raises in the loop. Raises TimedOut, ShuttingDown."""
        future = self.put(act)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            if future.cancel():
                raise TimedOut("Request timed out. The worker is busy; it was not done.") from None
            raise TimedOut("Request timed out. The worker has begun it, and may still finish it.") from None

    def put(self, act: Callable[[], T]) -> "Future[T]":
        """As `ask`, without waiting."""
        future: Future[T] = Future()
        with self._guard:
            if self._closed:
                raise ShuttingDown(ENDING)
            try:
                self._queue.put_nowait((act, future))
            except queue.Full:
                raise TimedOut("Request timed out: too many requests wait before it. It was not done.") from None
        return future

    def wake(self) -> None:
        """Ends the loop's wait, without a request."""
        with suppress(HerderError):
            self.put(lambda: None)

    def work(self, wait_s: float, after: Callable[[], None]) -> None:
        """Waits for so long for a request, and does all that are there by then. after: done before each is answered."""
        deadline_s = time.monotonic() + wait_s
        try:
            act, future = self._queue.get(timeout=max(wait_s, 0.001))
            while True:
                self._do(act, future, after)
                if time.monotonic() >= deadline_s:
                    return
                act, future = self._queue.get_nowait()
        except queue.Empty:
            return

    def _do(self, act: Callable[[], Any], future: "Future[Any]", after: Callable[[], None]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            done = act()
            after()
        except Exception as error:
            if not isinstance(error, HerderError):
                log.exception("a request to the worker failed")
            future.set_exception(error)
        else:
            future.set_result(done)

    def close(self) -> None:
        """Whoever waits, or asks later, gets ShuttingDown."""
        with self._guard:
            self._closed = True
        while True:
            try:
                _, future = self._queue.get_nowait()
            except queue.Empty:
                return
            if future.set_running_or_notify_cancel():
                future.set_exception(ShuttingDown(ENDING))
