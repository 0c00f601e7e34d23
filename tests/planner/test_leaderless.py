"""The planner with topic-partitions that have no leader: the others go on, and each joins when it is back."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from parquet_sink.errors import BrokerAway, KafkaFailed
from parquet_sink.model.ranges import PartitionProgress
from parquet_sink.planner import unavailable
from parquet_sink.planner.planner import Planner
from parquet_sink.planner.unavailable import ASK_S
from parquet_sink.state.sqlite import SqliteStore
from tests.factories import Clock
from tests.kafka.simulation import at_once
from tests.messages import assert_says
from tests.planner.planner_cluster import KEY, SETTINGS, Cluster, Reported, planner_on

OTHER = ("orders", 1)


@pytest.fixture
def cluster() -> Cluster:
    """Two topic-partitions with ten records each; the second has no leader."""
    made = Cluster()
    made.logs = {KEY: (0, 10), OTHER: (0, 10)}
    made.leaderless = {OTHER}
    return made


@pytest.fixture
def make(cluster: Cluster, clock: Clock, state: SqliteStore) -> Callable[..., Planner]:
    """Makes planners of the cluster, with other Kafka settings if given."""

    def made(**kafka: object) -> Planner:
        settings = replace(SETTINGS, kafka=replace(SETTINGS.kafka, **kafka))
        return planner_on(cluster, settings, state, clock, Reported, at_once)

    return made


def taken(planner: Planner, accepted: dict[tuple[str, int], int], clock: Clock, ticks: int = 8) -> set[tuple[str, int]]:
    """Topic-partitions of which ranges are due within some ticks."""
    found: set[tuple[str, int]] = set()
    for _ in range(ticks):
        clock.sleep(ASK_S)
        for one in planner.tick(accepted):
            found.add((one.topic, one.partition))
            accepted[one.topic, one.partition] = one.end
    return found


def test_a_start_goes_on_without_those_that_are_away(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock, state: SqliteStore
) -> None:
    """What has a leader is delivered; the other one is shown as away, has no offset, and joins when it is back."""
    planner = make()
    start = planner.begin()
    assert start == {KEY: 0}
    assert taken(planner, start, clock) == {KEY}
    assert OTHER not in cluster.group
    assert [watch for watch in state.progress() if watch.away] == [PartitionProgress(*OTHER, 0, 0, None, away=True)]
    cluster.leaderless.clear()
    assert taken(planner, start, clock) == {OTHER}
    assert cluster.group[OTHER] == 10
    assert not any(watch.away for watch in state.progress())


@pytest.mark.parametrize(("reset", "expected"), [("earliest", 0), ("latest", 12)])
def test_one_that_joins_late_begins_as_it_would_have(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock, reset: str, expected: int
) -> None:
    """Without an offset of the group, what was away at the start begins where `auto.offset.reset` says."""
    planner = make(offset_reset=reset)
    start = planner.begin()
    planner.tick(start)
    cluster.leaderless.clear()
    cluster.logs[OTHER] = (0, 12)
    for _ in range(3):
        clock.sleep(ASK_S)
        planner.tick(start)
    assert planner._offsets.starts[OTHER] == expected


def test_one_that_goes_away_later_keeps_its_place(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock, state: SqliteStore
) -> None:
    """Nothing of it is committed or taken while it is away, and no end of it is made up."""
    cluster.leaderless.clear()
    planner = make()
    start = planner.begin()
    assert taken(planner, start, clock, ticks=2) == {KEY, OTHER}
    cluster.leaderless = {OTHER}
    cluster.logs = {KEY: (0, 20), OTHER: (0, 20)}
    assert taken(planner, start, clock) == {KEY}
    assert cluster.group == {KEY: 20, OTHER: 10}
    assert [(watch.partition, watch.away) for watch in state.progress()] == [(0, False), (1, True)]
    cluster.leaderless.clear()
    assert taken(planner, start, clock) == {OTHER}
    assert cluster.group == {KEY: 20, OTHER: 20}


def test_a_deleted_one_is_waited_for_no_more(
    cluster: Cluster, make: Callable[..., Planner], clock: Clock, state: SqliteStore
) -> None:
    """A topic-partition that was deleted while it was away is asked for no more."""
    planner = make()
    start = planner.begin()
    taken(planner, start, clock, ticks=2)
    del cluster.logs[OTHER]
    taken(planner, start, clock, ticks=4)
    cluster.calls.clear()
    taken(planner, start, clock, ticks=4)
    assert "back" not in cluster.calls


def test_a_drain_is_not_done_without_them(cluster: Cluster, make: Callable[..., Planner], clock: Clock) -> None:
    """Caught up means all of them: the others first, then the one is waited for a while, then the drain fails."""
    planner = make()
    start = planner.begin()
    planner.drain()
    (one,) = planner.tick(start)
    assert ((one.topic, one.partition), one.end) == (KEY, 10)
    with pytest.raises(KafkaFailed, match="topic-partition 1") as found:
        planner.tick({KEY: 10})
    assert type(found.value) is not BrokerAway


def test_a_drain_takes_one_that_comes_back(cluster: Cluster, make: Callable[..., Planner], clock: Clock) -> None:
    """What is back in time is drained too, up to where it ended then."""
    planner = make()
    start = planner.begin()
    planner.drain()
    planner.tick(start)
    cluster.leaderless.clear()
    (one,) = planner.tick({KEY: 10})
    assert ((one.topic, one.partition), one.end) == (OTHER, 10)
    cluster.logs[OTHER] = (0, 20)
    assert planner.tick({KEY: 10, OTHER: 10}) == []


def test_names_are_few() -> None:
    """A message names some of many."""
    assert_says(unavailable.named([("t", number) for number in range(11)]), "topic t, topic-partition 9", "1 more")
