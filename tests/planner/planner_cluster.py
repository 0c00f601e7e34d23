"""A broker and a group for tests of the planner, in place of `KafkaCluster` and `GroupOffsets`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from parquet_sink.config.secret import Secret
from parquet_sink.errors import AnotherInstance, BrokerAway
from parquet_sink.files.rotation import Reason
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.cluster.cluster import Topics
from parquet_sink.kafka.cluster.native_admin import End
from parquet_sink.kafka.group.committed import NO_PLANS, Committed, RangePlan, commit_metadata
from parquet_sink.kafka.leader_epochs import LeaderEpochs
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings, PlanningSettings
from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import Accepted, PlannedRange
from parquet_sink.planner.admission import Candidate, Range
from parquet_sink.planner.context import PartitionOffsets, PlanningContext
from parquet_sink.planner.first_timestamps import LIMIT_S
from parquet_sink.planner.planner import Planner
from parquet_sink.planner.start_offsets import TopicIds
from parquet_sink.planner.unavailable import BrokerOutage, Spawn, UnavailablePartitions
from parquet_sink.process.threads import in_thread
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import REPORTED
from parquet_sink.targets.push.settings import PushSettings
from tests.factories import Clock

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


class Cluster:
    """A broker: topic-partitions from first to end offset, and the group. `away` counts calls that fail.

    Topics made anew are in `tests.kafka.simulation`.
    """

    def __init__(self) -> None:
        self.logs: dict[PartitionKey, tuple[int, int]] = {KEY: (0, 0)}
        self.highest: dict[PartitionKey, int] = {}
        self.group: dict[PartitionKey, int] = {}
        self.plans: dict[PartitionKey, RangePlan] = {}
        self.calls: list[str] = []
        self.polls = 0
        self.times = Times()
        self.epochs: dict[PartitionKey, int] = {}
        self.away = 0
        self.leaderless: set[PartitionKey] = set()
        self.foreign = False

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.away:
            self.away -= 1
            raise BrokerAway("no answer.")

    # Watermarks
    def topic_partitions(self, *, allow_missing: bool = False) -> list[PartitionKey]:
        self._called("topic_partitions")
        return sorted(self.logs)

    def topics(self) -> Topics:
        self._called("topic_partitions")
        return Topics(sorted(self.logs), {topic: f"id-of-{topic}" for topic, _ in self.logs})

    def quick_ends(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        self._called("quick")
        there = [key for key in keys if key in self.logs and key not in self.leaderless]
        return {key: max(self.highest.get(key, 0), self.logs[key][1]) for key in there}

    def beginning_offsets(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        self._called("starts")
        return self._led({key: self.logs[key][0] for key in keys})

    def end_offsets(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        self._called("ends")
        return self._led({key: self.logs[key][1] for key in keys})

    def ends_if_available(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, End]:
        self._called("back")
        return {key: End(self.logs[key][1], None) for key in keys if key not in self.leaderless}

    def take_ends(self, found: Mapping[PartitionKey, End]) -> dict[PartitionKey, int]:
        return {key: end.offset for key, end in found.items()}

    def unavailable_reason(self, key: PartitionKey) -> str:
        return "no leader"

    def _led(self, found: dict[PartitionKey, int]) -> dict[PartitionKey, int]:
        led = {key: offset for key, offset in found.items() if key not in self.leaderless}
        if found and not led:
            raise BrokerAway("no leader.")
        return led

    def poll(self) -> None:
        self.polls += 1

    def high_watermarks(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        self._called("highs")
        return self._led({key: max(self.highest.get(key, 0), self.logs[key][1]) for key in keys})

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        if topics:
            self._called("ids")
        there = {topic for topic, _ in self.logs}
        return {topic: f"id-of-{topic}" for topic in topics if topic in there}

    # GroupOffsets
    def read(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, Committed]:
        self._called("read")
        signed = {key: commit_metadata(ME, self.plans.get(key)) for key in keys}
        return {key: Committed(self.group[key], signed[key]) for key in keys if key in self.group}

    def take_over(self) -> None:
        """Fences are tested with the real one."""

    def claim(self, offsets: Mapping[PartitionKey, int], plans: Mapping[PartitionKey, RangePlan] = NO_PLANS) -> None:
        self._signed("claim", offsets, plans)

    def recommit(self, offsets: Mapping[PartitionKey, int], plans: Mapping[PartitionKey, RangePlan] = NO_PLANS) -> None:
        self.verify(list(offsets))
        self._signed("recommit", offsets, plans)

    def reset(self, offsets: Mapping[PartitionKey, int]) -> None:
        self._signed("reset", offsets, NO_PLANS)

    def _signed(self, name: str, offsets: Mapping[PartitionKey, int], plans: Mapping[PartitionKey, RangePlan]) -> None:
        if offsets:
            self._called(name)
        self.group |= offsets
        self.plans = {key: plan for key, plan in self.plans.items() if key not in offsets}
        self.plans |= {key: plan for key, plan in plans.items() if key in offsets}

    def uncommitted(self, offsets: Mapping[PartitionKey, int]) -> dict[PartitionKey, int]:
        return {key: offset for key, offset in offsets.items() if offset > self.group.get(key, -1)}

    def commit(self, offsets: dict[PartitionKey, int], plans: Mapping[PartitionKey, RangePlan] = NO_PLANS) -> None:
        self._called("commit")
        higher = self.uncommitted(offsets)
        self.group |= higher
        self.plans |= {key: plan for key, plan in plans.items() if key in higher}

    def verify(self, keys: Sequence[PartitionKey] | None = None) -> None:
        if keys is None or keys:
            self._called("verify")
        if self.foreign and keys != []:
            raise AnotherInstance("another")

    def forget(self, key: PartitionKey) -> None:
        """What is forgotten is tested with the real one."""

    def close(self) -> None:
        self._called("close")


class Times:
    """When the first records were made, how large their values are from an offset on, and what was asked.

    values: gives the mean size, None where there are no records; nothing comes while it is None. hurried: of what was
    asked, in which there was less time than usual.
    """

    def __init__(self) -> None:
        self.of: dict[PartitionKey, int] = {}
        self.asked: list[dict[PartitionKey, int]] = []
        self.hurried: list[dict[PartitionKey, int]] = []
        self.values: Callable[[PartitionKey, int], float | None] | None = None
        self.looks: list[dict[PartitionKey, int]] = []

    def value_bytes(self, starts: Mapping[PartitionKey, int]) -> dict[PartitionKey, float | None]:
        self.looks.append(dict(starts))
        return {} if self.values is None else {key: self.values(key, offset) for key, offset in starts.items()}

    def read(
        self, starts: Mapping[PartitionKey, int], now_ms: int, limit_s: float = LIMIT_S
    ) -> dict[PartitionKey, int]:
        self.asked.append(dict(starts))
        if limit_s < LIMIT_S:
            self.hurried.append(dict(starts))
        return {key: at for key, at in self.of.items() if key in starts}


def planner_on(
    cluster: Cluster,
    settings: PlanningSettings,
    state: SqliteStore,
    clock: Clock,
    kind: type[Planner] = Planner,
    spawn: Spawn = in_thread,
    **more: Any,
) -> Planner:
    """A planner of this kind with the cluster for all of its clients. more: as of `Planner`."""
    context = PlanningContext(
        settings,
        state,
        cluster=cluster,
        group=cluster,
        ids=TopicIds(cluster),
        offsets=PartitionOffsets(),
        epochs=LeaderEpochs(cluster.epochs),
        now=clock.now,
        unavailable=UnavailablePartitions(settings.name, state, clock.now),
        spawn=spawn,
        monotonic=clock.now,
    )
    outage = BrokerOutage(settings.name, state, clock.now, settings.away_timeout_ms)
    return kind(context, outage, cluster.times, sleep=clock.sleep, **more)


class Reported(Planner):
    """A planner beside a sink that reports each micro-batch as done, unless the test reported it."""

    def tick(self, finished: Mapping[PartitionKey, int]) -> list[PlannedRange]:
        if not self._state.get(REPORTED):
            ended = [one for one in self.in_flight if (one.topic, one.partition) in finished]
            self._state.record_accepted([done(one) for one in ended], self._now())
        return super().tick(finished)


def done(planned: PlannedRange) -> Accepted:
    """What the sink reports of a range that is accepted as a whole."""
    return Accepted(planned.topic, planned.partition, planned.end, planned.start, planned.end, planned.reason)


def spans(ranges: Sequence[PlannedRange]) -> list[Candidate]:
    """Which ranges these are."""
    return [(one.topic, one.partition, Range(one.start, one.end, Reason(one.reason))) for one in ranges]
