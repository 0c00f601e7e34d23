"""What the config and status topics say, folded record by record: states that any worker computes alike.

A record changes what its key stands for, and nothing else: the target state of a connector may come before its
configuration, and outlives it until it is removed by itself. What cannot be read leaves things as they are, such as an
assignment that a later release wrote, above which an older one must write nothing.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Self, TypeVar

from parquet_sink.distributed import records
from parquet_sink.distributed.assignment import EMPTY, Assignment, Release
from parquet_sink.distributed.records import ConnectorReport, Entry, Kind, SessionKey
from parquet_sink.worker.herder.values import TargetState

log = logging.getLogger(__name__)

CURE: Final = "Run the release that wrote it, write it again, or remove it by a record without a value"
V = TypeVar("V")


@dataclass(frozen=True)
class TopicState:
    """What a topic says below an offset: of each kind of records the values by name. It never changes.

    offsets: at which the values were written. offset: the next one, of a topic that has one topic-partition.
    unreadable: by key, why.
    """

    topic: ClassVar[str]
    kinds: ClassVar[Sequence[Kind[Any]]]
    values: Mapping[Kind[Any], Mapping[str, Any]] = field(default_factory=dict, repr=False)
    offsets: Mapping[Kind[Any], Mapping[str, int]] = field(default_factory=dict, repr=False)
    offset: int = 0
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def fold(self, entries: Sequence[Entry]) -> Self:
        """With all these records of one topic-partition, in order. Logs each key that cannot be read once."""
        if not entries:
            return self
        # once, however many records there are
        values = {kind: dict(self.of(kind)) for kind in self.kinds}
        offsets = {kind: dict(self.offsets.get(kind, {})) for kind in self.kinds}
        unreadable = dict(self.unreadable)
        for entry in entries:
            key = (entry.key or b"").decode(errors="replace")
            try:
                record = records.parse(self.kinds, entry)
            except records.Unreadable as error:
                if key not in unreadable:
                    log.warning(
                        "The record %r at offset %d of the %s topic is skipped: %s. %s.",
                        key,
                        entry.offset,
                        self.topic,
                        error,
                        CURE,
                    )
                unreadable[key] = str(error)
                continue
            unreadable.pop(key, None)
            if record is not None:
                values[record.kind].pop(record.name, None)
                offsets[record.kind].pop(record.name, None)
                if record.value is not None:
                    values[record.kind][record.name] = record.value
                    offsets[record.kind][record.name] = entry.offset
        return replace(self, values=values, offsets=offsets, offset=entries[-1].offset + 1, unreadable=unreadable)

    def of(self, kind: Kind[V]) -> Mapping[str, V]:
        """The values of a kind, by name."""
        return self.values.get(kind, {})

    def offset_of(self, kind: Kind[Any], name: str) -> int:
        """Where a value was written; -1: there is none."""
        return self.offsets.get(kind, {}).get(name, -1)


class ConfigState(TopicState):
    """What the config topic says."""

    topic = "config"
    kinds = records.CONFIG_KINDS

    @property
    def connectors(self) -> Mapping[str, Mapping[str, str]]:
        """Configurations by name."""
        return self.of(records.CONNECTOR)

    @property
    def targets(self) -> Mapping[str, TargetState]:
        return self.of(records.TARGET)

    def target_of(self, name: str) -> TargetState:
        """What a connector is to do."""
        return self.targets.get(name, TargetState.STARTED)

    @property
    def assignment(self) -> Assignment:
        """EMPTY before there is one."""
        return self.of(records.ASSIGNMENT).get("", EMPTY)

    @property
    def session_key(self) -> SessionKey | None:
        return self.of(records.SESSION_KEY).get("")

    @property
    def cluster(self) -> str:
        """Whose topic it is; empty: nobody said."""
        return self.of(records.CLUSTER).get("", "")

    @property
    def foreign(self) -> int:
        """Offset of the last record that only Kafka Connect writes; -1: there is none."""
        return max(
            (offset for kind in records.OF_CONNECT for offset in self.offsets.get(kind, {}).values()), default=-1
        )


class StatusState(TopicState):
    """What the status topic says."""

    topic = "status"
    kinds = records.STATUS_KINDS

    @property
    def connectors(self) -> Mapping[str, ConnectorReport]:
        return self.of(records.STATUS)

    @cached_property
    def tasks(self) -> Mapping[str, Mapping[int, ConnectorReport]]:
        """By connector and number."""
        found: dict[str, dict[int, ConnectorReport]] = {}
        for name, report in self.of(records.TASK_STATUS).items():
            connector, task = records.task_of(name)
            found.setdefault(connector, {})[task] = report
        return found

    @cached_property
    def topics(self) -> Mapping[str, tuple[str, ...]]:
        """Active ones, by connector."""
        found: dict[str, tuple[str, ...]] = {}
        for topic, connector in sorted(map(records.topic_of, self.of(records.TOPIC))):
            found[connector] = (*found.get(connector, ()), topic)
        return found

    @property
    def releases(self) -> Mapping[str, Release]:
        """The last of each connector, by anybody."""
        return self.of(records.RELEASE)

    @property
    def leaving(self) -> Mapping[str, str]:
        """Worker ids to the member ids that were asked to stop."""
        return self.of(records.LEAVING)

    @property
    def folders(self) -> Mapping[str, frozenset[str]]:
        """Worker ids to the connectors that have a folder there."""
        return self.of(records.FOLDERS)
