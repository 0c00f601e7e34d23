"""While connectors are taken over on busy cores, those that run admit nothing more for a moment. Pure.

A takeover is some CPU seconds, and what it takes over delivers nothing until they are spent. What runs beside it would
take its share of the cores all the while, to deliver in time what is late by a moment otherwise.
"""

import os
from collections.abc import Callable
from typing import Final

from parquet_sink.process.usage import usable_cores

LONGEST_S: Final = 8.0
"""So long it may last, however long the takeover takes."""
REST_S: Final = 16.0
"""So long it does not happen again then: what runs is not held up by takeovers that follow each other."""


def cores_are_busy() -> bool:
    """Whether more wants to run on this machine than it has cores, on average over the last minute."""
    return os.getloadavg()[0] > usable_cores()


class GivingWay:
    """Of one worker. busy: whether its cores are."""

    def __init__(self, busy: Callable[[], bool] = cores_are_busy) -> None:
        self._busy = busy
        self._since_s: float | None = None
        self._rests_until_s = 0.0

    def step(self, now_s: float, *, awaited: bool) -> bool:
        """Whether what runs gives way now. awaited: whether a takeover is under way. now_s: monotonic."""
        if self._since_s is None and awaited and now_s >= self._rests_until_s and self._busy():
            self._since_s = now_s
        if self._since_s is not None and not (awaited and now_s < self._since_s + LONGEST_S):
            self._since_s, self._rests_until_s = None, now_s + REST_S
        return self._since_s is not None
