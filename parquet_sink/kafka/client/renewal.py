"""A client that gets no answer any more is replaced: it may have no broker left to ask.

A broker that joins its cluster again after a pause may answer that there are topics and no brokers. librdkafka (2.10 to
2.16 at least) forgets all of its brokers then, and in some cases those of `bootstrap.servers` too, for ever
(https://github.com/confluentinc/librdkafka/issues/5301).
"""

import time
from collections.abc import Callable
from typing import Final

from parquet_sink.kafka.client import errors as client_errors

RENEW_S: Final = 15.0
"""Without any answer since something was asked, after which a client is replaced, and each time as long again."""


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
