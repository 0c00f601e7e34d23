"""Where each topic-partition of a connector stands, and what the parts of its planner share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from parquet_sink.config.settings import ConnectorSettings
from parquet_sink.kafka.away import Away
from parquet_sink.kafka.offsets import GroupOffsets, Key
from parquet_sink.kafka.starts import TopicIds
from parquet_sink.kafka.watermarks import Watermarks
from parquet_sink.state import State


@dataclass
class Standing:
    """`starts`: the next offset of each topic-partition; `gone`: those that were deleted, which Spark still lists."""

    starts: dict[Key, int] = field(default_factory=dict)
    gone: set[Key] = field(default_factory=set)

    def at(self, start: Mapping[Key, int]) -> dict[Key, int]:
        """`start`, with topic-partitions that were found since and without those that are gone."""
        known = {**self.starts, **start}
        return {key: offset for key, offset in known.items() if key not in self.gone}

    def let_go(self, key: Key) -> None:
        """This topic-partition was deleted."""
        self.gone.add(key)
        del self.starts[key]


@dataclass(frozen=True)
class Context:
    """The connector's settings and state, both clients of Kafka, and a clock (epoch seconds that never jump)."""

    settings: ConnectorSettings
    state: State
    cluster: Watermarks
    group: GroupOffsets
    ids: TopicIds
    standing: Standing
    now: Callable[[], float]
    away: Away
