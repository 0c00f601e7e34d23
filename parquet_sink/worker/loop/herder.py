"""The worker's side of `herder.protocol`: changes are done by its loop, reads answer from what that published."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Final, TypeVar

from parquet_sink.config.report import quoted
from parquet_sink.connectors.class_keys import keys_of
from parquet_sink.connectors.hidden import restore, unknown
from parquet_sink.connectors.loading import Loaded
from parquet_sink.errors import ConnectorError, SinkError, WrongPlace
from parquet_sink.files import storage
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.kafka import client_settings
from parquet_sink.kafka.group import manual_offsets
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.worker.herder import log_levels
from parquet_sink.worker.herder.errors import (
    HerderError,
    InvalidConnector,
    NotPurged,
    NotReadable,
    OffsetsRefused,
    OtherWorker,
    TimedOut,
    UnknownConnector,
    UnknownWorker,
    WorkerAnswers,
)
from parquet_sink.worker.herder.protocol import TIMEOUT_S
from parquet_sink.worker.herder.values import (
    AssignedConnector,
    ConnectorInfo,
    ConnectorProgress,
    ConnectorStatus,
    FlushReport,
    HoldingWorker,
    StoredOffset,
    TargetState,
    WorkerInfo,
    Workers,
)
from parquet_sink.worker.loop.connector_registry import NOT_READ, ConnectorRegistry, Outdated, Snapshot
from parquet_sink.worker.loop.flow import flow_of, stored_offsets_of
from parquet_sink.worker.loop.request_queue import RequestQueue
from parquet_sink.worker_config.worker import Worker

AGAIN_S: Final = 10.0
"""How long it is remembered that no broker answered: who asks for it again and again does not wait each time."""
T = TypeVar("T")
PING_S: Final = 10.0
MOST_CHANGES: Final = 10
"""By others, while a configuration is validated."""


class ByValidation(ABC):
    """What all herders do alike: requests that change a configuration, as it was before, and those for offsets."""

    @abstractmethod
    def _before(self, name: str) -> Mapping[str, str] | None:
        """The configuration that is stored; None where there is no such connector."""

    @abstractmethod
    def _put(
        self, name: str, config: Mapping[str, str], before: Mapping[str, str] | None
    ) -> tuple[ConnectorInfo, bool]:
        """As `put`. Raises Outdated where another configuration than `before` is stored by then."""

    @abstractmethod
    def _offset_settings(self, name: str) -> ConnectorSettings:
        """Of a connector whose offsets are read. Raises UnknownConnector, OffsetsRefused."""

    @abstractmethod
    def _stopped(self, name: str) -> AbstractContextManager[ConnectorSettings]:
        """The connector is stopped, and stays so within. Raises as `alter_offsets`."""

    def put(self, name: str, config: Mapping[str, str]) -> tuple[ConnectorInfo, bool]:
        return up_to_date(lambda: self._put(name, config, self._before(name)))

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        def patch() -> ConnectorInfo:
            before = self._before(name)
            if before is None:
                raise UnknownConnector(name)
            merged = {key: text for key, text in {**before, **changes}.items() if text is not None}
            return self._put(name, merged, before)[0]

        return up_to_date(patch)

    def offsets(self, name: str) -> tuple[StoredOffset, ...]:
        with refusals():
            return stored_offsets_of(self._offset_settings(name)).read()

    def alter_offsets(self, name: str, offsets: Sequence[StoredOffset]) -> None:
        with self._stopped(name) as settings, refusals():
            stored_offsets_of(settings).alter(offsets)

    def reset_offsets(self, name: str) -> None:
        with self._stopped(name) as settings, refusals():
            stored_offsets_of(settings).reset()


class LocalHerder(ByValidation):
    """Implements `herder.protocol.Herder` in the process of the worker. Its methods may be called from any thread.

    brokers: of the worker file. What asks Kafka is done in the caller's thread.
    """

    def __init__(self, registry: ConnectorRegistry, queue: RequestQueue, brokers: KafkaSettings) -> None:
        self._registry, self._queue = registry, queue
        self._cluster_id = ClusterId(brokers)
        self._snapshot = Snapshot()
        self._begun = threading.Event()

    def publish(self) -> None:
        """From now on reads answer with how everything stands now. For the loop."""
        self._snapshot = self._registry.snapshot()
        self._begun.set()

    @property
    def _published(self) -> Snapshot:
        """Waits while the store is still being read: nobody sees a worker without connectors."""
        if not self._begun.wait(TIMEOUT_S):
            raise TimedOut("Request timed out. The worker is still reading its connectors.")
        return self._snapshot

    @property
    def worker_id(self) -> str:
        return self._registry.worker_id

    def kafka_cluster_id(self) -> str:
        return self._cluster_id.get()

    def workers(self) -> Workers:
        """One, which has them all."""
        connectors = tuple(map(AssignedConnector, self.names()))
        return Workers(0, 0, (WorkerInfo(self.worker_id, "", leads=True, since_ms=0, connectors=connectors),))

    def ping(self) -> None:
        self._queue.ask(lambda: None, PING_S)

    def set_log_level(self, logger: str, level: str) -> None:
        log_levels.set_level(logger, level, time.time_ns() // 1_000_000)

    def names(self) -> tuple[str, ...]:
        return tuple(self._published.infos)

    def info(self, name: str) -> ConnectorInfo:
        return _found(self._published.infos, name)

    def status(self, name: str) -> ConnectorStatus:
        return _found(self._published.statuses, name)

    def progress(self) -> tuple[ConnectorProgress, ...]:
        return self._published.progress

    def own_progress(self) -> tuple[ConnectorProgress, ...]:
        return self.progress()

    def create(self, name: str, config: Mapping[str, str], target: TargetState | None = None) -> ConnectorInfo:
        loaded = validated(self._registry.load, name, config, {})
        return self._queue.ask(partial(self._registry.create, name, loaded, target), TIMEOUT_S)

    def _before(self, name: str) -> Mapping[str, str] | None:
        known = self._published.infos.get(name)
        return None if known is None else known.config

    def _put(
        self, name: str, config: Mapping[str, str], before: Mapping[str, str] | None
    ) -> tuple[ConnectorInfo, bool]:
        loaded = validated(self._registry.load, name, config, before or {})
        return self._queue.ask(partial(self._registry.put, name, loaded, before or {}), TIMEOUT_S)

    def delete(self, name: str) -> None:
        self._queue.ask(partial(self._registry.delete, name), TIMEOUT_S)

    def purge(self, name: str, *, only_look: bool = False) -> tuple[str, ...]:
        return self.purge_of(name, self.info(name).config, only_look=only_look)

    def forget_worker(self, worker_id: str) -> None:
        raise WorkerAnswers(worker_id) if worker_id == self.worker_id else UnknownWorker(worker_id)

    def find_holders(self, name: str) -> tuple[HoldingWorker, ...]:
        self.info(name)
        return (HoldingWorker(self.worker_id, runs=True, answers=True),)

    def settings_of(self, name: str, config: Mapping[str, str]) -> ConnectorSettings:
        """As `settings`, of a connector that another worker runs. config: the one that is stored."""
        loaded = self._registry.load(config, name)
        if loaded.settings is None:
            raise NotReadable("\n".join(loaded.problems) or NOT_READ.format(name))
        return loaded.settings

    def purge_of(self, name: str, config: Mapping[str, str], *, only_look: bool) -> tuple[str, ...]:
        """As `purge`, also of a connector that another worker runs. config: the one that is stored."""
        settings = self._published.settings.get(name) or self._registry.load(config, name).settings
        if settings is None:
            raise NotPurged(f"The configuration of {name} cannot be read, so what it left is not known; correct it.")
        _require_nothing_unique(settings)
        return () if only_look else _purge(settings)

    def set_target(self, name: str, target: TargetState) -> None:
        def aim() -> None:
            before = _found(self._published.targets, name)
            leaves = before is TargetState.STOPPED and target is not TargetState.STOPPED
            loaded = self._validated_again(name) if leaves else None
            self._queue.ask(partial(self._registry.set_target, name, target, loaded), TIMEOUT_S)

        up_to_date(aim)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        def restart() -> ConnectorStatus:
            act = partial(self._registry.restart, name, self._validated_again(name), only_failed=only_failed)
            return self._queue.ask(act, TIMEOUT_S)

        return up_to_date(restart)

    def restart_task(self, name: str, task: int) -> None:
        def restart() -> None:
            loaded = self._validated_again(name)
            self._queue.ask(partial(self._registry.restart_task, name, task, loaded), TIMEOUT_S)

        up_to_date(restart)

    def _validated_again(self, name: str) -> Loaded:
        """What is stored of a connector, with what config providers say now."""
        return self._registry.load(self.info(name).config, name)

    def settings(self, name: str, worker_id: str | None = None) -> ConnectorSettings:
        published = self._published
        if worker_id not in (None, self.worker_id):
            raise OtherWorker(None, name, worker_id)
        settings = _found(published.settings, name)
        if settings is None:
            status = published.statuses[name]
            raise NotReadable(status.trace or status.waits_for or NOT_READ.format(name))
        return settings

    def flush(self, name: str, partitions: Sequence[tuple[str, int | None]] = ()) -> FlushReport:
        _found(self._published.statuses, name)
        return self._queue.ask(partial(self._registry.flush, name, partitions), TIMEOUT_S)

    def flushed(self, name: str, flush_id: str) -> FlushReport:
        return self._queue.ask(partial(self._registry.flushed, name, flush_id), TIMEOUT_S)

    def topics(self, name: str) -> tuple[str, ...]:
        return self._published.topics.get(name, ())

    def reset_topics(self, name: str) -> None:
        self._queue.ask(partial(self._registry.reset_topics, name), TIMEOUT_S)

    def _offset_settings(self, name: str) -> ConnectorSettings:
        try:
            return self.settings(name)
        except NotReadable as error:
            raise OffsetsRefused(str(error)) from None

    @contextmanager
    def _stopped(self, name: str) -> Iterator[ConnectorSettings]:
        """The connector is stopped, and stays so within."""
        by = object()
        try:
            yield self._queue.ask(partial(self._registry.begin_alter, name, by), TIMEOUT_S)
        finally:
            with suppress(HerderError):  # the worker ends, and starts nothing any more
                self._queue.put(partial(self._registry.end_alter, by))


def validated(
    load: Callable[[Mapping[str, str], str], Loaded], name: str, config: Mapping[str, str], before: Mapping[str, str]
) -> Loaded:
    """A configuration that may be stored; one without a name gets that of the request. Raises InvalidConnector.

    before: what is stored now, which hidden passwords are from.
    """
    named = {**config, "name": config.get("name", "").strip() or name}
    keys = keys_of(named)
    whole = restore(named, before, keys)
    loaded = load(whole, name)
    problems = [*loaded.problems, *unknown(whole, keys)]
    validated_name = name if loaded.settings is None else loaded.settings.name
    if not name or {name} != {whole["name"], validated_name}:
        problems.append(
            f"Invalid [name]. {quoted(whole['name'].strip())} is not {quoted(name)}, the name in the request; "
            "write that, or leave the key out. A name is not empty, and neither begins nor ends with a blank."
        )
    if problems:
        raise InvalidConnector(problems)
    return loaded


def _require_nothing_unique(settings: ConnectorSettings) -> None:
    """Raises NotPurged where something would be gone that is nowhere else."""
    if (why := flow_of(settings).nowhere_else()) is not None:
        raise NotPurged(why)


def _purge(settings: ConnectorSettings) -> tuple[str, ...]:
    """Removes what a connector that is stopped left on this machine; what stays of its folder. Raises NotPurged.

    That is its folder below `tmp.dir` (lock, state, history) and its folder for parked records.
    """
    lock = ConnectorLock(settings.tmp_dir, settings.name)
    try:
        with lock:
            _require_nothing_unique(settings)
            left = storage.purge(settings.tmp_dir, settings.name)
    except (ConnectorError, OSError) as error:
        raise NotPurged(f"What connector {settings.name} left is not removed: {error}") from None
    flow_of(settings).remove_beside()
    return tuple(left)


@contextmanager
def refusals() -> Iterator[None]:
    """Within, what the brokers refuse becomes OffsetsRefused."""
    try:
        yield
    except ConnectorError as error:
        raise OffsetsRefused(str(error), alone=isinstance(error, WrongPlace)) from None


def up_to_date(act: Callable[[], T]) -> T:
    """Somebody may change a configuration while it is validated: then it is again. Raises TimedOut in the end."""
    for _ in range(MOST_CHANGES):
        with suppress(Outdated):
            return act()
    raise TimedOut("Request timed out: the connector was changed again and again meanwhile. It was not done.")


def _found(published: Mapping[str, T], name: str) -> T:
    if name not in published:
        raise UnknownConnector(name)
    return published[name]


def brokers_of(worker: Worker) -> KafkaSettings:
    """Those of the worker file, as all its connectors reach them."""
    return KafkaSettings(client=client_settings.merge(worker.bootstrap_servers, worker.consumer, {}), group="worker")


class ClusterId:
    """May be asked by several threads; one of them asks Kafka. clock: seconds."""

    def __init__(
        self,
        brokers: KafkaSettings,
        ask: Callable[[KafkaSettings], str | None] = manual_offsets.cluster_id,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._brokers, self._ask, self._clock = brokers, ask, clock
        self._guard = threading.Lock()
        self._known: str | None = None
        self._failed: tuple[float, str] | None = None

    def get(self) -> str:
        """Raises TimedOut when no broker answers, or did not some seconds ago."""
        with self._guard:
            if self._known is not None:
                return self._known
            if self._failed is not None and self._clock() - self._failed[0] < AGAIN_S:
                raise TimedOut(self._failed[1])
            try:
                self._known = self._ask(self._brokers) or ""
            except SinkError as error:
                self._failed = self._clock(), f"The id of the Kafka cluster is not known: {error}"
                raise TimedOut(self._failed[1]) from None
            return self._known
