"""How much of the time a replay works, so that it takes no more than its share from a connector that runs beside it.

Work is everything: reading, converting, writing and sending. Whoever works a share of the time can take no more than
that share of anything that both need, be it processor, disk, broker or target.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

CREDIT_S: Final = 1.0
"""Of idle time that is made up for: what waited long for a target does not work without a pause afterwards."""
NAP_S: Final = 0.25


@dataclass(frozen=True)
class Rate:
    """share: of the time, above 0 to 1. records_per_s: None for no such bound."""

    share: float = 1.0
    records_per_s: float | None = None

    @property
    def bounded(self) -> bool:
        return self.share < 1 or self.records_per_s is not None

    def __str__(self) -> str:
        if self.records_per_s is not None:
            return f"{self.records_per_s:,.0f} records/s"
        return f"{self.share:.0%} of the time"


FULL: Final = Rate()


class Pace:
    """Counts the time in which anything works, in whichever thread, and rests where that is too much."""

    def __init__(
        self,
        rate: Rate,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate, self._monotonic, self._sleep = rate, monotonic, sleep
        self._lock = threading.Lock()
        self._start_s = self._since_s = monotonic()
        self._workers, self._worked_s, self._records = 0, 0.0, 0

    @contextmanager
    def working(self) -> Iterator[None]:
        """What is done within is work; in several threads at once it counts once."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    @contextmanager
    def resting(self) -> Iterator[None]:
        """A worker does nothing within."""
        self._end()
        try:
            yield
        finally:
            self._begin()

    def rest(self, records: int) -> None:
        """To be called by a worker between two pieces of work, the next one of so many records; rests as is due."""
        if not self._rate.bounded:
            return
        with self.resting():
            while (due_s := self._due_s(records)) > 0:
                self._sleep(min(due_s, NAP_S))
            self._records += records

    def _due_s(self, records: int) -> float:
        with self._lock:
            now = self._monotonic()
            worked = self._worked_s + (now - self._since_s if self._workers else 0.0)
            needed = worked / self._rate.share
            if self._rate.records_per_s is not None:
                needed = max(needed, (self._records + records) / self._rate.records_per_s)
            idle = now - self._start_s - needed
            self._start_s += max(idle - CREDIT_S, 0.0)
            return -idle

    def _begin(self) -> None:
        with self._lock:
            self._workers += 1
            if self._workers == 1:
                self._since_s = self._monotonic()

    def _end(self) -> None:
        with self._lock:
            self._workers -= 1
            if not self._workers:
                self._worked_s += self._monotonic() - self._since_s
