"""Bounds calls of the Kafka client that have no bound of their own: a broker that hangs would hold them for ever."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from parquet_sink.process.threads import in_thread

T = TypeVar("T")


class TimeLimited:
    """Runs calls one after the other, each for `limit_s` seconds at most. One that takes longer goes on alone."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._before: Future[object] | None = None

    @property
    def busy(self) -> bool:
        """Whether the last call still goes on."""
        return self._before is not None and not self._before.done()

    def run(self, call: Callable[[], T]) -> T:
        """What `call` returns or raises. TimeoutError when it, or the one before it, takes too long."""
        if self._before is not None:
            self._before.exception(self._limit_s)
        future = in_thread(call)
        self._before = future  # type: ignore[assignment]
        found = future.result(self._limit_s)
        self._before = None
        return found
