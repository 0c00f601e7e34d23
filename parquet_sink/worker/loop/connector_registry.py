"""The connectors of a worker by name, and what may be asked about them. Only the worker's one loop uses it.

A request does all of it or nothing: what is wrong is raised before anything is stored, and stored before anything is
done. Configurations are validated before, in the thread of who asks: that may take seconds.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from parquet_sink.config.report import in_log
from parquet_sink.connectors.kinds import find_kind
from parquet_sink.connectors.loading import Loaded, check_unique
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.settings.connector import ConnectorSettings, RestartSettings
from parquet_sink.worker.herder.errors import (
    ConnectorExists,
    FlushRefused,
    InvalidConnector,
    NotStopped,
    OffsetsBusy,
    OffsetsRefused,
    UnknownConnector,
    UnknownFlush,
    UnknownPartitions,
    UnknownTask,
)
from parquet_sink.worker.herder.store import ConfigStore, StoredConnector
from parquet_sink.worker.herder.values import (
    ConnectorInfo,
    ConnectorProgress,
    ConnectorStatus,
    FlushReport,
    FlushState,
    PartitionProgress,
    State,
    TargetState,
)
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.event_aggregator import EventAggregator
from parquet_sink.worker.loop.managed_connector import ManagedConnector

NOT_READ: Final = "The configuration of connector {} is not read yet; ask again."
_PAUSED: Final = "Connector {} is paused; resume it."
_UNDER_WAY: Final = "The micro-batch that runs is finished."
MOST_NAMED: Final = 10
"""Topic-partitions that a refusal names."""
log = logging.getLogger(__name__)


class Outdated(Exception):
    """The configuration is not any more the one that was validated: it must be validated again."""


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

    load: validates a configuration of a connector of that name, on top of the worker's. aggregator: of events.
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
            self._add(name, stored, known.get(name))

    def adopt(self, name: str, stored: StoredConnector, *, taken_over: bool = False) -> None:
        """Takes up a connector whose configuration was stored elsewhere; once. taken_over: another worker ran it."""
        if name not in self.connectors:
            self.store.put(name, stored)
            self._add(name, stored)
            self.connectors[name].taken_over = taken_over

    def _add(self, name: str, stored: StoredConnector, known: Loaded | None = None) -> None:
        """Not known, its configuration is read later."""
        self.connectors[name] = ManagedConnector(name, stored, known or not_read_yet(name, stored))

    def all(self) -> Iterator[ManagedConnector]:
        """Those that are leaving included."""
        yield from self.connectors.values()
        yield from self.leaving

    def next_flushes(self, names: Iterable[str]) -> dict[str, float]:
        """Of each, in how many seconds it flushes, as of `Flow.next_flush_s`."""
        runs = {name: self.connectors[name].run if name in self.connectors else None for name in names}
        return {name: math.inf if run is None else run.next_flush_s() for name, run in runs.items()}

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

    def create(self, name: str, loaded: Loaded, target: TargetState | None = None) -> ConnectorInfo:
        self._check_group(name, loaded)
        if name in self.connectors:
            raise ConnectorExists(name)
        stored = StoredConnector(loaded.properties, target or TargetState.STARTED)
        self.store.put(name, stored)
        one = self.connectors[name] = ManagedConnector(name, stored, loaded)
        warn(name, loaded)
        return one.info()

    def put(self, name: str, loaded: Loaded, before: Mapping[str, str]) -> tuple[ConnectorInfo, bool]:
        """before: the configuration that was stored when this one was validated; {} for none."""
        one = self.connectors.get(name)
        if (one.stored.config if one else {}) != before:
            raise Outdated
        if one is None:
            return self.create(name, loaded), True
        self._check_group(name, loaded)
        self.configure(one, loaded)
        return one.info(), False

    def configure(self, one: ManagedConnector, loaded: Loaded) -> None:
        """Gives a connector another configuration; one that is wrong is its failure."""
        stored = replace(one.stored, config=loaded.properties)
        self.store.put(one.name, stored)
        one.change(stored, loaded)
        log_loaded(one.name, loaded)

    def delete(self, name: str) -> None:
        one = self.named(name)
        self.store.delete(name)
        one.deleted = True
        self.leaving.append(self.connectors.pop(name))

    def set_target(self, name: str, target: TargetState, loaded: Loaded | None = None) -> None:
        """loaded: its configuration, validated again, where it is to leave STOPPED."""
        one = self.named(name)
        before = one.target
        if target is before:
            return
        if before is TargetState.STOPPED:
            self._take_up(one, loaded)
        self.keep(one, replace(one.stored, target=target))

    def restart(self, name: str, loaded: Loaded, *, only_failed: bool) -> ConnectorStatus:
        """Connector and tasks are one here, so either both are started again or none."""
        one = self.named(name)
        if (one.failed or not only_failed) and one.target is not TargetState.STOPPED:
            self._take_up(one, loaded)
            one.replace()
        return self.status(one)

    def restart_task(self, name: str, task: int, loaded: Loaded) -> None:
        """One after the other, each of a connector's tasks restarts it once."""
        one = self.named(name)
        if task not in {found.id for found in self.status(one).tasks}:
            raise UnknownTask(name, task)
        if one.state is not State.RESTARTING:
            self._take_up(one, loaded)
            one.replace()

    def flush(self, name: str, partitions: Sequence[tuple[str, int | None]]) -> FlushReport:
        """Raises UnknownConnector, UnknownPartitions, FlushRefused."""
        one = self.named(name)
        if (why := one.keeps_from_flushing) is not None:
            raise FlushRefused(why)
        assert one.run is not None
        assert one.run.state is not None
        keys = _named_of(name, partitions, self.aggregator.snapshot(name).partitions) if partitions else None
        return one.run.flushes.ask(one.run.state, keys)

    def flushed(self, name: str, flush_id: str) -> FlushReport:
        """Raises UnknownConnector, UnknownFlush."""
        one = self.named(name)
        if one.run is None or one.run.state is None:
            raise UnknownFlush(name, flush_id)
        found = one.run.flushes.report(one.run.state, flush_id)
        return found if found.state is FlushState.DONE else replace(found, waits_for=self._flush_waits_for(one))

    def _flush_waits_for(self, one: ManagedConnector) -> str:
        if one.paused:
            return _PAUSED.format(one.name)
        snapshot, status = self.aggregator.snapshot(one.name), self.status(one)
        if status.trace or status.waits_for:
            return status.trace or status.waits_for
        if snapshot.held_back[1]:
            return f"It waits: {snapshot.held_back[1]}"
        return _UNDER_WAY if snapshot.flushing else ""

    def _take_up(self, one: ManagedConnector, loaded: Loaded | None) -> None:
        """Its configuration, validated again. One that is wrong by now is the connector's failure."""
        if loaded is None or loaded.properties != one.stored.config:
            raise Outdated
        one.loaded = loaded
        log_loaded(one.name, loaded)

    def reset_topics(self, name: str) -> None:
        one = self.named(name)
        self.aggregator.snapshot(name).topics.clear()
        if one.stored.topics:
            self.keep(one, replace(one.stored, topics=()))

    def begin_alter(self, name: str, by: object) -> ConnectorSettings:
        """From here to `end_alter` the connector's offsets may be changed: it does not start. by: whoever asks."""
        one = self.named(name)
        if one.state is not State.STOPPED:
            raise NotStopped(name)
        if one.altered_by is not None:
            raise OffsetsBusy(f"The offsets of connector {name} are being changed by another request; wait for it.")
        if one.settings is None:
            raise OffsetsRefused("\n".join(one.loaded.problems) or NOT_READ.format(name))
        one.altered_by = by
        return one.settings

    def end_alter(self, by: object) -> None:
        """Does nothing when it did not begin."""
        for one in self.all():
            if one.altered_by is by:
                one.altered_by = None

    def _check_group(self, name: str, loaded: Loaded) -> None:
        """Raises InvalidConnector when another connector has its consumer group."""
        others = [one.loaded for other, one in self.connectors.items() if other != name]
        if problems := check_unique([loaded, *others]):
            raise InvalidConnector(problems)

    def status(self, one: ManagedConnector) -> ConnectorStatus:
        return one.status(self.worker_id, self.aggregator.snapshot(one.name).waits_for(time.time()))

    def snapshot(self) -> Snapshot:
        ordered = sorted(self.connectors.items())
        statuses = {name: self.status(one) for name, one in ordered}
        return Snapshot(
            infos={name: one.info() for name, one in ordered},
            statuses=statuses,
            progress=tuple(self._progress(status) for status in statuses.values()),
            topics={name: one.stored.topics for name, one in ordered},
            settings={name: one.settings for name, one in ordered},
            targets={name: one.target for name, one in ordered},
        )

    def _progress(self, status: ConnectorStatus) -> ConnectorProgress:
        snapshot = self.aggregator.snapshot(status.name)
        totals, loaded = snapshot.totals, self.connectors[status.name].loaded
        return ConnectorProgress(
            status=status,
            files=totals.files,
            rows=totals.rows,
            size_bytes=totals.size_bytes,
            set_aside=totals.set_aside,
            last_upload=snapshot.last_upload,
            last_error=snapshot.last_error,
            partitions=snapshot.partitions,
            records=totals.delivered,
            archived=totals.archived,
            not_archived=totals.not_archived,
            archive_waiting=snapshot.archive_waiting,
            kind="sink" if loaded.settings is None else find_kind(loaded.settings.kind).type,
            missing_topics=snapshot.missing_topics,
            flushing=snapshot.flushing,
            warnings=loaded.warnings,
            live_warnings=snapshot.live_warnings,
            planner_silent_s=snapshot.planner_silent_s,
        )


