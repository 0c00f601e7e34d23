"""Where topic-partitions start, and which topics their offsets belong to: names come back, ids do not."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from parquet_sink.errors import BrokerAway, ConnectorError, OffsetsLost, TopicGone
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.group.committed import Committed, RangePlan
from parquet_sink.kafka.group.offsets import GroupOffsets
from parquet_sink.kafka.leader_epochs import LeaderEpochs, offsets_deleted, offsets_forgotten, topic_recreated
from parquet_sink.kafka.resets import reset_command
from parquet_sink.kafka.settings import PlanningSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import LostOffsets

log = logging.getLogger(__name__)

MOST_NAMED: Final = 10
NOTHING_DELIVERED: Final[Mapping[PartitionKey, tuple[int, str]]] = MappingProxyType({})


class TopicIds:
    """The ids of the topics that our offsets belong to. `by_topic`: topic -> id, "" where the cluster gives none."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        self.by_topic: dict[str, str] = {}

    def recreated(self, topics: Iterable[str]) -> list[str]:
        """Those whose id is another one now: deleted and recreated. One request, none for no topics.

        Raises TopicGone when one of them is not there, BrokerAway, KafkaFailed.
        """
        asked = sorted(set(topics))
        now = self._cluster.topic_ids(asked)
        gone = next((topic for topic in asked if topic not in now), None)
        if gone is not None:
            raise TopicGone(f"Topic {gone} is gone.")
        return self.changed(now)

    def changed(self, now: Mapping[str, str]) -> list[str]:
        """Those of these topics that were deleted and recreated. now: their ids."""
        return [topic for topic, found in now.items() if is_another_topic(self.by_topic.get(topic, ""), found)]

    def refresh(self, topics: Iterable[str]) -> None:
        """Looks up the ids to which these topics' offsets belong from now on. Raises BrokerAway, KafkaFailed."""
        asked = sorted(set(topics))
        now = self._cluster.topic_ids(asked)
        missing = next((topic for topic in asked if topic not in now), None)
        if missing is not None:
            raise BrokerAway(f"Topic {missing} is being made or deleted.")
        self.by_topic.update(now)

    def forget(self, topics: Iterable[str]) -> None:
        """Forgets the ids of these topics."""
        for topic in topics:
            self.by_topic.pop(topic, None)


def is_another_topic(before: str, now: str) -> bool:
    """Whether two ids are those of two topics; an unknown id ("") is no difference."""
    return bool(before and now and before != now)


