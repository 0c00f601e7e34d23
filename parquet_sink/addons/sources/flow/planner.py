"""Which tasks of a source have work now, decided at each tick beside Spark's driver.

What the micro-batch before reached is stored first: nothing is planned beyond positions that are not.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from parquet_sink.addons.sources.flow.outcome import SourceWork
from parquet_sink.addons.sources.flow.positions import SourcePositions
from parquet_sink.addons.sources.flow.reached import SourceReached
from parquet_sink.addons.sources.flow.tasks import guarded, reached, settings_of, task_class
from parquet_sink.addons.sources.offsets.connect_form import Places
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.addons.sources.task import Looking, Memory, Noticing, SourceTask
from parquet_sink.errors import RunFilesLost
from parquet_sink.model.events import ConnectorRunning
from parquet_sink.planner.unavailable import BrokerOutage
from parquet_sink.process import lease
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import BEGUN, DRAINED, PAUSE, STARTED, STOP

UNREPORTED: Final = (
    "What became of the last work of the source is not known, because the connector's state file does not say: it was "
    "removed or changed while it was in use. Keep others out of connect.ems.tmp.dir. Nothing is lost: what may not be "
    "sent yet is sent again."
)
UNSEEN: Final = object()
"""What no look gives."""


class SourcePlanner:
    """Of one query. clock: seconds that never jump. draining: it ends when nothing is left."""

    def __init__(
        self,
        settings: SourceSettings,
        state: SqliteStore,
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
        self._given = False
        self.draining = False

    def begin(self) -> None:
        """Takes up where the source stood. Raises ConnectorError.

        Which files there are is seen before, because brokers that keep positions may be away for long.
        """
        self._positions.remember_unread(self._noticed)
        self._positions.read()
        self._state.set(STARTED, True)
        self._state.set(BEGUN, True)
        self._state.append_events([ConnectorRunning(self._settings.name, self._now())])

    def tick(self) -> list[SourceWork]:
        """What is to be done now; nothing while it is paused, stops, brokers are away, or the worker's lease is over.

        Asked for once what was given before is done. Raises ConnectorError.
        """
        owned = lease.holds(self._settings.owned.lease)
        if owned:  # else another may have stored what comes later
            self._settle()
        if self._state.get(STOP):
            self._state.set(DRAINED, True)
            return []
        seen = self._look_all()
        if not owned or self._state.get(PAUSE) or self._clock() < self._away_until_s:
            return []
        due = [number for number, one in enumerate(seen) if self._is_due(number, one)]
        self._again -= set(due)
        self._given = bool(due)
        places, memories = self._positions.places, self._positions.memories
        return [SourceWork(number, places, memories.get(number, {})) for number in due]

    def close(self) -> None:
        self._positions.close()

    def _settle(self) -> None:
        found = self._positions.store(self._state)
        if found is None:
            if self._given:
                raise RunFilesLost(UNREPORTED)
            return
        self._given = False
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

    def _is_due(self, number: int, seen: object) -> bool:
        """Whether there may be news; what is seen now, and when it was asked, is noted."""
        before, asked_s = self._looks.get(number, UNSEEN), self._asked_s.get(number)
        self._looks[number] = seen
        if number in self._again or (seen is not UNSEEN and seen != before):
            self._asked_s[number] = self._clock()
            return True
        if seen is not UNSEEN or self.draining:
            return False
        waited = asked_s is None or self._clock() - asked_s >= self._settings.poll_interval_ms / 1000
        if waited:
            self._asked_s[number] = self._clock()
        return waited

    def _look_all(self) -> list[object]:
        """What each task sees, also while nothing is planned: what it noticed is remembered. Raises ConnectorError."""
        seen: list[object] = []
        noticed: dict[int, Memory] = {}
        for number in range(len(self._settings.tasks)):
            work = SourceWork(number, self._positions.places, self._positions.memories.get(number, {}))
            found, memory = self._look(work)
            seen.append(found)
            noticed |= {} if memory is None else {number: memory}
        if noticed:
            self._positions.remember(noticed)
        return seen

    def _noticed(self, places: Places, memories: Mapping[int, Memory]) -> Mapping[int, Memory]:
        """What tasks that notice things remember from now on, if these are the places."""
        found = dict(memories)
        for number in range(len(self._settings.tasks)):
            if isinstance(self._made(), Noticing):
                _, memory = self._look(SourceWork(number, places, memories.get(number, {})))
                found |= {} if memory is None else {number: memory}
        return found

    def _look(self, work: SourceWork) -> tuple[object, Memory | None]:
        """What a task sees that can look, `UNSEEN` of one that cannot, and what it noticed. Raises SinkError."""
        task = self._made()
        if not isinstance(task, Looking):
            return UNSEEN, None
        guarded(lambda: task.start(settings_of(self._settings, work.task), reached(work)))
        try:
            seen = guarded(task.look)
            return seen, guarded(task.noticed) if isinstance(task, Noticing) else None
        finally:
            task.stop()

    def _made(self) -> SourceTask:
        return guarded(task_class(self._settings.task))
