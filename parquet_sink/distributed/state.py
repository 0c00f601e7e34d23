"""What the config and status topics say, folded record by record: states that any worker computes alike.

A record changes what its key stands for, and nothing else: the target state of a connector may come before its
configuration, and outlives it until it is removed by itself. What cannot be read leaves things as they are.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self, TypeVar

from parquet_sink.distributed.assignment import Assignment, Release
from parquet_sink.distributed.records import (
    Assigned,
    ClusterNamed,
    ConfigRecord,
    ConnectorConfig,
    ConnectorReport,
    Leaving,
    LoggerLevel,
    OfConnect,
    Released,
    Reported,
    RestartAsked,
    SessionKey,
    StatusRecord,
    Target,
    TopicUsed,
    Unreadable,
    parse_config,
    parse_status,
)
from parquet_sink.worker.herder.values import TargetState

log = logging.getLogger(__name__)

CURE: Final = "Run the release that wrote it, write it again, or remove it by a record without a value"
K = TypeVar("K")
R = TypeVar("R")
V = TypeVar("V")


class Entry(NamedTuple):
    """A record as it stands in a topic. value: None is a tombstone."""

    key: bytes | None
    value: bytes | None
    offset: int


@dataclass(frozen=True)
class ConfigState:
    """What the config topic says below an offset.

    connectors: configurations by name. restarts: the last one of each connector; one that was asked for before a worker
    began to read is over. loggers: levels by name, with their offsets: what was written later counts also for loggers
    below. cluster: whose topic it is; empty: nobody said. foreign: offset of the last record that only Kafka Connect
    writes; -1: there is none. offset: the next one. unreadable: by key, why; such as an assignment that a later release
    wrote, above which an older one must write nothing.
    """

    connectors: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    targets: Mapping[str, TargetState] = field(default_factory=dict)
    assignment: Assignment | None = None
    restarts: Mapping[str, RestartAsked] = field(default_factory=dict)
    session_key: SessionKey | None = None
    loggers: Mapping[str, LoggerLevel] = field(default_factory=dict)
    cluster: str = ""
    foreign: int = -1
    offset: int = 0
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def fold(self, entries: Sequence[Entry]) -> Self:
        """With all these records of the topic, in order. Logs each key that cannot be read once."""
        records, unreadable = _readable(parse_config, entries, self.unreadable, "config")
        after = entries[-1].offset + 1 if entries else self.offset
        return replace(self._with(records), offset=after, unreadable=unreadable)

    def apply(self, record: ConfigRecord, offset: int) -> Self:
        """With one more record, at this offset."""
        return replace(self._with([(record, offset)]), offset=offset + 1)

    def _with(self, records: Iterable[tuple[ConfigRecord, int]]) -> Self:
        """Mappings are copied once, however many records there are."""
        connectors, targets, restarts = dict(self.connectors), dict(self.targets), dict(self.restarts)
        loggers, assignment, session_key = dict(self.loggers), self.assignment, self.session_key
        cluster, foreign = self.cluster, self.foreign
        for record, offset in records:
            match record:
                case ConnectorConfig(name, config):
                    _put(connectors, name, config)
                case Target(name, state):
                    _put(targets, name, state)
                case RestartAsked(name):
                    restarts[name] = replace(record, offset=offset)
                case LoggerLevel(namespace, level):
                    _put(loggers, namespace, None if level is None else replace(record, offset=offset))
                case Assigned(assignment):
                    pass
                case SessionKey():
                    session_key = record
                case ClusterNamed(cluster):
                    pass
                case OfConnect():
                    foreign = offset
        return replace(
            self,
            connectors=connectors,
            targets=targets,
            assignment=assignment,
            restarts=restarts,
            session_key=session_key,
            loggers=loggers,
            cluster=cluster,
            foreign=foreign,
        )


@dataclass(frozen=True)
class StatusState:
    """What the status topic says. connectors: by name. tasks: by name and number. topics: active ones, by connector.

    releases: the last of each connector, by anybody. leaving: worker ids to the member ids that were asked to stop.
    unreadable: by key, why.
    """

    connectors: Mapping[str, ConnectorReport] = field(default_factory=dict)
    tasks: Mapping[str, Mapping[int, ConnectorReport]] = field(default_factory=dict)
    topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    releases: Mapping[str, Release] = field(default_factory=dict)
    leaving: Mapping[str, str] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def fold(self, entries: Sequence[Entry]) -> Self:
        """With all these records of one topic-partition, in order. Logs each key that cannot be read once."""
        records, unreadable = _readable(parse_status, entries, self.unreadable, "status")
        return replace(self._with(record for record, _ in records), unreadable=unreadable)

    def apply(self, record: StatusRecord) -> Self:
        """With one more record."""
        return self._with([record])

    def _with(self, records: Iterable[StatusRecord]) -> Self:
        connectors, releases, leaving = dict(self.connectors), dict(self.releases), dict(self.leaving)
        tasks, topics = dict(self.tasks), dict(self.topics)
        for record in records:
            match record:
                case Reported(name, None, report):
                    _put(connectors, name, report)
                case Reported(name, int(task), report):
                    reports = {**tasks.get(name, {})}
                    _put(reports, task, report)
                    _put(tasks, name, reports or None)
                case TopicUsed(name, topic, used):
                    others = {*topics.get(name, ())} - {topic}
                    _put(topics, name, tuple(sorted(others | {topic} if used else others)) or None)
                case Released(name, release):
                    _put(releases, name, release)
                case Leaving(worker_id, member_id):
                    _put(leaving, worker_id, member_id)
        return replace(self, connectors=connectors, tasks=tasks, topics=topics, releases=releases, leaving=leaving)


def _put(mapping: dict[K, V], key: K, value: V | None) -> None:
    """None removes."""
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value


def _readable(
    parse: Callable[[bytes | None, bytes | None], R],
    entries: Sequence[Entry],
    before: Mapping[str, str],
    topic: str,
) -> tuple[list[tuple[R, int]], dict[str, str]]:
    """Records that can be read, each with its offset, and by key why the others cannot."""
    found: list[tuple[R, int]] = []
    unreadable = dict(before)
    for key, value, offset in entries:
        name = (key or b"").decode(errors="replace")
        record = parse(key, value)
        if not isinstance(record, Unreadable):
            unreadable.pop(name, None)
            found.append((record, offset))
            continue
        if name not in unreadable:
            log.warning(
                "The record %r at offset %d of the %s topic is skipped: %s. %s.",
                name,
                offset,
                topic,
                record.why,
                CURE,
            )
        unreadable[name] = record.why
    return found, unreadable
