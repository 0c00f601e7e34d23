"""The herder of a worker in a group: it reads what the topics say, and changes them where this worker leads.

Names and configurations are read at the config topic's end, so that whoever wrote by one worker sees it at any other.
Of its own connectors a worker knows more than the topics say, and answers with that.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final, TypeVar

from parquet_sink.config.key import Key
from parquet_sink.connectors.class_keys import keys_of
from parquet_sink.connectors.loading import Loaded, check_unique
from parquet_sink.distributed import records
from parquet_sink.distributed.assignment import Assignment, MemberInfo, Placement, free
from parquet_sink.distributed.leader import Change, Leader
from parquet_sink.distributed.log import StatusWriter, TopicReader
from parquet_sink.distributed.owned import OwnedConnectors, stored_of
from parquet_sink.distributed.records import ConnectorReport
from parquet_sink.distributed.state import ConfigState, StatusState
from parquet_sink.errors import KafkaFailed
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.worker.herder.errors import (
    ConnectorExists,
    FlushRefused,
    InvalidConnector,
    NotOwner,
    NotPurged,
    NotStopped,
    OffsetsRefused,
    UnknownConnector,
    UnknownTask,
)
from parquet_sink.worker.herder.values import (
    AssignedConnector,
    ConnectorInfo,
    ConnectorProgress,
    ConnectorStatus,
    FlushReport,
    State,
    StoredOffset,
    TargetState,
    TaskStatus,
    WorkerInfo,
    Workers,
)
from parquet_sink.worker.loop.connector_registry import Outdated
from parquet_sink.worker.loop.flow import stored_offsets_of
from parquet_sink.worker.loop.herder import LocalHerder, refusals, up_to_date, validated
from parquet_sink.worker.loop.managed_connector import NO_FLUSH

BARRIER_S: Final = 2.0
"""How long a read waits for the topic's end; while no broker answers it answers with what it has."""
_RUNS: Final = frozenset({State.RUNNING, State.PAUSED, State.FAILED, State.RESTARTING})
_PURGE: Final = (
    "Connector {} may have left files on each worker that had it, and one request reaches one worker. Delete it "
    "without purge, and remove its folder below connect.ems.tmp.dir on the machines that GET /workers names."
)
_TAKEN: Final = "Worker {} has it and has not begun it yet."
_NOBODY: Final = "No worker has it yet; the leader gives it to one."
_GONE: Final = "Worker {} is lost; the leader gives what it had to others."
T = TypeVar("T")
Seal = Callable[[str, Mapping[str, str], Mapping[str, str], Sequence[Key]], dict[str, str]]
"""Makes of a configuration what may be stored: see `ConfigSecrets.stored`."""
OthersProgress = Callable[[Mapping[str, str]], Sequence[ConnectorProgress]]
"""Asks other workers, by worker id and URL, how their connectors stand; what they do not answer is absent."""


