"""No broker answers: a log line and an event every half minute, and one of each when a broker answers again."""

import logging
from collections.abc import Callable
from typing import Final

from parquet_sink.model.events import ConnectorRunning, ConnectorWaiting
from parquet_sink.state.store import STARTED, StateStore

log = logging.getLogger(__name__)

REPORT_S: Final = 30.0


class BrokerOutage:
    """Of the brokers of one connector. `now` gives epoch seconds."""

    def __init__(self, name: str, state: StateStore, now: Callable[[], float]) -> None:
        self._name, self._state, self._now = name, state, now
        self._reported_s: float | None = None

    def report(self, why: object) -> None:
        """No broker answers, or none yet."""
        now = self._now()
        if self._reported_s is None or now - self._reported_s >= REPORT_S:
            self._reported_s = now
            self._state.append_events([ConnectorWaiting(self._name, now, str(why))])
            log.warning("connector %s: %s Nothing is lost; trying on.", self._name, why)

    def end(self) -> None:
        """A broker answered."""
        if self._reported_s is not None:
            self._reported_s = None
            if self._state.get(STARTED):
                self._state.append_events([ConnectorRunning(self._name, self._now())])
            log.info("connector %s: Kafka answers again.", self._name)
