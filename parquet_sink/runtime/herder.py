"""The worker's side of `herder.protocol`: changes are done by its loop, reads answer from what the loop published."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, TypeVar

from parquet_sink.connectors.worker import Worker
from parquet_sink.errors import ConnectorError
from parquet_sink.herder.errors import HerderError, OffsetsRefused, UnknownConnector
from parquet_sink.herder.protocol import TIMEOUT_S
from parquet_sink.herder.values import (
    ConnectorInfo,
    ConnectorProgress,
    ConnectorStatus,
    PartitionOffset,
    TargetState,
)
from parquet_sink.kafka import client_settings
from parquet_sink.kafka.group import manual_offsets
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.runtime.cluster_id import ClusterId
from parquet_sink.runtime.commands import Commands
from parquet_sink.runtime.requests import Requests
from parquet_sink.runtime.roster import Roster, Snapshot

T = TypeVar("T")

PING_S: Final = 10.0


class LocalHerder:
    """Implements `herder.protocol.Herder` in the process of the worker. Its methods may be called from any thread.

    brokers: of the worker file. What asks Kafka is done in the caller's thread.
    """

    def __init__(self, roster: Roster, commands: Commands, brokers: KafkaSettings) -> None:
        self._roster, self._commands = roster, commands
        self._requests = Requests(roster)
        self._cluster_id = ClusterId(brokers)
        self._published = Snapshot()

    def publish(self) -> None:
        """From now on reads answer with how everything stands now. For the loop."""
        self._published = self._roster.snapshot()

    @property
    def worker_id(self) -> str:
        return self._roster.worker_id

    def kafka_cluster_id(self) -> str:
        return self._cluster_id.get()

    def ping(self) -> None:
        self._commands.ask(lambda: None, PING_S)

    def names(self) -> tuple[str, ...]:
        return tuple(self._published.infos)

    def info(self, name: str) -> ConnectorInfo:
        return _found(self._published.infos, name)

    def status(self, name: str) -> ConnectorStatus:
        return _found(self._published.statuses, name)

    def progress(self) -> tuple[ConnectorProgress, ...]:
        return self._published.progress

    def create(self, name: str, config: Mapping[str, str], target: TargetState | None = None) -> ConnectorInfo:
        return self._commands.ask(partial(self._requests.create, name, config, target), TIMEOUT_S)

    def put(self, name: str, config: Mapping[str, str]) -> tuple[ConnectorInfo, bool]:
        return self._commands.ask(partial(self._requests.put, name, config), TIMEOUT_S)

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        return self._commands.ask(partial(self._requests.patch, name, changes), TIMEOUT_S)

    def delete(self, name: str) -> None:
        self._commands.ask(partial(self._requests.delete, name), TIMEOUT_S)

    def set_target(self, name: str, target: TargetState) -> None:
        self._commands.ask(partial(self._requests.set_target, name, target), TIMEOUT_S)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        act = partial(self._requests.restart, name, include_tasks=include_tasks, only_failed=only_failed)
        return self._commands.ask(act, TIMEOUT_S)

    def restart_task(self, name: str, task: int) -> None:
        self._commands.ask(partial(self._requests.restart_task, name, task), TIMEOUT_S)

    def topics(self, name: str) -> tuple[str, ...]:
        return self._published.topics.get(name, ())

    def reset_topics(self, name: str) -> None:
        self._commands.ask(partial(self._requests.reset_topics, name), TIMEOUT_S)

    def offsets(self, name: str) -> tuple[PartitionOffset, ...]:
        published = self._published
        settings = _found(published.settings, name)
        if settings is None:
            raise OffsetsRefused(published.statuses[name].trace or f"The configuration of connector {name} is invalid.")
        with _refusals():
            return tuple(PartitionOffset(*key, offset) for key, offset in manual_offsets.read(settings.kafka).items())

    def alter_offsets(self, name: str, offsets: Sequence[PartitionOffset]) -> None:
        with self._stopped(name) as settings, _refusals():
            manual_offsets.alter(settings.kafka, {(one.topic, one.partition): one.offset for one in offsets})

    def reset_offsets(self, name: str) -> None:
        with self._stopped(name) as settings, _refusals():
            manual_offsets.reset(settings.kafka)

    @contextmanager
    def _stopped(self, name: str) -> Iterator[SinkSettings]:
        """The connector is stopped, and stays so within."""
        by = object()
        try:
            yield self._commands.ask(partial(self._requests.begin_alter, name, by), TIMEOUT_S)
        finally:
            with suppress(HerderError):  # the worker ends, and starts nothing any more
                self._commands.tell(partial(self._requests.end_alter, by))


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except ConnectorError as error:
        raise OffsetsRefused(str(error)) from None


def _found(published: Mapping[str, T], name: str) -> T:
    if name not in published:
        raise UnknownConnector(name)
    return published[name]


def brokers_of(worker: Worker) -> KafkaSettings:
    """Those of the worker file, as all its connectors reach them."""
    return KafkaSettings(client=client_settings.merge(worker.bootstrap_servers, worker.consumer, {}), group="worker")
