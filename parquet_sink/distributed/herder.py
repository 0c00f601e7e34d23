"""The herder of a worker in a group: it reads what the topics say, and changes them where this worker leads.

Names and configurations are read at the config topic's end, so that whoever wrote by one worker sees it at any other.
Of its own connectors a worker knows more than the topics say, and answers with that.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from parquet_sink.config.key import Key
from parquet_sink.connectors.class_keys import keys_of
from parquet_sink.connectors.loading import Loaded, check_unique
from parquet_sink.distributed import records
from parquet_sink.distributed.group import Group, is_of
from parquet_sink.distributed.leader import Leader
from parquet_sink.distributed.owned import OwnedConnectors
from parquet_sink.distributed.records import Records, RestartAsked
from parquet_sink.distributed.state import ConfigState
from parquet_sink.errors import KafkaFailed
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.worker.herder.errors import (
    ConnectorExists,
    FlushRefused,
    InvalidConnector,
    NotOwner,
    NotStopped,
    OffsetsRefused,
    OtherWorker,
    UnknownConnector,
    UnknownTask,
    UnknownWorker,
    WorkerAnswers,
)
from parquet_sink.worker.herder.values import (
    AssignedConnector,
    ConnectorInfo,
    ConnectorProgress,
    ConnectorStatus,
    FlushReport,
    HoldingWorker,
    State,
    TargetState,
    TaskStatus,
    WorkerInfo,
    Workers,
)
from parquet_sink.worker.loop.connector_registry import Outdated
from parquet_sink.worker.loop.herder import ByValidation, LocalHerder, validated
from parquet_sink.worker.loop.managed_connector import NO_FLUSH

BARRIER_S: Final = 2.0
"""How long a read waits for the topic's end; while no broker answers it answers with what it has."""
_RUNS: Final = frozenset({State.RUNNING, State.PAUSED, State.FAILED, State.RESTARTING})
_TAKEN: Final = "Worker {} has it and has not begun it yet."
_NOBODY: Final = "No worker has it yet; the leader gives it to one."
_GONE: Final = "Worker {} is lost; the leader gives what it had to others."
Seal = Callable[[str, Mapping[str, str], Mapping[str, str], Sequence[Key]], dict[str, str]]
"""Makes of a configuration what may be stored: see `ConfigSecrets.stored`."""
OthersProgress = Callable[[Mapping[str, str]], Sequence[ConnectorProgress]]
"""Asks other workers, by worker id and URL, how their connectors stand; what they do not answer is absent."""