class StartOffsets:
    """Finds where topic-partitions start, by the group's offsets and by what Kafka still has.

    on_lost: called with what is passed over.
    """

    def __init__(
        self,
        settings: PlanningSettings,
        cluster: KafkaCluster,
        group: GroupOffsets,
        ids: TopicIds,
        epochs: LeaderEpochs,
        on_lost: Callable[[PartitionKey, LostOffsets], None] = lambda key, lost: None,
    ) -> None:
        self._name, self._kafka, self._on_lost = settings.name, settings.kafka, on_lost
        self._cluster, self._group, self._ids, self._epochs = cluster, group, ids, epochs
        self.begun = False
        """Whether the connector has begun before, by what was resolved so far."""

    def resolve(
        self,
        keys: Sequence[PartitionKey],
        reset: str,
        reappeared: Collection[PartitionKey] = (),
        delivered: Mapping[PartitionKey, tuple[int, str]] = NOTHING_DELIVERED,
    ) -> tuple[dict[PartitionKey, int], dict[PartitionKey, RangePlan]]:
        """The start of each, and the ranges that were being flushed from there when an earlier run ended.

        A start is the committed offset if it belongs to the topic as it is now and Kafka still has it, else what
        `reset` says; unavailable ones have none. The ids of the topics must have been asked for before.
        `latest` is for the first start: once there is an offset of the connector, what has none is new since then, and
        read as a whole.
        reappeared: those that were gone meanwhile, so that an offset whose topic is not known is not believed.
        delivered: up to where each is delivered, and the id of its topic, by what the connector wrote down itself.
        Raises OffsetsLost, KafkaFailed.
        """
        committed = self._group.read(keys)
        self.begun = self.begun or bool(committed or delivered)
        latest, reset = reset == "latest", "earliest" if reset == "latest" and (committed or delivered) else reset
        first, last = self._cluster.beginning_offsets(keys), self._cluster.end_offsets(keys)
        starts: dict[PartitionKey, int] = {}
        plans: dict[PartitionKey, RangePlan] = {}
        forgotten: dict[PartitionKey, tuple[int, int]] = {}
        for key in keys:
            if key not in first or key not in last:
                continue  # unavailable
            found = committed.get(key)
            self._epochs.set(key, None)
            if found is None:
                starts[key] = self._reset(key, reset, first[key], last[key])
                if self._is_forgotten(key, delivered.get(key), first[key], reappeared):
                    starts[key] = self._forgotten(key, delivered[key][0], first[key], last[key], latest=latest)
                    forgotten[key] = delivered[key][0], starts[key]
            elif self._of_another(found, key, reappeared):
                error = topic_recreated(self._kafka, *key, found.offset)
                starts[key] = self._lost(key, error, LostOffsets.recreated(found.offset), first[key])
            elif first[key] <= found.offset <= self._high(key, found.offset, last[key]):
                starts[key] = found.offset
                self._epochs.set(key, found.epoch)
                plans |= {key: found.plan} if found.plan is not None else {}
            else:
                error = offsets_deleted(self._kafka, *key, found.offset, first[key], last[key])
                starts[key] = self._lost(key, error, LostOffsets.before(first[key], found.offset), first[key])
                if found.plan is not None and found.offset < first[key] < found.plan.end <= last[key]:
                    plans[key] = found.plan  # its rest may have been sent, in files that end where it ends
        if forgotten:
            log.warning("connector %s: %s", self._name, forgotten_message(self._kafka.group, forgotten))
        return starts, plans

    def _is_forgotten(
        self, key: PartitionKey, delivered: tuple[int, str] | None, first: int, reappeared: Collection[PartitionKey]
    ) -> bool:
        """Whether the group had another offset of this topic, and not of one that had its name, than the first."""
        if delivered is None or key in reappeared or is_another_topic(delivered[1], self._ids.by_topic.get(key[0], "")):
            return False
        return delivered[0] != first

    def _forgotten(self, key: PartitionKey, delivered: int, first: int, last: int, *, latest: bool) -> int:
        """Return where it begins anew: with `latest` where it had got, if loss is accepted, as no record is lost so."""
        nearest = delivered if first <= delivered <= self._high(key, delivered, last) else first
        if latest and self._kafka.lost_offsets == "STOP":
            raise offsets_forgotten(self._kafka, *key, delivered, nearest)
        if delivered < first:
            self._on_lost(key, LostOffsets.before(first, delivered))
        return nearest if latest else first

    def _of_another(self, found: Committed, key: PartitionKey, reappeared: Collection[PartitionKey]) -> bool:
        now = self._ids.by_topic.get(key[0], "")
        return is_another_topic(found.topic_id, now) or (key in reappeared and not (found.topic_id and now))

    def _high(self, key: PartitionKey, offset: int, last: int) -> int:
        """Where the topic-partition ends, also beyond its last stable offset if `offset` lies there."""
        return last if offset <= last else self._cluster.high_watermarks([key]).get(key, last)

    def _reset(self, key: PartitionKey, reset: str, first: int, last: int) -> int:
        if reset == "none":
            raise ConnectorError(
                f"Topic {key[0]}, topic-partition {key[1]}: group {self._kafka.group} has no committed "
                f"offset, and auto.offset.reset is none. Commit one with "
                f"{reset_command(self._kafka, f'{key[0]}:{key[1]}')}, or choose earliest or latest."
            ).at(key)
        return last if reset == "latest" else first

    def _lost(self, key: PartitionKey, error: OffsetsLost, lost: LostOffsets, first: int) -> int:
        if self._kafka.lost_offsets == "STOP":
            raise error
        self._on_lost(key, lost)
        log.warning("connector %s: %s Going on at %d.", self._name, error, first)
        return first


def forgotten_message(group: str, forgotten: Mapping[PartitionKey, tuple[int, int]]) -> str:
    """For topic-partitions whose offsets the group has lost: up to where each was delivered, and where it begins."""
    named = [
        f"topic {topic}, topic-partition {partition} was delivered up to offset {delivered}, exclusive, and begins at "
        f"{start}"
        for (topic, partition), (delivered, start) in sorted(forgotten.items())
    ]
    more = f"; and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return (
        f"group {group} has lost committed offsets: it was deleted, or the brokers forgot them "
        f"(offsets.retention.minutes): {'; '.join(named[:MOST_NAMED])}{more}. What was delivered of what comes after "
        "that is sent again, in other files."
    )


def topics_of(keys: Iterable[PartitionKey]) -> set[str]:
    """The topics of topic-partitions."""
    return {topic for topic, _ in keys}
