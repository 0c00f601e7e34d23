"""Which tasks of a source have work now, decided at each tick beside Spark's driver.

What the micro-batch before reached is stored first: nothing is planned beyond positions that are not.
"""

import time
from collections.abc import Callable
from typing import Final

from parquet_sink.kafka.planning.broker_outage import BrokerOutage
from parquet_sink.model.events import ConnectorRunning
from parquet_sink.pipeline.source_outcome import SourceWork
from parquet_sink.pipeline.source_positions import SourcePositions
from parquet_sink.pipeline.source_reached import SourceReached
from parquet_sink.pipeline.source_settings import SourceSettings
from parquet_sink.pipeline.source_tasks import guarded, reached, settings_of, task_class
from parquet_sink.sources.task import Looking
from parquet_sink.state.store import DRAINED, PAUSE, STARTED, STOP, StateStore

UNSEEN: Final = object()
"""What no look gives."""


class SourcePlanner:
    """Of one query. clock: seconds that never jump. draining: it ends when nothing is left."""

    def __init__(
        self,
        settings: SourceSettings,
        state: StateStore,
        positions: SourcePositions,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._state, self._positions, self._clock = settings, state, positions, clock
        self._outage = BrokerOutage(settings.name, state, now, settings.restart.away_ms)
        self._now = now
        self._looks: dict[int, object] = {}
        self._asked_s: dict[int, float] = {}
        self._again: set[int] = set(range(len(settings.tasks)))
        self._away_count = 0
        self._away_until_s = 0.0
        self.draining = False

    def begin(self) -> None:
        """Takes up where the source stood. Raises ConnectorError."""
        self._positions.read()
        self._state.set(STARTED, True)
        self._state.append_events([ConnectorRunning(self._settings.name, self._now())])

    def tick(self) -> list[SourceWork]:
        """What is to be done now; nothing while it is paused, stops, or brokers are away. Raises ConnectorError."""
        self._settle()
        if self._state.get(STOP):
            self._state.set(DRAINED, True)
            return []
        if self._state.get(PAUSE) or self._clock() < self._away_until_s:
            return []
        due = [number for number in range(len(self._settings.tasks)) if self._is_due(number)]
        self._again -= set(due)
        places, memories = self._positions.places, self._positions.memories
        return [SourceWork(number, places, memories.get(number, {})) for number in due]

    def close(self) -> None:
        self._positions.close()

    def _settle(self) -> None:
        found = self._positions.store(self._state)
        if found is None:
            return
        self._again |= {number for number, one in found.tasks.items() if one.more}
        if self.draining:
            self._again |= {number for number, one in found.tasks.items() if not one.idle}
        self._notice_brokers(found)

    def _notice_brokers(self, found: SourceReached) -> None:
        if found.away:
            self._outage.report(found.away)
            self._outage.check(found.away)
            self._away_count += 1
            bounds = self._settings.restart
            self._away_until_s = self._clock() + min(bounds.pause_ms * self._away_count, bounds.longest_ms) / 1000
            self._again |= found.tasks.keys()
        elif found.places:
            self._away_count = 0
            self._outage.end()

    def _is_due(self, number: int) -> bool:
        """Whether there may be news; what is seen now, and when it was asked, is noted."""
        before, asked_s = self._looks.get(number, UNSEEN), self._asked_s.get(number)
        self._looks[number] = seen = self._look(number)
        if number in self._again or (seen is not UNSEEN and seen != before):
            self._asked_s[number] = self._clock()
            return True
        if seen is not UNSEEN or self.draining:
            return False
        waited = asked_s is None or self._clock() - asked_s >= self._settings.poll_interval_ms / 1000
        if waited:
            self._asked_s[number] = self._clock()
        return waited

    def _look(self, number: int) -> object:
        """What a task sees that can look; `UNSEEN` of one that cannot. Raises SinkError."""
        task = guarded(task_class(self._settings.task))
        if not isinstance(task, Looking):
            return UNSEEN
        work = SourceWork(number, self._positions.places, self._positions.memories.get(number, {}))
        guarded(lambda: task.start(settings_of(self._settings, number), reached(work)))
        try:
            return guarded(task.look)
        finally:
            task.stop()
