"""What happens with a worker's connectors by itself: one after the other they begin, and become what they are to be."""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from parquet_sink.connectors.loading import Loaded
from parquet_sink.process.threads import in_thread
from parquet_sink.process.usage import usable_cores
from parquet_sink.settings.connector import ConnectorSettings, RestartSettings
from parquet_sink.worker.herder.errors import StoreFailed
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.connector_registry import ConnectorRegistry, log_loaded
from parquet_sink.worker.loop.managed_connector import ManagedConnector
from parquet_sink.worker.loop.request_queue import Background
from parquet_sink.worker.loop.status import Status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE: Final = 4
"""So many are begun at each step, so that a worker with many connectors does not validate all of them side by side."""
START_S: Final = 10.0
"""How long a connector has to begin before another takes its turn: forty at once would keep each other from it."""
SIDE_BY_SIDE: Final = usable_cores() + 1
"""So many begin at once: while brokers are asked for one, the cores have another. The first one begins alone."""
log = logging.getLogger(__name__)


@dataclass
class _Waiting:
    """Of one connector. of: what it had when this began. reading: None between two tries."""

    of: Loaded
    since_s: float
    tries: int = 0
    reading: "Future[Loaded] | None" = None
    stored: Mapping[str, str] | None = None


class ConfigurationRetry:
    """One for all connectors of a registry. background: reads."""

    def __init__(self, registry: ConnectorRegistry, background: Background = in_thread) -> None:
        self._registry, self._background = registry, background
        self._waiting: dict[ManagedConnector, _Waiting] = {}
        self._begun = 0

    def step(self) -> None:
        """Takes up what was read, and asks again where that is due. Raises nothing."""
        for one in [one for one in self._waiting if not _waits(one, self._registry)]:
            del self._waiting[one]
        self._begun = 0
        for one in self._registry.connectors.values():
            if _waits(one, self._registry):
                self._look(one)

    def _look(self, one: ManagedConnector) -> None:
        found = self._waiting.get(one)
        if found is None or found.of is not one.loaded:  # changed by hand: what is read now is of no use
            found = self._waiting[one] = _Waiting(one.loaded, time.monotonic())
            one.read_again_s = self._due(found, one.loaded) if one.loaded.problems else time.monotonic()
        if found.reading is not None and found.reading.done():
            self._take(one, found)
        elif found.reading is None and time.monotonic() >= one.read_again_s and self._begun < AT_ONCE:
            self._begun += 1
            found.stored = one.stored.config
            found.reading = self._background(partial(self._registry.load, found.stored, one.name))

    def _take(self, one: ManagedConnector, found: _Waiting) -> None:
        reading, found.reading = found.reading, None
        assert reading is not None
        if found.stored is not one.stored.config:
            return
        loaded = _outcome(reading, one)
        if not one.loaded.problems or loaded.problems != one.loaded.problems:
            log_loaded(one.name, loaded)
        found.of = one.loaded = loaded
        if loaded.again is not None:
            one.read_again_s = self._due(found, loaded)
            if 0 <= loaded.again.away_ms <= 1_000 * (time.monotonic() - found.since_s):
                one.give_up()
                log_loaded(one.name, one.loaded)

    def _due(self, found: _Waiting, loaded: Loaded) -> float:
        bounds = loaded.again or RestartSettings()
        found.tries += 1
        return time.monotonic() + min(bounds.pause_ms * found.tries, bounds.longest_ms) / 1_000


def _outcome(reading: "Future[Loaded]", one: ManagedConnector) -> Loaded:
    """An uncaught error is the connector's problem, and no other's."""
    try:
        return reading.result()
    except Exception as error:
        log.debug("connector %s", one.name, exc_info=error)
        problem = f"Its configuration cannot be validated: {type(error).__name__}. The log has more at level DEBUG."
        return replace(one.loaded, problems=(problem,), again=None)


def _waits(one: ManagedConnector, registry: ConnectorRegistry) -> bool:
    return registry.connectors.get(one.name) is one and one.unread


