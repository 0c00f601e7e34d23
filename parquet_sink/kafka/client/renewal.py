"""Kafka clients that hang: replaced when they get no answer any more, and calls without a bound are bounded.

A broker that joins its cluster again after a pause may answer that there are topics and no brokers. librdkafka (2.10 to
2.16 at least) forgets all of its brokers then, and in some cases those of `bootstrap.servers` too, for ever
(https://github.com/confluentinc/librdkafka/issues/5301).
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.process.threads import in_thread

T = TypeVar("T")
RENEW_S: Final = 15.0
"""Without any answer since something was asked, after which a client is replaced, and each time as long again."""


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


class Renewal:
    """When a client is to be replaced. `clock` gives seconds that never jump."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._silent_since_s: float | None = None

    def asked(self) -> None:
        """A request is sent."""
        if self._silent_since_s is None:
            self._silent_since_s = self._clock()

    def answered(self) -> None:
        """A broker answered, whatever it said."""
        self._silent_since_s = None

    def is_due(self, code: int) -> bool:
        """To be asked when a request failed. code: of the error; one that a broker gave is an answer."""
        if code >= 0 or code not in client_errors.PASSING:
            self.answered()
        if self._silent_since_s is None or self._clock() - self._silent_since_s < RENEW_S:
            return False
        self._silent_since_s = None
        return True
