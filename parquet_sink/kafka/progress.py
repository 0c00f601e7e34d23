"""Where each topic-partition of a connector stands, and what the parts of its planner share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from parquet_sink.kafka.group_offsets import GroupOffsets, Key
from parquet_sink.kafka.leader_epochs import Epochs
from parquet_sink.kafka.settings import PlanningSettings
from parquet_sink.kafka.start_offsets import TopicIds
from parquet_sink.kafka.unavailable import Away
from parquet_sink.kafka.watermarks import Watermarks
from parquet_sink.state.store import StateStore


@dataclass
class Standing:
    """Of each topic-partition. `starts`: the next offset; `ends`: where it ended when we looked last.

    `gone`: those that were there, and are not any more.
    """

    starts: dict[Key, int] = field(default_factory=dict)
    ends: dict[Key, int] = field(default_factory=dict)
    gone: set[Key] = field(default_factory=set)

    def let_go(self, key: Key) -> range:
        """This topic-partition is not there any more. Gives the offsets that were seen of it and not delivered."""
        start = self.starts.pop(key)
        self.gone.add(key)
        return range(start, self.ends.pop(key, start))

    def take_in(self, starts: Mapping[Key, int]) -> None:
        """These topic-partitions are there, and start there."""
        self.starts.update(starts)
        self.gone.difference_update(starts)


@dataclass(frozen=True)
class Context:
    """The connector's settings and state, both clients of Kafka, and a clock (epoch seconds that never jump)."""

    settings: PlanningSettings
    state: StateStore
    cluster: Watermarks
    group: GroupOffsets
    ids: TopicIds
    standing: Standing
    epochs: Epochs
    now: Callable[[], float]
    away: Away
