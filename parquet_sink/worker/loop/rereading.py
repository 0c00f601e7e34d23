"""Configurations that cannot be read while a config provider is away: read again, with back-off, beside the loop.

So is what is stored when a worker begins: a provider that hangs holds up its own connectors, and no request.
"""

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from parquet_sink.connectors.loading import Loaded
from parquet_sink.process.threads import in_thread
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.worker.loop.aside import Aside
from parquet_sink.worker.loop.hosted import Hosted
from parquet_sink.worker.loop.roster import Roster, tell

AT_ONCE: Final = 4
"""So many are begun at each step, so that a worker with many connectors does not judge all of them side by side."""
log = logging.getLogger(__name__)


@dataclass
class _Waiting:
    """Of one connector. of: what it had when this began. reading: None between two tries."""

    of: Loaded
    since_s: float
    tries: int = 0
    reading: "Future[Loaded] | None" = None
    stored: Mapping[str, str] | None = None


class Rereading:
    """One for all connectors of a roster. aside: reads."""

    def __init__(self, roster: Roster, aside: Aside = in_thread) -> None:
        self._roster, self._aside = roster, aside
        self._waiting: dict[Hosted, _Waiting] = {}
        self._begun = 0

    def step(self) -> None:
        """Takes up what was read, and asks again where that is due. Raises nothing."""
        for one in [one for one in self._waiting if not _waits(one, self._roster)]:
            del self._waiting[one]
        self._begun = 0
        for one in self._roster.hosted.values():
            if _waits(one, self._roster):
                self._look(one)

    def _look(self, one: Hosted) -> None:
        found = self._waiting.get(one)
        if found is None or found.of is not one.loaded:  # changed by hand: what is read now is of no use
            found = self._waiting[one] = _Waiting(one.loaded, time.monotonic())
            one.read_again_s = self._due(found, one.loaded) if one.loaded.problems else time.monotonic()
        if found.reading is not None and found.reading.done():
            self._take(one, found)
        elif found.reading is None and time.monotonic() >= one.read_again_s and self._begun < AT_ONCE:
            self._begun += 1
            found.stored = one.stored.config
            found.reading = self._aside(partial(self._roster.load, found.stored, one.name))

    def _take(self, one: Hosted, found: _Waiting) -> None:
        reading, found.reading = found.reading, None
        assert reading is not None
        if found.stored is not one.stored.config:
            return
        loaded = _outcome(reading, one)
        if not one.loaded.problems or loaded.problems != one.loaded.problems:
            tell(one.name, loaded)
        found.of = one.loaded = loaded
        if loaded.again is not None:
            one.read_again_s = self._due(found, loaded)
            if 0 <= loaded.again.away_ms <= 1_000 * (time.monotonic() - found.since_s):
                one.give_up()
                tell(one.name, one.loaded)

    def _due(self, found: _Waiting, loaded: Loaded) -> float:
        """When it is read again."""
        bounds = loaded.again or RestartSettings()
        found.tries += 1
        return time.monotonic() + min(bounds.pause_ms * found.tries, bounds.longest_ms) / 1_000


def _outcome(reading: "Future[Loaded]", one: Hosted) -> Loaded:
    """What nobody foresaw is the connector's problem, and no other's."""
    try:
        return reading.result()
    except Exception as error:
        log.debug("connector %s", one.name, exc_info=error)
        problem = f"Its configuration cannot be judged: {type(error).__name__}. The log has more at level DEBUG."
        return replace(one.loaded, problems=(problem,), again=None)


def _waits(one: Hosted, roster: Roster) -> bool:
    return roster.hosted.get(one.name) is one and one.unread
