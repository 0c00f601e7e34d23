"""Where topic-partitions start, and which topics their offsets belong to: names come back, ids do not."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from parquet_sink.errors import BrokerAway, ConnectorError, OffsetsLost, TopicGone
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.group.committed import Committed, RangePlan
from parquet_sink.kafka.group.offsets import GroupOffsets
from parquet_sink.kafka.leader_epochs import LeaderEpochs, offsets_deleted, topic_recreated
from parquet_sink.kafka.resets import reset_command
from parquet_sink.kafka.settings import PlanningSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import LostOffsets

log = logging.getLogger(__name__)


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

    def resolve(
        self, keys: Sequence[PartitionKey], reset: str, reappeared: Collection[PartitionKey] = ()
    ) -> tuple[dict[PartitionKey, int], dict[PartitionKey, RangePlan]]:
        """The start of each, and the ranges that were being flushed from there when an earlier run ended.

        A start is the committed offset if it belongs to the topic as it is now and Kafka still has it, else what
        `reset` says; unavailable ones have none. The ids of the topics must have been asked for before.
        reappeared: those
        that were gone meanwhile, so that an offset whose topic is not known is not believed. Raises OffsetsLost,
        KafkaFailed.
        """
        committed = self._group.read(keys)
        first, last = self._cluster.beginning_offsets(keys), self._cluster.end_offsets(keys)
        starts: dict[PartitionKey, int] = {}
        plans: dict[PartitionKey, RangePlan] = {}
        for key in keys:
            if key not in first or key not in last:
                continue  # unavailable
            found = committed.get(key)
            self._epochs.set(key, None)
            if found is None:
                starts[key] = self._reset(key, reset, first[key], last[key])
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
        return starts, plans

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


def topics_of(keys: Iterable[PartitionKey]) -> set[str]:
    """The topics of topic-partitions."""
    return {topic for topic, _ in keys}
