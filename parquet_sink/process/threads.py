"""Threads that keep no process alive."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_thread(call: Callable[[], T]) -> "Future[T]":
    """Runs `call` in a daemon thread of its own; its result, or its exception, is the future's.

    An executor of `concurrent.futures` will not do where a call may hang: the interpreter waits for its threads.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
            future.set_exception(error)

    threading.Thread(target=run, name="aside", daemon=True).start()
    return future
