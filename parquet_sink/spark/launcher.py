"""The one thread that starts queries: it knows the Spark session, by which data sources are found.

A start takes a second, more on a busy machine; whoever looks after connectors must not wait for it.
"""

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class Launcher:
    """Does what it is given, one after the other, in a thread that keeps no process alive."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        Thread(target=self._run, name="spark-launcher", daemon=True).start()

    def __call__(self, act: Callable[[], T], /) -> "Future[T]":
        future: Future[T] = Future()
        self._queue.put((act, future))
        return future

    def _run(self) -> None:
        while True:
            act, future = self._queue.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(act())
            except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
                future.set_exception(error)
