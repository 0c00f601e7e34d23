"""Says that no broker answers: in the log every half minute, and to the program as long as it lasts."""

import logging
from collections.abc import Callable
from typing import Final

from parquet_sink.state.store import OUTAGE, StateStore

log = logging.getLogger(__name__)

TELL_S: Final = 30.0
AWAY: Final = "away"
"""The word in the state file: why no broker answers, null while one does."""


class Absence:
    """Of the brokers of one connector. `now` gives seconds."""

    def __init__(self, name: str, state: StateStore, now: Callable[[], float]) -> None:
        self._name, self._state, self._now = name, state, now
        self._told: float | None = None

    def tell(self, why: object) -> None:
        """No broker answers, or none yet."""
        now = self._now()
        if self._told is None or now - self._told >= TELL_S:
            self._told = now
            self._state.set(OUTAGE, str(why))
            log.warning("connector %s: %s Nothing is lost; trying on.", self._name, why)

    def over(self) -> None:
        """A broker answered."""
        if self._told is not None:
            self._told = None
            self._state.set(OUTAGE, None)
            log.info("connector %s: Kafka answers again.", self._name)