def not_read_yet(name: str, stored: StoredConnector) -> Loaded:
    """Of a connector of the store, when a worker begins."""
    return Loaded(None, (), (), f"connector {name}", stored.config, RestartSettings())


def log_loaded(name: str, loaded: Loaded) -> None:
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
        log.warning("connector %s: %s", name, in_log(warning))


def _named_of(
    name: str, wanted: Sequence[tuple[str, int | None]], there: Sequence[PartitionProgress]
) -> tuple[PartitionKey, ...]:
    """Those that a request names, in its order; all of a topic for None. Raises UnknownPartitions."""
    known = {(one.topic, one.partition) for one in there}
    found: dict[PartitionKey, None] = {}
    missing = []
    for topic, number in wanted:
        keys = sorted(key for key in known if key[0] == topic and number in (None, key[1]))
        found.update(dict.fromkeys(keys))
        if not keys:
            missing.append(topic if number is None else f"{topic}:{number}")
    if missing:
        shown = ", ".join(f"{topic}:{number}" for topic, number in sorted(known)[:MOST_NAMED])
        has = (
            f"it has {shown}{' and more' if len(known) > MOST_NAMED else ''}" if shown else "it has none yet, ask again"
        )
        raise UnknownPartitions(f"Connector {name} does not have {', '.join(missing[:MOST_NAMED])}; {has}.")
    return tuple(found)