class DistributedHerder(ByValidation):
    """Implements `herder.protocol.Herder` for a worker of a group. Its methods may be called from any thread.

    local: of the connectors that this worker has. load: validates a configuration, as the registry does. warnings: what
    is odd about the group.
    """

    def __init__(
        self,
        group: Group,
        local: LocalHerder,
        owned: OwnedConnectors,
        leader: Leader,
        load: Callable[[Mapping[str, str], str], Loaded],
        seal: Seal,
        group_id: str,
        others: OthersProgress,
        warnings: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._group, self._local, self._owned, self._leader = group, local, owned, leader
        self._load, self._seal, self._others = load, seal, others
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
        self._leader.write(lambda state: records.LOGGER.record(logger, level))

    def workers(self) -> Workers:
        state = self._group.config.state
        found = state.assignment
        has: dict[str, list[AssignedConnector]] = {worker_id: [] for worker_id in found.members}
        waiting = set(state.connectors)
        for name, one in sorted(found.placements.items()):
            if one.worker in has and name in waiting:
                waits_for = "" if self._group.is_free(name, found) else one.source
                has[one.worker].append(AssignedConnector(name, one.reason, one.since_ms, waits_for))
                waiting.remove(name)
        # of itself a worker knows whether it leads; of others the assignment says it
        leaders = {self.worker_id} if self._leader.leads else {found.leader} - {self.worker_id}
        workers = tuple(
            WorkerInfo(worker_id, one.url, worker_id in leaders, one.since_ms, tuple(has[worker_id]))
            for worker_id, one in sorted(found.members.items())
        )
        return Workers(found.epoch, found.at_ms, workers, tuple(sorted(waiting)), self._group_id, self._warnings())

    def _state(self) -> ConfigState:
        """As it is at the topic's end, or was when a broker answered last."""
        with suppress(KafkaFailed):
            self._group.config.read_to_end(BARRIER_S)
        return self._group.config.state

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._state().connectors))

    def info(self, name: str) -> ConnectorInfo:
        config = _config_of(self._state(), name)
        warnings = self._local.info(name).warnings if self._runs_here(name) else ()
        return ConnectorInfo(name, dict(config), len(self._status_of(name).tasks), warnings)

    def _runs_here(self, name: str) -> bool:
        return self._owned.has(name) and name in self._local.names()

    def status(self, name: str) -> ConnectorStatus:
        _config_of(self._group.config.state, name)
        return self._status_of(name)

    def _status_of(self, name: str) -> ConnectorStatus:
        """As its worker says; what a worker said that does not have it any more is not true any more."""
        if self._runs_here(name):
            return self._local.status(name)
        assignment, status = self._group.assignment, self._group.status.state
        placement, said = assignment.placements.get(name), status.connectors.get(name)
        worker = "" if placement is None else placement.worker
        unassigned = ConnectorStatus(name, State.UNASSIGNED, worker, (), waits_for=_NOBODY)
        if placement is None or not worker:
            return unassigned
        if worker not in assignment.members:
            return replace(unassigned, waits_for=_GONE.format(worker))
        has = placement
        if not self._group.is_free(name, assignment):
            has = replace(placement, worker=placement.source, epoch=0)
        if said is None or not is_of(said, has):
            return replace(unassigned, waits_for=_TAKEN.format(worker))
        tasks = tuple(
            TaskStatus(number, State(one.state), one.worker_id, one.trace)
            for number, one in sorted(status.tasks.get(name, {}).items())
            if is_of(one, has)
        )
        return ConnectorStatus(name, State(said.state), said.worker_id, tasks, said.trace)

    def progress(self) -> tuple[ConnectorProgress, ...]:
        """Of connectors whose worker does not answer, state alone."""
        state = self._group.config.state
        members = state.assignment.members.values()
        asked = {one.worker_id: one.url for one in members if one.worker_id != self.worker_id}
        found = {one.status.name: one for one in (*self._others(asked), *self.own_progress())}
        return tuple(
            found.get(name) or ConnectorProgress(self._status_of(name), 0, 0, 0, 0, None, None, ())
            for name in sorted(state.connectors)
        )

    def own_progress(self) -> tuple[ConnectorProgress, ...]:
        return tuple(one for one in self._local.progress() if self._owned.has(one.status.name))

    def create(self, name: str, config: Mapping[str, str], target: TargetState | None = None) -> ConnectorInfo:
        self._leader.require()
        loaded = self._validated(name, config, {})

        def decide(state: ConfigState) -> Records:
            if name in state.connectors:
                raise ConnectorExists(name)
            self._check_group(state, name, loaded)
            before = {} if target is None else records.TARGET.record(name, target)
            return {**before, **_stored(name, loaded.properties)}

        self._leader.write(decide)
        return ConnectorInfo(name, dict(loaded.properties), 0, loaded.warnings)

    def _validated(self, name: str, config: Mapping[str, str], before: Mapping[str, str]) -> Loaded:
        """With passwords as they may be stored. Raises InvalidConnector."""
        loaded = validated(self._load, name, config, before)
        return replace(loaded, properties=self._seal(name, loaded.properties, before, keys_of(loaded.properties)))

    def _before(self, name: str) -> Mapping[str, str] | None:
        self._leader.require()
        return self._group.config.state.connectors.get(name)

    def _put(
        self, name: str, config: Mapping[str, str], before: Mapping[str, str] | None
    ) -> tuple[ConnectorInfo, bool]:
        loaded = self._validated(name, config, before or {})

        def decide(state: ConfigState) -> Records:
            if state.connectors.get(name) != before:
                raise Outdated
            self._leader.refuse_altered(name)
            self._check_group(state, name, loaded)
            return _stored(name, loaded.properties)

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
        def decide(state: ConfigState) -> Records:
            _config_of(state, name)
            self._leader.refuse_altered(name)
            return {**records.CONNECTOR.record(name, None), **records.TARGET.record(name, None)}

        self._leader.write(decide)
        self._group.reports.send(records.STATUS.record(name, None))
        for number in self._group.status.state.tasks.get(name, {}):
            self._group.reports.send(records.TASK_STATUS.record(records.task_name(name, number), None))
        self._forget_topics(name)

    def _forget_topics(self, name: str) -> None:
        for topic in self._group.status.state.topics.get(name, ()):
            self._group.reports.send(records.TOPIC.record(records.topic_name(topic, name), None))

    def purge(self, name: str, *, only_look: bool = False) -> tuple[str, ...]:
        return self._local.purge_of(name, _config_of(self._state(), name), only_look=only_look)

    def set_target(self, name: str, target: TargetState) -> None:
        def decide(state: ConfigState) -> Records:
            _config_of(state, name)
            self._leader.refuse_altered(name)
            if state.target_of(name) is target:
                return {}
            tasks = records.TASKS.record(name, 0) if target is TargetState.STOPPED else {}
            return {**tasks, **records.TARGET.record(name, target)}

        self._leader.write(decide)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        found = self._status_of(name)
        concerned = (found.state is State.FAILED or not only_failed) and found.state in _RUNS

        def decide(state: ConfigState) -> Records:
            _config_of(state, name)
            return records.RESTART.record(name, RestartAsked(include_tasks, only_failed)) if concerned else {}

        self._leader.write(decide)
        if not concerned:
            return found
        tasks = tuple(replace(one, state=State.RESTARTING, trace="") for one in found.tasks)
        return replace(found, state=State.RESTARTING, tasks=tasks, trace="")

    def restart_task(self, name: str, task: int) -> None:
        """A connector and its tasks are one here: it is started again as a whole."""
        self._leader.require()
        found = self.status(name)
        if task not in {one.id for one in found.tasks}:
            raise UnknownTask(name, task)
        self.restart(name, include_tasks=True, only_failed=False)

    def settings(self, name: str, worker_id: str | None = None) -> ConnectorSettings:
        config = _config_of(self._state(), name)
        if worker_id is None:
            return self._here(name).settings(name)
        if worker_id != self.worker_id:
            member = self._group.assignment.members.get(worker_id)
            raise OtherWorker(None if member is None else member.url, name, worker_id)
        return self._local.settings(name) if self._runs_here(name) else self._local.settings_of(name, config)

    def forget_worker(self, worker_id: str) -> None:
        state = self._state()
        self._group.status.read_to_end(BARRIER_S)
        if worker_id in state.assignment.members:
            raise WorkerAnswers(worker_id)
        if worker_id not in self._group.status.state.folders:
            raise UnknownWorker(worker_id)
        self._group.reports.send(records.FOLDERS.record(worker_id, None))
        self._group.reports.flush(BARRIER_S)

    def find_holders(self, name: str) -> tuple[HoldingWorker, ...]:
        state = self._state()
        _config_of(state, name)
        self._group.status.read_to_end(BARRIER_S)
        placement = state.assignment.placements.get(name)
        owner = self.worker_id if self._runs_here(name) else "" if placement is None else placement.worker
        held = {worker for worker, names in self._group.status.state.folders.items() if name in names}
        members = state.assignment.members.keys() | {self.worker_id}
        return tuple(
            HoldingWorker(worker, runs=worker == owner, answers=worker in members)
            for worker in sorted(held | ({owner} - {""}), key=lambda worker: (worker != owner, worker))
        )

    def flush(self, name: str, partitions: Sequence[tuple[str, int | None]] = ()) -> FlushReport:
        self._require_started(name)
        return self._here(name).flush(name, partitions)

    def flushed(self, name: str, flush_id: str) -> FlushReport:
        self._require_started(name)
        return self._here(name).flushed(name, flush_id)

    def _require_started(self, name: str) -> None:
        """Raises FlushRefused where no worker is to run the connector, UnknownConnector."""
        state = self._state()
        _config_of(state, name)
        if state.target_of(name) is TargetState.STOPPED:
            raise FlushRefused(NO_FLUSH[State.STOPPED].format(name))

    def _here(self, name: str) -> LocalHerder:
        """Of a connector that this worker runs. Raises NotOwner."""
        if self._runs_here(name):
            return self._local
        assignment = self._group.assignment
        placement = assignment.placements.get(name)
        owner = None if placement is None else assignment.members.get(placement.worker)
        here = owner is None or owner.worker_id == self.worker_id
        raise NotOwner(None if owner is None or here else owner.url, name)

    def topics(self, name: str) -> tuple[str, ...]:
        return tuple(sorted(self._group.status.state.topics.get(name, ())))

    def reset_topics(self, name: str) -> None:
        self._leader.require()
        _config_of(self._group.config.state, name)
        self._forget_topics(name)
        self._group.reports.flush(BARRIER_S)
        self._group.status.read_to_end(BARRIER_S)

    def _offset_settings(self, name: str) -> ConnectorSettings:
        loaded = self._load(_config_of(self._state(), name), name)
        if loaded.settings is None:
            raise OffsetsRefused("\n".join(loaded.problems))
        return loaded.settings

    @contextmanager
    def _stopped(self, name: str) -> Iterator[ConnectorSettings]:
        """The connector is stopped, and stays so within: no worker runs it, and this one lets nobody start it."""
        with self._leader.altering(name):
            state = self._state()
            _config_of(state, name)
            if state.target_of(name) is not TargetState.STOPPED or self._status_of(name).state is not State.STOPPED:
                raise NotStopped(name)
            yield self._offset_settings(name)


def _config_of(state: ConfigState, name: str) -> Mapping[str, str]:
    """Raises UnknownConnector."""
    if name not in state.connectors:
        raise UnknownConnector(name)
    return state.connectors[name]


def _stored(name: str, config: Mapping[str, str]) -> Records:
    return {**records.TASKS.record(name, 0), **records.CONNECTOR.record(name, config)}
