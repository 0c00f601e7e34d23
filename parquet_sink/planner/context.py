"""Where each topic-partition of a connector stands, and what the parts of its planner share."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.group.offsets import GroupOffsets
from parquet_sink.kafka.leader_epochs import LeaderEpochs
from parquet_sink.kafka.settings import PlanningSettings
from parquet_sink.model.events import OffsetsPassedOver
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import LostOffsets
from parquet_sink.planner.start_offsets import TopicIds
from parquet_sink.planner.unavailable import Spawn, UnavailablePartitions
from parquet_sink.process.threads import in_thread
from parquet_sink.state.sqlite import SqliteStore


@dataclass
class PartitionOffsets:
    """Of each topic-partition. `starts`: the next offset; `ends`: its high watermark when we looked last.

    `removed`: those that were there, and are not any more.
    """

    starts: dict[PartitionKey, int] = field(default_factory=dict)
    ends: dict[PartitionKey, int] = field(default_factory=dict)
    removed: set[PartitionKey] = field(default_factory=set)

    def remove(self, key: PartitionKey) -> range:
        """This topic-partition is not there any more. Gives the offsets that were seen of it and not delivered."""
        start = self.starts.pop(key)
        self.removed.add(key)
        return range(start, self.ends.pop(key, start))

    def add(self, starts: Mapping[PartitionKey, int]) -> None:
        """These topic-partitions are there, and start there."""
        self.starts.update(starts)
        self.removed.difference_update(starts)


@dataclass(frozen=True)
class PlanningContext:
    """The connector's settings and state, both clients of Kafka, and a clock (epoch seconds that never jump).

    spawn: asks Kafka in the background. monotonic: the clock that all processes of the machine have in common.
    """

    settings: PlanningSettings
    state: SqliteStore
    cluster: KafkaCluster
    group: GroupOffsets
    ids: TopicIds
    offsets: PartitionOffsets
    epochs: LeaderEpochs
    now: Callable[[], float]
    unavailable: UnavailablePartitions
    spawn: Spawn = in_thread
    monotonic: Callable[[], float] = time.monotonic

    def remember(self, offsets: Mapping[PartitionKey, int]) -> bool:
        """Record up to where these are delivered, beside the group's offsets, which brokers may forget.

        Return whether one of them is new.
        """
        return self.state.record_delivered(offsets, self.ids.by_topic)

    def on_lost(self, key: PartitionKey, lost: LostOffsets) -> None:
        """What these offsets of a topic-partition held is gone, and the connector goes on."""
        gone = OffsetsPassedOver(self.settings.name, self.now(), *key, lost.start, lost.end, lost.cause)
        self.state.append_events([gone])