class Supervisor:
    """make: a connector that is not prepared yet. track_topics: whether active topics are kept.

    background: reads configurations.
    """

    def __init__(
        self,
        registry: ConnectorRegistry,
        make: Callable[[ConnectorSettings], Connector],
        *,
        track_topics: bool = True,
        background: Background = in_thread,
    ) -> None:
        self._registry, self._make, self._track_topics = registry, make, track_topics
        self._configuration_retry = ConfigurationRetry(registry, background)
        self._starting: list[tuple[Connector, float]] = []
        self._warm, self._side_by_side = False, 1

    @property
    def busy(self) -> bool:
        return any(one.counts for one in self._registry.all())

    @property
    def active(self) -> bool:
        """Whether anything runs, also beside the query of one that has ended. Asked when all are to end."""
        return any(run.active or not run.at_rest for run in self._registry.runs)

    @property
    def failed(self) -> bool:
        return any(one.failed for one in self._registry.connectors.values())

    def longest_stop_s(self) -> float:
        """How long the flush in progress may take, of the most patient."""
        return max((run.settings.stop_timeout_ms / 1000 for run in self._registry.runs), default=0.0)

    def step(self, stop_requested_at_s: float | None = None) -> None:
        """Brings each connector nearer to what it is to be; what needs no Spark. Raises nothing."""
        if stop_requested_at_s is None:
            self._configuration_retry.step()
        for one in list(self._registry.all()):
            try:
                one.step(stop_requested_at_s)
                if stop_requested_at_s is None and one.wants_run and not self._in_the_way(one):
                    assert one.settings is not None
                    one.begin(self._make(one.settings))
            except Exception as error:  # noqa: BLE001 - it ends one connector, and none of the others
                self._uncaught(one, error)
        for one in [one for one in self._registry.leaving if one.run is None]:
            self._registry.leaving.remove(one)
            if one.name not in self._registry.connectors:
                self._registry.aggregator.forget(one.name)
        self._note_topics()

    def _uncaught(self, one: ManagedConnector, error: Exception) -> None:
        log.debug("connector %s", one.name, exc_info=error)
        if one.run is not None and one.run.status is not Status.FAILED:
            one.run.fail_unexpectedly(error)

    def _in_the_way(self, one: ManagedConnector) -> bool:
        """Whether a run that is ending has its name, and so its folder, or its consumer group."""
        settings = one.settings
        assert settings is not None
        others = [other.settings for other in self._registry.runs]
        return any(other.name == settings.name or _share_group(other, settings) for other in others)

    def next_to_start(self, now_s: float) -> Connector | None:
        """One that is prepared, while few enough are beginning; what was taken over first. now_s: monotonic."""
        before = len(self._starting)
        self._starting = [
            (one, until_s)
            for one, until_s in self._starting
            if one.status is Status.RUNNING and not one.has_started() and now_s < until_s
        ]
        if before > len(self._starting):
            self._side_by_side = SIDE_BY_SIDE
        if len(self._starting) >= self._side_by_side:
            return None
        waiting = [one for one in self._registry.all() if one.run is not None and one.run.status is Status.STARTING]
        if not waiting:
            return None
        found = min(waiting, key=lambda one: not one.taken_over)
        found.taken_over = False
        assert found.run is not None
        self._starting.append((found.run, now_s + START_S))
        return found.run

    def warmed_up(self) -> None:
        """Spark is warm already: the first connector begins as the others do. From any thread."""
        self._warm, self._side_by_side = True, SIDE_BY_SIDE

    @property
    def starting(self) -> bool:
        """Whether a connector is beginning now, or is to."""
        return bool(self._starting) or any(run.status is Status.STARTING for run in self._registry.runs)

    def start(self, connector: Connector, spark: "SparkSession", slots: int) -> None:
        """The first one warms Spark up for all."""
        paused = any(one.run is connector and one.paused for one in self._registry.all())
        warm_up, self._warm = not self._warm, True
        known = [one.settings for one in self._registry.all() if one.settings is not None]
        coming = {topic for settings in known for topic in settings.makes_topics}
        connector.start(spark, slots=slots, warm_up=warm_up, paused=paused, coming=coming)

    def sharers(self) -> int:
        return sum(one.counts for one in self._registry.all())

    def share(self, slots: int) -> None:
        for run in self._registry.runs:
            if run.active:
                run.share(slots)

    def _note_topics(self) -> None:
        if not self._track_topics:
            return
        for name, one in self._registry.connectors.items():
            seen = self._registry.aggregator.snapshot(name).topics
            if seen and (new := seen - set(one.stored.topics)):
                topics = tuple(sorted({*one.stored.topics, *new}))
                with suppress(StoreFailed):  # it is tried again
                    self._registry.keep(one, replace(one.stored, topics=topics))


def _share_group(one: ConnectorSettings, other: ConnectorSettings) -> bool:
    """Whether both have the same consumer group; sources have none."""
    return one.group is not None and one.group == other.group
