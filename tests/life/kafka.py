"""Kafka in memory, as the sink's clients see it: logs with gaps and retention, topics with ids, a group's offsets."""

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition, Uuid

from parquet_sink.kafka import range_reader, several_ranges
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client import renewal
from parquet_sink.kafka.cluster import cluster, requests
from parquet_sink.kafka.consumer_cache import ConsumerCache
from parquet_sink.kafka.group import client as group_client
from parquet_sink.model.partitions import PartitionKey
from tests.factories import Clock
from tests.kafka.simulation import EARLIEST, done
from tests.life.effects import Effects
from tests.life.turns import at_once

UNKNOWN = KafkaError.UNKNOWN_TOPIC_OR_PART
NO_ANSWER = KafkaError._TIMED_OUT


class Record(Protocol):
    """What was produced. offset: where it stands, once it is appended."""

    offset: int
    at_ms: int

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...


@dataclass
class Log:
    """One topic-partition: what Kafka still has of it in `records`, what retention took in `deleted`.

    open_at: where the first record of an open transaction stands, None while there is none.
    """

    first: int = 0
    end: int = 0
    records: list[Record] = field(default_factory=list)
    deleted: list[Record] = field(default_factory=list)
    open_at: int | None = None

    @property
    def readable(self) -> int:
        """Up to where who reads committed records may read, exclusive: the last stable offset."""
        return self.end if self.open_at is None else self.open_at

    def begin_transaction(self) -> None:
        """Let a producer open a transaction whose first record comes next."""
        self.open_at = self.end if self.open_at is None else self.open_at

    def end_transaction(self) -> None:
        """Commit the open transaction with a marker."""
        if self.open_at is not None:
            self.open_at, self.end = None, self.end + 1

    def append(self, records: Sequence[Record], gap: int) -> None:
        """Adds records; gap: offsets of transaction markers behind them."""
        for record in records:
            record.offset, self.end = self.end, self.end + 1
        self.records += records
        self.end += gap

    def delete_before(self, offset: int) -> None:
        """Retention takes the beginning."""
        self.first = max(self.first, min(offset, self.readable))
        kept = bisect_left(self.records, self.first, key=lambda record: record.offset)
        self.deleted += self.records[:kept]
        self.records = self.records[kept:]

    def between(self, start: int, end: int) -> list[Record]:
        """The records there are at offsets [start, end)."""
        offset = lambda record: record.offset  # noqa: E731 - a key
        return self.records[bisect_left(self.records, start, key=offset) : bisect_left(self.records, end, key=offset)]


@dataclass
class Topic:
    """One life of a topic: another one of its name has another number."""

    name: str
    number: int
    logs: list[Log]

    @property
    def id(self) -> str:
        """As Kafka writes it."""
        return str(Uuid(0, self.number)).translate(str.maketrans("+/", "-_"))


OnCommit = Callable[[PartitionKey, int, str], None]


class Kafka:
    """The brokers, and at once the admin client. on_commit: is told of each commit.

    away: so many requests get no answer; silent_commits: a commit among them is made all the same.
    """

    def __init__(self, effects: Effects, clock: Clock, chance: random.Random) -> None:
        self.topics: dict[str, Topic] = {}
        self.offsets: dict[PartitionKey, tuple[int, str]] = {}
        self.on_commit: OnCommit = lambda key, offset, metadata: None
        self.effects, self.clock, self.chance = effects, clock, chance
        self._lives = self.away = self.commits = 0
        self.silent_commits = self.is_first_commit = False

    def silent(self) -> bool:
        """Whether this request gets no answer."""
        self.away = max(self.away - 1, -1)
        return self.away >= 0

    # hands other than the sink's
    def make(self, name: str, partitions: int) -> Topic:
        self._lives += 1
        self.topics[name] = Topic(name, self._lives, [Log() for _ in range(partitions)])
        return self.topics[name]

    def make_anew(self, name: str) -> Topic:
        """Deletes it, with the group's offsets, and makes another one of its name."""
        partitions = len(self.topics.pop(name).logs)
        self.offsets = {key: found for key, found in self.offsets.items() if key[0] != name}
        return self.make(name, partitions)

    def log(self, key: PartitionKey) -> Log:
        return self.topics[key[0]].logs[key[1]]

    def add_partition(self, name: str) -> PartitionKey:
        """One more of a topic."""
        self.topics[name].logs.append(Log())
        return name, len(self.topics[name].logs) - 1

    def partitions(self) -> list[PartitionKey]:
        return [(name, number) for name, topic in self.topics.items() for number in range(len(topic.logs))]

    def committed(self, key: PartitionKey) -> int:
        """Where the group stands; 0 without a commit."""
        return self.offsets.get(key, (0, ""))[0]

    def patches(self) -> list[tuple[object, str, object]]:
        """What the sink's modules are given, so that their clients and their time are these."""
        cache, readers = ConsumerCache(), (range_reader, several_ranges)
        cache._sweeping.set()
        return [
            (client_options, "build", self.client),
            *((module, "in_thread", at_once) for module in (renewal, requests, cluster, group_client)),
            *((module, "time", self.clock) for module in readers),
            *((module, "consumers", cache) for module in readers),
        ]

    def client(self, kind: type, settings: dict[str, Any], *more: object) -> Any:
        """In place of `client_options.build`."""
        if kind is Consumer:
            return Reader(self) if "enable.partition.eof" in settings else GroupView(self)
        return self

    # the admin client
    def poll(self, timeout: float) -> None:
        """Nothing is said."""

    def describe_topics(self, asked: Any, request_timeout: float) -> "dict[str, Future[Any]]":
        if self.silent():
            return {name: done(code=NO_ANSWER) for name in asked.topic_names}
        return {name: self._described(name) for name in asked.topic_names}

    def _described(self, name: str) -> "Future[Any]":
        topic = self.topics.get(name)
        if topic is None:
            return done(code=UNKNOWN)
        infos = [SimpleNamespace(id=number) for number in range(len(topic.logs))]
        return done(SimpleNamespace(partitions=infos, topic_id=Uuid(0, topic.number)))

    def list_topics(self, timeout: float) -> Any:
        if self.silent():
            raise KafkaException(KafkaError(NO_ANSWER))
        found = {name: SimpleNamespace(partitions=dict.fromkeys(range(len(t.logs)))) for name, t in self.topics.items()}
        return SimpleNamespace(topics=found)

    def list_offsets(self, asked: dict[Any, Any], isolation_level: Any, request_timeout: float) -> "dict[Any, Any]":
        if self.silent():
            return {tp: done(code=NO_ANSWER) for tp in asked}
        committed = isolation_level is IsolationLevel.READ_COMMITTED
        return {tp: self._offset((tp.topic, tp.partition), spec is EARLIEST, committed) for tp, spec in asked.items()}

    def _offset(self, key: PartitionKey, first: bool, committed: bool) -> "Future[Any]":
        if key not in self.partitions():
            return done(code=UNKNOWN)
        log = self.log(key)
        end = log.readable if committed else log.end
        return done(SimpleNamespace(offset=log.first if first else end, leader_epoch=None))