class DistributedHerder:
    """Implements `herder.protocol.Herder` for a worker of a group. Its methods may be called from any thread.

    local: of the connectors that this worker has. load: validates a configuration, as the registry does. warnings: what
    is odd about the group.
    """

    def __init__(
        self,
        local: LocalHerder,
        owned: OwnedConnectors,
        leader: Leader,
        config: TopicReader[ConfigState],
        status: TopicReader[StatusState],
        reports: StatusWriter,
        load: Callable[[Mapping[str, str], str], Loaded],
        seal: Seal,
        group_id: str,
        others: OthersProgress,
        warnings: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._local, self._owned, self._leader, self._config, self._status = local, owned, leader, config, status
        self._reports, self._load, self._seal, self._others = reports, load, seal, others
        self._group_id, self._warnings = group_id, warnings
        self._loaded: dict[str, Loaded] = {}

    @property
    def worker_id(self) -> str:
        return self._local.worker_id

    def kafka_cluster_id(self) -> str:
        return self._local.kafka_cluster_id()

    def ping(self) -> None:
        self._local.ping()

    def set_log_level(self, logger: str, level: str) -> None:
        """Each worker sets it once it reads that."""
        change = {records.logger_key(logger): records.logger_value(level)}
        self._leader.write(lambda state: (change, None))

    def workers(self) -> Workers:
        state = self._config.state
        found = state.assignment
        if found is None:
            return Workers(0, 0, (), tuple(sorted(state.connectors)), self._group_id, self._warnings())
        workers = tuple(
            WorkerInfo(one.worker_id, one.url, self._leads(one, found), one.since_ms, self._of_worker(worker_id))
            for worker_id, one in sorted(found.members.items())
        )
        has = {name for name, one in found.placements.items() if one.worker in found.members}
        waiting = tuple(sorted(state.connectors.keys() - has))
        return Workers(found.epoch, found.at_ms, workers, waiting, self._group_id, self._warnings())

    def _leads(self, one: MemberInfo, assignment: Assignment) -> bool:
        """Of itself a worker knows it; of others the assignment says it."""
        return self._leader.leads if one.worker_id == self.worker_id else one.worker_id == assignment.leader

    def _of_worker(self, worker_id: str) -> tuple[AssignedConnector, ...]:
        state = self._config.state
        found = state.assignment
        return tuple(
            AssignedConnector(name, one.reason, one.since_ms, "" if self._is_free(name) else one.source)
            for name, one in sorted(found.placements.items() if found else ())
            if one.worker == worker_id and name in state.connectors
        )

    def _is_free(self, name: str) -> bool:
        found = self._config.state.assignment
        return found is None or free(found, name, self._status.state.releases.get(name))

    def _state(self) -> ConfigState:
        """As it is at the topic's end, or was when a broker answered last."""
        with suppress(KafkaFailed):
            self._config.read_to_end(BARRIER_S)
        return self._config.state

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._state().connectors))

    def info(self, name: str) -> ConnectorInfo:
        config = _config_of(self._state(), name)
        warnings = self._local.info(name).warnings if self._runs_here(name) else ()
        return ConnectorInfo(name, dict(config), len(self._status_of(name).tasks), warnings)

    def _runs_here(self, name: str) -> bool:
        return self._owned.has(name) and name in self._local.names()

    def status(self, name: str) -> ConnectorStatus:
        _config_of(self._config.state, name)
        return self._status_of(name)

    def _status_of(self, name: str) -> ConnectorStatus:
        """As its worker says; what a worker said that does not have it any more is not true any more."""
        if self._runs_here(name):
            return self._local.status(name)
        assignment, status = self._config.state.assignment, self._status.state
        placement = None if assignment is None else assignment.placements.get(name)
        if assignment is None or placement is None or not placement.worker:
            return ConnectorStatus(name, State.UNASSIGNED, "", (), waits_for=_NOBODY)
        if placement.worker not in assignment.members:
            return ConnectorStatus(
                name, State.UNASSIGNED, placement.worker, (), waits_for=_GONE.format(placement.worker)
            )
        said = status.connectors.get(name)
        if said is None or not _is_of(said, placement) or not self._is_free(name):
            waits_for = _TAKEN.format(placement.worker)
            return ConnectorStatus(name, State.UNASSIGNED, placement.worker, (), waits_for=waits_for)
        tasks = tuple(
            TaskStatus(number, State(one.state), one.worker_id, one.trace)
            for number, one in sorted(status.tasks.get(name, {}).items())
            if _is_of(one, placement)
        )
        return ConnectorStatus(name, State(said.state), said.worker_id, tasks, said.trace)

    def progress(self) -> tuple[ConnectorProgress, ...]:
        """Of connectors whose worker does not answer, state alone."""
        state = self._config.state
        members = {} if state.assignment is None else state.assignment.members
        asked = {one.worker_id: one.url for one in members.values() if one.worker_id != self.worker_id}
        found = {one.status.name: one for one in (*self._others(asked), *self.own_progress())}
        return tuple(found.get(name) or _no_progress(self._status_of(name)) for name in sorted(state.connectors))

    def own_progress(self) -> tuple[ConnectorProgress, ...]:
        """Of the connectors that this worker has."""
        return tuple(one for one in self._local.progress() if self._owned.has(one.status.name))

    def create(self, name: str, config: Mapping[str, str], target: TargetState | None = None) -> ConnectorInfo:
        self._leader.require()
        loaded = self._validated(name, config, {})

        def decide(state: ConfigState) -> tuple[Change, None]:
            if name in state.connectors:
                raise ConnectorExists(name)
            self._check_group(state, name, loaded)
            before = {records.target_key(name): records.target_value(target)} if target is not None else {}
            return {**before, **_stored(name, loaded.properties)}, None

        self._leader.write(decide)
        return ConnectorInfo(name, dict(loaded.properties), 0, loaded.warnings)

    def _validated(self, name: str, config: Mapping[str, str], before: Mapping[str, str]) -> Loaded:
        """With passwords as they may be stored. Raises InvalidConnector."""
        loaded = validated(self._load, name, config, before)
        return replace(loaded, properties=self._seal(name, loaded.properties, before, keys_of(loaded.properties)))

    def put(self, name: str, config: Mapping[str, str]) -> tuple[ConnectorInfo, bool]:
        def put() -> tuple[ConnectorInfo, bool]:
            self._leader.require()
            return self._put(name, config, self._config.state.connectors.get(name))

        return up_to_date(put)

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        def patch() -> ConnectorInfo:
            self._leader.require()
            before = _config_of(self._config.state, name)
            merged = {key: text for key, text in {**before, **changes}.items() if text is not None}
            return self._put(name, merged, before)[0]

        return up_to_date(patch)

    def _put(
        self, name: str, config: Mapping[str, str], before: Mapping[str, str] | None
    ) -> tuple[ConnectorInfo, bool]:
        loaded = self._validated(name, config, before or {})

        def decide(state: ConfigState) -> tuple[Change, None]:
            if state.connectors.get(name) != before:
                raise Outdated
            self._leader.refuse_altered(name)
            self._check_group(state, name, loaded)
            return _stored(name, loaded.properties), None

        self._leader.write(decide)
        tasks = len(self._status_of(name).tasks)
        return ConnectorInfo(name, dict(loaded.properties), tasks, loaded.warnings), before is None

    def _check_group(self, state: ConfigState, name: str, loaded: Loaded) -> None:
        """Raises InvalidConnector when another connector has its consumer group."""
        others = [self._known(other, config) for other, config in state.connectors.items() if other != name]
        if problems := check_unique([loaded, *others]):
            raise InvalidConnector(problems)
        self._loaded = {other: one for other, one in self._loaded.items() if other in state.connectors}

    def _known(self, name: str, config: Mapping[str, str]) -> Loaded:
        known = self._loaded.get(name)
        if known is None or known.properties != config:
            known = self._loaded[name] = self._load(config, name)
        return known

    def delete(self, name: str) -> None:
        def decide(state: ConfigState) -> tuple[Change, None]:
            _config_of(state, name)
            self._leader.refuse_altered(name)
            return {records.connector_key(name): None, records.target_key(name): None}, None

        self._leader.write(decide)
        status = self._status.state
        self._reports.send(records.status_key(name), None)
        for number in status.tasks.get(name, {}):
            self._reports.send(records.status_key(name, number), None)
        for topic in status.topics.get(name, ()):
            self._reports.send(records.topic_key(topic, name), None)

    def purge(self, name: str) -> tuple[str, ...]:
        self._leader.require()
        _config_of(self._config.state, name)
        raise NotPurged(_PURGE.format(name))

    def set_target(self, name: str, target: TargetState) -> None:
        def decide(state: ConfigState) -> tuple[Change, None]:
            _config_of(state, name)
            self._leader.refuse_altered(name)
            if state.targets.get(name, TargetState.STARTED) is target:
                return {}, None
            tasks = _without_tasks(name) if target is TargetState.STOPPED else {}
            return {**tasks, records.target_key(name): records.target_value(target)}, None

        self._leader.write(decide)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        def decide(state: ConfigState) -> tuple[Change, ConnectorStatus]:
            _config_of(state, name)
            found = self._status_of(name)
            concerned = (found.state is State.FAILED or not only_failed) and found.state in _RUNS
            if not concerned:
                return {}, found
            tasks = tuple(replace(one, state=State.RESTARTING, trace="") for one in found.tasks)
            restarting = replace(found, state=State.RESTARTING, tasks=tasks, trace="")
            value = records.restart_value(include_tasks=include_tasks, only_failed=only_failed)
            return {records.restart_key(name): value}, restarting

        return self._leader.write(decide)

    def restart_task(self, name: str, task: int) -> None:
        """A connector and its tasks are one here: it is started again as a whole."""
        self._leader.require()
        found = self.status(name)
        if task not in {one.id for one in found.tasks}:
            raise UnknownTask(name, task)
        self.restart(name, include_tasks=True, only_failed=False)

    def settings(self, name: str) -> ConnectorSettings:
        _config_of(self._state(), name)
        return self._here(name).settings(name)

    def flush(self, name: str, partitions: Sequence[tuple[str, int | None]] = ()) -> FlushReport:
        self._require_started(name)
        return self._here(name).flush(name, partitions)

    def flushed(self, name: str, flush_id: str) -> FlushReport:
        self._require_started(name)
        return self._here(name).flushed(name, flush_id)

    def _require_started(self, name: str) -> None:
        """Raises FlushRefused where no worker is to run the connector, UnknownConnector."""
        stored = stored_of(self._state(), name)
        if stored is None:
            raise UnknownConnector(name)
        if stored.target is TargetState.STOPPED:
            raise FlushRefused(NO_FLUSH[State.STOPPED].format(name))

    def _here(self, name: str) -> LocalHerder:
        """Of a connector that this worker runs. Raises NotOwner."""
        if self._runs_here(name):
            return self._local
        found = self._config.state.assignment
        placement = None if found is None else found.placements.get(name)
        owner = None if found is None or placement is None else found.members.get(placement.worker)
        here = owner is None or owner.worker_id == self.worker_id
        raise NotOwner(None if owner is None or here else owner.url, name)

    def topics(self, name: str) -> tuple[str, ...]:
        return tuple(sorted(self._status.state.topics.get(name, ())))

    def reset_topics(self, name: str) -> None:
        self._leader.require()
        _config_of(self._config.state, name)
        for topic in self._status.state.topics.get(name, ()):
            self._reports.send(records.topic_key(topic, name), None)
        self._reports.flush(BARRIER_S)
        self._status.read_to_end(BARRIER_S)

    def offsets(self, name: str) -> tuple[StoredOffset, ...]:
        with refusals():
            return stored_offsets_of(self._settings(name)).read()

    def _settings(self, name: str) -> ConnectorSettings:
        loaded = self._load(_config_of(self._state(), name), name)
        if loaded.settings is None:
            raise OffsetsRefused("\n".join(loaded.problems))
        return loaded.settings

    def alter_offsets(self, name: str, offsets: Sequence[StoredOffset]) -> None:
        with self._stopped(name) as settings, refusals():
            stored_offsets_of(settings).alter(offsets)

    def reset_offsets(self, name: str) -> None:
        with self._stopped(name) as settings, refusals():
            stored_offsets_of(settings).reset()

    @contextmanager
    def _stopped(self, name: str) -> Iterator[ConnectorSettings]:
        """The connector is stopped, and stays so within: no worker runs it, and this one lets nobody start it."""
        with self._leader.altering(name):
            stored = stored_of(self._state(), name)
            if stored is None:
                raise UnknownConnector(name)
            if stored.target is not TargetState.STOPPED or self._status_of(name).state is not State.STOPPED:
                raise NotStopped(name)
            yield self._settings(name)


def _config_of(state: ConfigState, name: str) -> Mapping[str, str]:
    """Raises UnknownConnector."""
    if name not in state.connectors:
        raise UnknownConnector(name)
    return state.connectors[name]


def _is_of(said: ConnectorReport, placement: Placement) -> bool:
    """Whether a worker said this since it has the connector."""
    return said.worker_id == placement.worker and said.generation >= placement.epoch


def _stored(name: str, config: Mapping[str, str]) -> Change:
    """Records of a configuration."""
    return {**_without_tasks(name), records.connector_key(name): records.config_value(config)}


def _without_tasks(name: str) -> Change:
    """For Kafka Connect, if it takes the topics over: its tasks of another configuration would run by that at first."""
    return {records.tasks_key(name): records.no_tasks_value()}


def _no_progress(status: ConnectorStatus) -> ConnectorProgress:
    """Of a connector whose worker does not answer."""
    return ConnectorProgress(status, 0, 0, 0, 0, None, None, ())
