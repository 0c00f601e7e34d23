"""The connectors of a worker by name, with what all that concerns them needs. Only the worker's one loop uses it."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from parquet_sink.connectors.kinds import find_kind
from parquet_sink.connectors.loading import Loaded
from parquet_sink.settings.connector import ConnectorSettings, RestartSettings
from parquet_sink.worker.herder.errors import UnknownConnector
from parquet_sink.worker.herder.store import ConfigStore, StoredConnector
from parquet_sink.worker.herder.values import ConnectorInfo, ConnectorProgress, ConnectorStatus, TargetState
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.event_aggregator import EventAggregator
from parquet_sink.worker.loop.managed_connector import ManagedConnector

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Snapshot:
    """How everything stands, for whoever asks from another thread. In alphabetical order of names."""

    infos: Mapping[str, ConnectorInfo] = field(default_factory=dict)
    statuses: Mapping[str, ConnectorStatus] = field(default_factory=dict)
    progress: tuple[ConnectorProgress, ...] = ()
    topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    settings: Mapping[str, ConnectorSettings | None] = field(default_factory=dict)
    targets: Mapping[str, TargetState] = field(default_factory=dict)


class ConnectorRegistry:
    """connectors: those that are there. leaving: those that were deleted, until what ran of them has ended.

    load: validates a configuration of a connector of that name, on top of the worker's. aggregator: what events tell.
    """

    def __init__(
        self,
        store: ConfigStore,
        load: Callable[[Mapping[str, str], str], Loaded],
        aggregator: EventAggregator,
        worker_id: str = "",
    ) -> None:
        self.store, self.load, self.aggregator, self.worker_id = store, load, aggregator, worker_id
        self.connectors: dict[str, ManagedConnector] = {}
        self.leaving: list[ManagedConnector] = []

    def begin(self, known: Mapping[str, Loaded]) -> None:
        """Takes up what the store has. known: configurations that were validated already; the others are read later.

        One that is wrong by now fails alone.
        """
        for name, stored in self.store.connectors().items():
            self.connectors[name] = ManagedConnector(name, stored, known.get(name) or not_read_yet(name, stored))

    def all(self) -> Iterator[ManagedConnector]:
        """Those that are leaving included."""
        yield from self.connectors.values()
        yield from self.leaving

    @property
    def runs(self) -> list[Connector]:
        """All that run, or ran and failed, those that are leaving included."""
        return [one.run for one in self.all() if one.run is not None]

    def named(self, name: str) -> ManagedConnector:
        """Raises UnknownConnector."""
        if name not in self.connectors:
            raise UnknownConnector(name)
        return self.connectors[name]

    def keep(self, one: ManagedConnector, stored: StoredConnector) -> None:
        """Remembers what was changed of a connector. Raises StoreFailed, and changes nothing then."""
        self.store.put(one.name, stored)
        one.stored = stored

    def status(self, one: ManagedConnector) -> ConnectorStatus:
        """With what is waited for."""
        return one.status(self.worker_id, self.aggregator.snapshot(one.name).waits_for(time.time()))

    def snapshot(self) -> Snapshot:
        """How everything stands now."""
        ordered = sorted(self.connectors.items())
        statuses = {name: self.status(one) for name, one in ordered}
        return Snapshot(
            {name: one.info() for name, one in ordered},
            statuses,
            tuple(self._progress(status) for status in statuses.values()),
            {name: one.stored.topics for name, one in ordered},
            {name: one.settings for name, one in ordered},
            {name: one.target for name, one in ordered},
        )

    def _progress(self, status: ConnectorStatus) -> ConnectorProgress:
        snapshot = self.aggregator.snapshot(status.name)
        sums = (snapshot.totals.files, snapshot.totals.rows, snapshot.totals.size_bytes, snapshot.totals.set_aside)
        loaded = self.connectors[status.name].loaded
        settings = loaded.settings
        kind = "sink" if settings is None else find_kind(settings.kind).type
        return ConnectorProgress(
            *(status, *sums, snapshot.last_upload, snapshot.last_error, snapshot.partitions, snapshot.totals.delivered),
            *(snapshot.totals.archived, snapshot.totals.not_archived, snapshot.archive_waiting),
            kind=kind,
            missing_topics=snapshot.missing_topics,
            flushing=snapshot.flushing,
            warnings=(*loaded.warnings, *snapshot.warnings),
        )


def not_read_yet(name: str, stored: StoredConnector) -> Loaded:
    """Of a connector of the store, when a worker begins."""
    return Loaded(None, (), (), f"connector {name}", stored.config, RestartSettings())


def tell(name: str, loaded: Loaded) -> None:
    """Warnings and problems of a connector's configuration go to the log."""
    warn(name, loaded)
    for problem in loaded.problems:
        if loaded.again is None:
            log.error("connector %s: %s", name, problem)
        else:
            log.warning("connector %s: %s Its configuration is read again.", name, problem)


def warn(name: str, loaded: Loaded) -> None:
    """Warnings of a connector's configuration go to the log."""
    for warning in loaded.warnings:
        log.warning("connector %s: %s", name, warning)
