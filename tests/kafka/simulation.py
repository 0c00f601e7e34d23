"""A broker as both Kafka clients see it, and a query on it: for tests of the planner with the real clients."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition, Uuid
from confluent_kafka.admin import OffsetSpec

from parquet_sink.config.secret import Secret
from parquet_sink.errors import KafkaFailed
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.group.committed import Committed, RangePlan, commit_metadata
from parquet_sink.kafka.group.offsets import GroupOffsets
from parquet_sink.kafka.leader_epochs import LeaderEpochs
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings, PlanningSettings
from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import NO_TRIES, Accepted, Again
from parquet_sink.planner import discovery, idle_turns, planner
from parquet_sink.planner.context import PartitionOffsets, PlanningContext
from parquet_sink.planner.first_timestamps import LIMIT_S
from parquet_sink.planner.planner import Planner
from parquet_sink.planner.start_offsets import TopicIds
from parquet_sink.planner.unavailable import BrokerOutage, Spawn, UnavailablePartitions
from parquet_sink.process.threads import in_thread
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import STARTED
from parquet_sink.targets.push.settings import PushSettings
from tests.factories import Clock

KEY = ("orders", 0)
ME = Instance("me", "host", 1, "now")
KAFKA = KafkaSettings(("orders",), None, "connect-orders", {"bootstrap.servers": "localhost:9092"})
WATCHFUL: dict[str, Any] = {
    "topics_regex": "orders|items",
    "client": {**KAFKA.client, "metadata.max.age.ms": "500"},
}
"""Looks for topics at each tick."""
SETTINGS = SinkSettings(
    "orders",
    KAFKA,
    FlushSettings(1_000_000, 100, 2_000),
    ShapeSettings(),
    FileSettings("/nowhere"),
    PushSettings("http://localhost/", Secret("AppKey k"), "t"),
)
EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]


@dataclass
class Topic:
    """One life of a topic: its number, which no other has, and how many records its topic-partition has.

    epoch: of its leader. away: it has none just now.
    """

    number: int
    count: int
    first: int = 0
    epoch: int | None = None
    away: bool = False


def done(value: Any = None, code: int | None = None) -> "Future[Any]":
    """An answer of the admin client."""
    future: Future[Any] = Future()
    if code is None:
        future.set_result(value)
    else:
        future.set_exception(KafkaException(KafkaError(code)))
    return future


def at_once(call: Callable[[], Any]) -> "Future[Any]":
    """Background work that is done when it begins."""
    future: Future[Any] = Future()
    future.set_result(call())
    return future


@dataclass
class Cluster:
    """A broker as both clients see it. `between`: what happens just before the call that has this name, once."""

    topics: dict[str, Topic] = field(default_factory=dict)
    offsets: dict[PartitionKey, tuple[int, str]] = field(default_factory=dict)
    epochs: dict[PartitionKey, int | None] = field(default_factory=dict)
    lives: int = 0
    calls: list[str] = field(default_factory=list)
    between: dict[str, Callable[[], object]] = field(default_factory=dict)
    at_call: dict[int, Callable[[], object]] = field(default_factory=dict)
    answer: Callable[[str], "Future[Any] | None"] = lambda _: None

    def client(self, kind: Any, settings: dict[str, Any], *more: Any) -> Any:
        """In place of both clients, whatever their settings."""
        return self

    def make(self, name: str, count: int, first: int = 0) -> Topic:
        self.lives += 1
        self.topics[name] = Topic(self.lives, count, first)
        return self.topics[name]

    def delete(self, name: str, *, forget: bool = True) -> None:
        """Kafka forgets the group's offsets with the topic, but not at the same instant."""
        self.topics.pop(name, None)
        if forget:
            self.forget(name)

    def forget(self, name: str) -> None:
        self.offsets = {key: found for key, found in self.offsets.items() if key[0] != name}

    def remake(self, count: int, *, forget: bool = True) -> None:
        self.delete("orders", forget=forget)
        self.make("orders", count)

    def stand(self, offset: int, topic_id: str = "", plan: RangePlan | None = None) -> None:
        """The group stands there."""
        self.offsets[KEY] = (offset, commit_metadata(ME, plan, topic_id))

    def stands(self) -> Committed:
        return Committed(*self.offsets[KEY])

    def id(self, name: str = "orders") -> str:
        return id_of(self.topics[name])

    def _called(self, name: str) -> None:
        self.calls.append(name)
        for happens in (self.between.pop(name, None), self.at_call.pop(len(self.calls), None)):
            if happens is not None:
                happens()

    # both clients
    def poll(self, timeout: float) -> None:
        """Nothing is said."""

    # the admin client
    def describe_topics(self, asked: Any, request_timeout: float) -> "dict[str, Future[Any]]":
        self._called("ids")
        return {name: self.answer(name) or self._described(name) for name in asked.topic_names}

    def _described(self, name: str) -> "Future[Any]":
        topic = self.topics.get(name)
        if topic is None:
            return done(code=KafkaError.UNKNOWN_TOPIC_OR_PART)
        return done(SimpleNamespace(partitions=[SimpleNamespace(id=0)], topic_id=Uuid(0, topic.number)))

    def list_topics(self, timeout: float) -> Any:
        self._called("list")
        return SimpleNamespace(topics={name: SimpleNamespace(partitions={0: None}) for name in self.topics})

    def list_offsets(self, asked: dict[Any, Any], isolation_level: Any, request_timeout: float) -> "dict[Any, Any]":
        self._called("starts" if EARLIEST in asked.values() else "ends")
        return {tp: self._offset(tp.topic, spec) for tp, spec in asked.items()}

    def _offset(self, name: str, spec: Any) -> "Future[Any]":
        topic = self.topics.get(name)
        if topic is None:
            return done(code=KafkaError.UNKNOWN_TOPIC_OR_PART)
        if topic.away:
            return done(code=KafkaError.LEADER_NOT_AVAILABLE)
        return done(SimpleNamespace(offset=topic.first if spec is EARLIEST else topic.count, leader_epoch=topic.epoch))

    # the client for very many topic-partitions
    def offsets_for_times(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self._called("quick")
        if any(tp.topic not in self.topics or self.topics[tp.topic].away for tp in asked):
            raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
        return [TopicPartition(tp.topic, tp.partition, self.topics[tp.topic].count) for tp in asked]

    # the group's client
    def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self._called("read")
        found = [(tp.topic, tp.partition, *self.offsets.get((tp.topic, tp.partition), (-1001, ""))) for tp in asked]
        epochs = [self.epochs.get((name, partition)) for name, partition, *_ in found]
        return [
            TopicPartition(*one, leader_epoch=-1 if epoch is None else epoch)
            for one, epoch in zip(found, epochs, strict=True)
        ]

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        self._called("commit")
        if any(tp.topic not in self.topics for tp in offsets):
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        self.offsets |= {(tp.topic, tp.partition): (tp.offset, tp.metadata) for tp in offsets}
        self.epochs |= {(tp.topic, tp.partition): tp.leader_epoch for tp in offsets}
        return offsets

    def close(self) -> None:
        """Nothing to close."""


def id_of(topic: Topic) -> str:
    """As Kafka writes it."""
    return str(Uuid(0, topic.number)).translate(str.maketrans("+/", "-_"))


def count_as_very_many(patch: pytest.MonkeyPatch) -> None:
    """One topic-partition is more than the bounds from which idle ones are asked in turn."""
    patch.setattr(idle_turns, "AT_ONCE", 0)
    patch.setattr(idle_turns, "IDLE_AFTER", 1)
    for module in (discovery, planner):
        patch.setattr(module, "MANY", 0)


class NoRecords:
    """Reads of first records that give nothing."""

    def read(
        self, starts: Mapping[PartitionKey, int], now_ms: int, limit_s: float = LIMIT_S
    ) -> dict[PartitionKey, int]:
        return {}

    def value_bytes(self, starts: Mapping[PartitionKey, int]) -> dict[PartitionKey, float | None]:
        return {}


def planner_on(
    cluster: Cluster, settings: PlanningSettings, state: SqliteStore, clock: Clock, spawn: Spawn = in_thread
) -> Planner:
    """A planner with the real parts over the cluster's clients."""
    kafka = KafkaCluster(settings.kafka, build=cluster.client)
    ids, epochs = TopicIds(kafka), LeaderEpochs(kafka.epochs)
    context = PlanningContext(
        settings,
        state,
        cluster=kafka,
        group=GroupOffsets(settings.kafka, ME, ids.by_topic, epochs.committed, build=cluster.client),
        ids=ids,
        offsets=PartitionOffsets(),
        epochs=epochs,
        now=clock.now,
        unavailable=UnavailablePartitions(settings.name, state, clock.now),
        spawn=spawn,
    )
    outage = BrokerOutage(settings.name, state, clock.now, settings.away_timeout_ms)
    return Planner(context, outage, NoRecords(), sleep=clock.sleep)


class Query:
    """A streaming query as Spark and the program run it: ticks, ranges read and accepted, started again on KafkaFailed.

    `delivered`: the records that reached the target, as (number of the topic, offset).
    """

    def __init__(
        self, cluster: Cluster, state: SqliteStore, clock: Clock, spawn: Spawn = in_thread, **kafka: Any
    ) -> None:
        self.cluster, self.state, self.clock, self._spawn = cluster, state, clock, spawn
        self.settings = replace(SETTINGS, kafka=replace(KAFKA, **kafka))
        self.delivered: set[tuple[int, int]] = set()
        self.starts = 0
        self.begin()

    def begin(self) -> None:
        """A new start, until one succeeds: the broker may not have the topic just now."""
        self.planner = planner_on(self.cluster, self.settings, self.state, self.clock, self._spawn)
        self.start = self.planner.begin()
        self.accepted: dict[PartitionKey, int] = {}
        self.state.set(STARTED, True)
        self.starts += 1

    def tick(self) -> list[PartitionKey]:
        """One tick and its micro-batch. Raises what the planner raises, or KafkaFailed when a range cannot be read."""
        self.clock.sleep(1)
        due = self.planner.tick(self.accepted)
        self.accepted = {} if due else self.accepted
        for one in due:
            self._read(one.topic, one.partition, one.start, one.end)
            self.accepted[one.topic, one.partition] = one.end
        return [(one.topic, one.partition) for one in due]

    def _read(self, name: str, partition: int, start: int, end: int) -> None:
        """What a reader finds under that name; a range that breaks off is accepted as far as it was read."""
        self.cluster._called("fetch")
        topic = self.cluster.topics.get(name)
        if topic is None:
            owed = Accepted(name, partition, start, start, end, "interval", Again(NO_TRIES, 1.0))
            self.state.record_accepted([owed])
            return
        if topic.count < start:
            raise KafkaFailed(f"the range of {name} cannot be read")
        self.delivered |= {(topic.number, offset) for offset in range(start, min(end, topic.count))}
        if topic.count < end:
            with closing(GroupOffsets(KAFKA, ME, build=self.cluster.client)) as group:
                group.advance({(name, partition): topic.count})
            raise KafkaFailed(f"no record of {name} came")
        self.state.record_accepted([Accepted(name, partition, end, start, end, "interval")])

    def again(self) -> None:
        """What the program does after a failure that may pass."""
        self.state.clear_for_restart()
        self.begin()