@dataclass
class GroupView:
    """The client of the group's offsets."""

    kafka: Kafka

    def poll(self, timeout: float) -> None:
        """Nothing is said."""

    def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        if self.kafka.silent():
            raise KafkaException(KafkaError(NO_ANSWER))
        found = [(tp.topic, tp.partition) for tp in asked]
        return [TopicPartition(*key, *self.kafka.offsets.get(key, (-1001, "")), leader_epoch=-1) for key in found]

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        self.kafka.effects.gate("before commit")
        silent = self.kafka.silent()
        if silent and not self.kafka.silent_commits:
            raise KafkaException(KafkaError(NO_ANSWER))
        if any((tp.topic, tp.partition) not in self.kafka.partitions() for tp in offsets):
            raise KafkaException(KafkaError(UNKNOWN))
        self.kafka.commits += 1
        self.kafka.is_first_commit = not self.kafka.offsets
        for tp in offsets:
            self.kafka.on_commit((tp.topic, tp.partition), tp.offset, tp.metadata or "")
            self.kafka.offsets[tp.topic, tp.partition] = (tp.offset, tp.metadata or "")
        self.kafka.effects.gate("after commit")
        if silent:
            raise KafkaException(KafkaError(NO_ANSWER))
        return offsets

    def close(self) -> None:
        """Nothing to close."""


class Reader:
    """A consumer of records: as many at once as it likes, then once an event where a topic-partition ends."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._positions: dict[PartitionKey, int] = {}
        self._told: dict[PartitionKey, int] = {}

    def assign(self, where: list[TopicPartition]) -> None:
        self._positions = {(tp.topic, tp.partition): tp.offset for tp in where}
        self._told = {}

    def unassign(self) -> None:
        self._positions = {}

    def incremental_unassign(self, where: list[TopicPartition]) -> None:
        for tp in where:
            self._positions.pop((tp.topic, tp.partition))

    def poll(self, timeout: float) -> None:
        """Nothing is said."""

    def close(self) -> None:
        """Nothing to close."""

    def get_watermark_offsets(self, tp: TopicPartition, timeout: float) -> tuple[int, int]:
        if (tp.topic, tp.partition) not in self._kafka.partitions():
            raise KafkaException(KafkaError(UNKNOWN))
        log = self._kafka.log((tp.topic, tp.partition))
        return log.first, log.end

    def consume(self, count: int, timeout: float) -> list[Message]:
        self._kafka.effects.gate("fetch")
        silent = self._kafka.silent()
        found = [] if silent else [message for key in list(self._positions) for message in self._fetched(key, count)]
        if not found:
            self._kafka.clock.sleep(timeout)
        return found

    def _fetched(self, key: PartitionKey, count: int) -> list[Message]:
        if key not in self._kafka.partitions():
            return []
        log, at = self._kafka.log(key), self._positions[key]
        if not log.first <= at <= log.end:
            return [_event(key, at, KafkaError._AUTO_OFFSET_RESET)]
        if at > log.readable:
            return []
        records = log.between(at, log.readable)[: min(count, self._kafka.chance.choice([1, 3, 1_000]))]
        self._positions[key] = records[-1].offset + 1 if records else at
        if not records and self._told.get(key) != log.readable:
            self._positions[key] = self._told[key] = log.readable
            return [_event(key, log.readable, KafkaError._PARTITION_EOF)]
        return [_message(key, record) for record in records]


def _message(key: PartitionKey, record: Record) -> Message:
    where = {"topic": key[0], "partition": key[1], "offset": record.offset}
    return Message(**where, value=record.value, key=record.key, timestamp=(1, record.at_ms), headers=[*record.headers])


def _event(key: PartitionKey, offset: int, code: int) -> Message:
    return Message(topic=key[0], partition=key[1], offset=offset, error=KafkaError(code))
