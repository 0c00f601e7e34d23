"""What happens with a worker's connectors by itself: one after the other they begin, and become what they are to be."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from parquet_sink.process.threads import in_thread
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.worker.herder.errors import StoreFailed
from parquet_sink.worker.loop.aside import Aside
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.hosted import Hosted
from parquet_sink.worker.loop.rereading import Rereading
from parquet_sink.worker.loop.roster import Roster
from parquet_sink.worker.loop.status import Status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

START_S: Final = 10.0
"""How long a connector has to begin before the next is started: forty at once would keep each other from it."""


class Hosting:
    """make: a connector that is not prepared yet. track_topics: whether active topics are kept.

    aside: reads configurations.
    """

    def __init__(
        self,
        roster: Roster,
        make: Callable[[ConnectorSettings], Connector],
        *,
        track_topics: bool = True,
        aside: Aside = in_thread,
    ) -> None:
        self._roster, self._make, self._track_topics = roster, make, track_topics
        self._rereading = Rereading(roster, aside)
        self._starting: tuple[Connector, float] | None = None
        self._warm = False

    @property
    def busy(self) -> bool:
        """Whether anything runs, or is to run."""
        return any(one.counts for one in self._roster.all())

    @property
    def active(self) -> bool:
        """Whether anything runs, also beside the query of one that has ended. Asked when all are to end."""
        return any(run.active or not run.at_rest for run in self._roster.runs)

    @property
    def failed(self) -> bool:
        return any(one.failed for one in self._roster.hosted.values())

    def longest_stop_s(self) -> float:
        """How long the flush in progress may take, of the most patient."""
        return max((run.settings.stop_timeout_ms / 1000 for run in self._roster.runs), default=0.0)

    def step(self, stop_requested_at_s: float | None = None) -> None:
        """Brings each connector nearer to what it is to be; what needs no Spark. Raises nothing."""
        if stop_requested_at_s is None:
            self._rereading.step()
        for one in list(self._roster.all()):
            try:
                one.step(stop_requested_at_s)
                if stop_requested_at_s is None and one.wants_run and not self._in_the_way(one):
                    assert one.settings is not None
                    one.begin(self._make(one.settings))
            except Exception as error:  # noqa: BLE001 - it ends one connector, and none of the others
                self._unforeseen(one, error)
        for one in [one for one in self._roster.leaving if one.run is None]:
            self._roster.leaving.remove(one)
            if one.name not in self._roster.hosted:
                self._roster.book.forget(one.name)
        self._note_topics()

    def _unforeseen(self, one: Hosted, error: Exception) -> None:
        log.debug("connector %s", one.name, exc_info=error)
        if one.run is not None and one.run.status is not Status.FAILED:
            one.run.fail_unexpectedly(error)

    def _in_the_way(self, one: Hosted) -> bool:
        """Whether a run that is ending has its name, and so its folder, or its consumer group."""
        settings = one.settings
        assert settings is not None
        others = [other.settings for other in self._roster.runs]
        return any(other.name == settings.name or _share_group(other, settings) for other in others)

    def next_to_start(self, now_s: float) -> Connector | None:
        """One that is prepared, once the one before has begun, or had its time. now_s: monotonic."""
        if self._starting is not None:
            before, deadline_s = self._starting
            if before.status is Status.RUNNING and not before.has_started() and now_s < deadline_s:
                return None
        found = next((run for run in self._roster.runs if run.status is Status.STARTING), None)
        if found is not None:
            self._starting = found, now_s + START_S
        return found

    def start(self, connector: Connector, spark: "SparkSession", slots: int) -> None:
        """The first one warms Spark up for all."""
        paused = any(one.run is connector and one.paused for one in self._roster.all())
        warm_up, self._warm = not self._warm, True
        known = [one.settings for one in self._roster.all() if one.settings is not None]
        coming = {topic for settings in known for topic in settings.makes_topics}
        connector.start(spark, slots=slots, warm_up=warm_up, paused=paused, coming=coming)

    def sharers(self) -> int:
        """How many connectors share Spark's slots."""
        return sum(one.counts for one in self._roster.all())

    def share(self, slots: int) -> None:
        """So many slots are for each connector from now on."""
        for run in self._roster.runs:
            if run.active:
                run.share(slots)

    def _note_topics(self) -> None:
        if not self._track_topics:
            return
        for name, one in self._roster.hosted.items():
            seen = self._roster.book.page(name).topics
            if seen and (new := seen - set(one.stored.topics)):
                topics = tuple(sorted({*one.stored.topics, *new}))
                with suppress(StoreFailed):  # it is tried again
                    self._roster.keep(one, replace(one.stored, topics=topics))


def _share_group(one: ConnectorSettings, other: ConnectorSettings) -> bool:
    """Whether both have the same consumer group; sources have none."""
    return one.group is not None and one.group == other.group
