"""No broker answers: a log line and an event every half minute, and one of each when a broker answers again.

It lasts as long as `connect.ems.away.timeout.ms` allows.
"""

import logging
from collections.abc import Callable
from typing import Final

from parquet_sink.errors import BrokersGone
from parquet_sink.model.events import ConnectorRunning, ConnectorWaiting
from parquet_sink.state.sqlite.store import SqliteStore
from parquet_sink.state.store import STARTED

log = logging.getLogger(__name__)

REPORT_S: Final = 30.0


class BrokerOutage:
    """Of the brokers of one connector. `now` gives epoch seconds. most_ms: how long it may last, -1 without end."""

    def __init__(self, name: str, state: SqliteStore, now: Callable[[], float], most_ms: int = -1) -> None:
        self._name, self._state, self._now, self._most_ms = name, state, now, most_ms
        self._since_s: float | None = None
        self._reported_s: float | None = None

    def report(self, why: object) -> None:
        """No broker answers, or none yet."""
        now = self._now()
        if self._since_s is None:
            self._since_s = now
        if self._reported_s is None or now - self._reported_s >= REPORT_S:
            self._reported_s = now
            self._state.append_events([ConnectorWaiting(self._name, now, str(why))])
            log.warning("connector %s: %s Nothing is lost; trying on.", self._name, why)

    def check(self, why: object) -> None:
        """Raises BrokersGone when it has lasted too long."""
        if self._since_s is not None and 0 <= self._most_ms <= 1_000 * (self._now() - self._since_s):
            raise BrokersGone(
                f"{why} That is so for {self._now() - self._since_s:.0f} s, longer than connect.ems.away.timeout.ms "
                f"allows ({self._most_ms} ms): see whether the brokers run and can be reached, then start the "
                "connector again."
            )

    def end(self) -> None:
        """A broker answered."""
        self._since_s = None
        if self._reported_s is not None:
            self._reported_s = None
            if self._state.get(STARTED):
                self._state.append_events([ConnectorRunning(self._name, self._now())])
            log.info("connector %s: Kafka answers again.", self._name)
