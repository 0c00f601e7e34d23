"""What a planner asks of Kafka, answered from memory."""

from collections.abc import Mapping, Sequence

from parquet_sink.config.secret import Secret
from parquet_sink.errors import AnotherInstance, BrokerAway
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.group.offsets import NO_PLANS, Committed, Key, RangePlan, commit_metadata
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.model.instance import Instance
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.shape.settings import ShapeSettings
from parquet_sink.targets.push.settings import PushSettings

KEY = ("orders", 0)
ME = Instance("me", "host", 1, "now")
SETTINGS = SinkSettings(
    "orders",
    KafkaSettings(("orders",), None, "connect-orders", {"bootstrap.servers": "localhost:9092"}),
    FlushSettings(1_000_000, 100, 2_000),
    ShapeSettings(),
    FileSettings("/nowhere"),
    PushSettings("http://localhost/", Secret("AppKey k"), "t"),
)


class Times:
    """When the first records were made, and what was asked."""

    def __init__(self) -> None:
        self.of: dict[Key, int] = {}
        self.asked: list[dict[Key, int]] = []

    def read(self, starts: Mapping[Key, int], now_ms: int) -> dict[Key, int]:
        self.asked.append(dict(starts))
        return {key: at for key, at in self.of.items() if key in starts}


class Cluster:
    """A broker: topic-partitions from first to end offset, and the group. `away` counts calls that fail.

    Topics made anew are in tests/test_kafka_starts.py.
    """

    def __init__(self) -> None:
        self.logs: dict[Key, tuple[int, int]] = {KEY: (0, 0)}
        self.highest: dict[Key, int] = {}
        self.group: dict[Key, int] = {}
        self.plans: dict[Key, RangePlan] = {}
        self.calls: list[str] = []
        self.polls = 0
        self.times = Times()
        self.epochs: dict[Key, int] = {}
        self.away = 0
        self.leaderless: set[Key] = set()
        self.foreign = False

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.away:
            self.away -= 1
            raise BrokerAway("no answer.")

    # Watermarks
    def topic_partitions(self, *, allow_missing: bool = False) -> list[Key]:
        self._called("topic_partitions")
        return sorted(self.logs)

    def beginning_offsets(self, keys: Sequence[Key]) -> dict[Key, int]:
        self._called("starts")
        return self._led({key: self.logs[key][0] for key in keys})

    def end_offsets(self, keys: Sequence[Key]) -> dict[Key, int]:
        self._called("ends")
        return self._led({key: self.logs[key][1] for key in keys})

    def end_offsets_if_available(self, keys: Sequence[Key]) -> dict[Key, int]:
        self._called("back")
        return {key: self.logs[key][1] for key in keys if key not in self.leaderless}

    def unavailable_reason(self, key: Key) -> str:
        return "no leader"

    def _led(self, found: dict[Key, int]) -> dict[Key, int]:
        led = {key: offset for key, offset in found.items() if key not in self.leaderless}
        if found and not led:
            raise BrokerAway("no leader.")
        return led

    def poll(self) -> None:
        self.polls += 1

    def high_watermarks(self, keys: Sequence[Key]) -> dict[Key, int]:
        self._called("highs")
        return {key: self.highest.get(key, self.logs[key][1]) for key in keys}

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        if topics:
            self._called("ids")
        there = {topic for topic, _ in self.logs}
        return {topic: f"id-of-{topic}" for topic in topics if topic in there}

    # GroupOffsets
    def read(self, keys: Sequence[Key]) -> dict[Key, Committed]:
        self._called("read")
        signed = {key: commit_metadata(ME, self.plans.get(key)) for key in keys}
        return {key: Committed(self.group[key], signed[key]) for key in keys if key in self.group}

    def claim(self, offsets: Mapping[Key, int], plans: Mapping[Key, RangePlan] = NO_PLANS) -> None:
        self._signed("claim", offsets, plans)

    def recommit(self, offsets: Mapping[Key, int], plans: Mapping[Key, RangePlan] = NO_PLANS) -> None:
        self.verify(list(offsets))
        self._signed("recommit", offsets, plans)

    def reset(self, offsets: Mapping[Key, int]) -> None:
        self._signed("reset", offsets, NO_PLANS)

    def _signed(self, name: str, offsets: Mapping[Key, int], plans: Mapping[Key, RangePlan]) -> None:
        if offsets:
            self._called(name)
        self.group |= offsets
        self.plans = {key: plan for key, plan in self.plans.items() if key not in offsets}
        self.plans |= {key: plan for key, plan in plans.items() if key in offsets}

    def uncommitted(self, offsets: Mapping[Key, int]) -> dict[Key, int]:
        return {key: offset for key, offset in offsets.items() if offset > self.group.get(key, -1)}

    def commit(self, offsets: dict[Key, int], plans: Mapping[Key, RangePlan] = NO_PLANS) -> None:
        self._called("commit")
        higher = self.uncommitted(offsets)
        self.group |= higher
        self.plans |= {key: plan for key, plan in plans.items() if key in higher}

    def verify(self, keys: Sequence[Key] | None = None) -> None:
        if keys is None or keys:
            self._called("verify")
        if self.foreign and keys != []:
            raise AnotherInstance("another")

    def forget(self, key: Key) -> None:
        """The real one is in tests/test_kafka_offsets.py."""

    def close(self) -> None:
        self._called("close")
