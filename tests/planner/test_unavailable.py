"""Topic-partitions that are away are named once, asked for probe, and named again when they are back."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, cast

import pytest

from parquet_sink.errors import BrokerAway
from parquet_sink.kafka.client.renewal import TimeLimited
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.cluster.native_admin import End
from parquet_sink.model.events import ConnectorRunning, ConnectorWaiting, PartitionAvailable, PartitionUnavailable
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.planner.unavailable import (
    ASK_S,
    REPORT_S,
    BackgroundProbe,
    BrokerOutage,
    EndOffsets,
    UnavailablePartitions,
)
from parquet_sink.process.threads import in_thread
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import STARTED
from tests.factories import Clock
from tests.messages import assert_says
from tests.state.memory_events import MemoryEvents

A, B, C = ("orders", 0), ("orders", 1), ("orders", 2)
STARTS = dict.fromkeys((A, B, C), 0)


class Cluster:
    """EndOffsets of topic-partitions; those without a leader are absent."""

    def __init__(self) -> None:
        self.all = {A: 1, B: 2, C: 3}
        self.leaderless: set[PartitionKey] = set()
        self.asked: list[list[PartitionKey]] = []

    def end_offsets(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        self.asked.append(list(keys))
        found = {key: self.all[key] for key in keys if key not in self.leaderless}
        if not found:
            raise BrokerAway("no leader.")
        return found

    def ends_if_available(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, End]:
        return {key: End(self.all[key], None) for key in keys if key not in self.leaderless}

    def take_ends(self, found: Mapping[PartitionKey, End]) -> dict[PartitionKey, int]:
        return {key: end.offset for key, end in found.items()}

    def unavailable_reason(self, key: PartitionKey) -> str:
        return f"no leader for {key[1]}"


class Later:
    """Background work that is done when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Future[Any]]] = []

    def __call__(self, call: Callable[[], Any]) -> "Future[Any]":
        future: Future[Any] = Future()
        self.waiting.append((call, future))
        return future

    def do(self) -> None:
        for call, future in self.waiting:
            future.set_result(call())
        self.waiting.clear()


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock(1_000.0)


def test_one_that_is_away_holds_up_the_others_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """The others are asked without it from then on; it is named when it goes, and when it is back."""
    caplog.set_level(logging.INFO)
    cluster, unavailable, later = Cluster(), UnavailablePartitions("sink", MemoryEvents(), lambda: 0.0), Later()
    end_offsets = EndOffsets(
        cast(KafkaCluster, cluster),
        unavailable,
        BackgroundProbe(cast(KafkaCluster, cluster), clock, later),
        committed=False,
    )
    cluster.leaderless = {B}
    assert end_offsets.fetch([A, B, C], STARTS) == {A: 1, C: 3}
    for _ in range(3):
        assert end_offsets.fetch([A, B, C], STARTS) == {A: 1, C: 3}
    later.do()
    assert end_offsets.fetch([A, B, C], STARTS) == {A: 1, C: 3}
    assert cluster.asked == [[A, B, C], *[[A, C]] * 4]
    assert set(unavailable) == {B}
    cluster.leaderless.clear()
    clock.seconds += ASK_S
    end_offsets.fetch([A, B, C], STARTS)
    later.do()
    assert end_offsets.fetch([A, B, C], STARTS) == {A: 1, B: 2, C: 3}
    assert cluster.asked[-1] == [A, C]
    end_offsets.fetch([A, B, C], STARTS)
    assert cluster.asked[-1] == [A, B, C]
    gone, back = (record.message for record in caplog.records)
    assert_says(gone, "connector sink", "unavailable", "topic orders, topic-partition 1.", "no leader for 1.", "go on")
    assert_says(back, "connector sink", "available again", "topic orders, topic-partition 1")


def test_those_that_are_away_are_asked_for_every_few_seconds(clock: Clock) -> None:
    """One question at a time, and never more often than that."""
    cluster, unavailable, later = Cluster(), UnavailablePartitions("sink", MemoryEvents(), lambda: 0.0), Later()
    probe = BackgroundProbe(cast(KafkaCluster, cluster), clock, later)
    cluster.leaderless = {B}
    for _ in range(5):
        assert probe.end_offsets([B]) == {}
        clock.seconds += ASK_S
    assert len(later.waiting) == 1
    later.do()
    assert probe.end_offsets([B]) == {}
    assert probe.end_offsets([B]) == {}
    assert len(later.waiting) == 1
    assert len(unavailable) == 0


def test_all_away_is_a_broker_that_is_away(clock: Clock) -> None:
    """When none answers the tick fails as it does without any broker, and the first to answer ends that."""
    cluster, unavailable = Cluster(), UnavailablePartitions("sink", MemoryEvents(), lambda: 0.0)
    end_offsets = EndOffsets(
        cast(KafkaCluster, cluster),
        unavailable,
        BackgroundProbe(cast(KafkaCluster, cluster), clock, Later()),
        committed=False,
    )
    cluster.leaderless = {B}
    end_offsets.fetch([A, B], STARTS)
    cluster.leaderless = {A, B}
    for _ in range(2):
        with pytest.raises(BrokerAway):
            end_offsets.fetch([A, B], STARTS)
    unavailable.mark_unavailable([A], cluster.unavailable_reason)
    with pytest.raises(BrokerAway):
        end_offsets.fetch([A, B], STARTS)
    cluster.leaderless = {B}
    assert end_offsets.fetch([A, B], STARTS) == {A: 1}
    assert set(unavailable) == {B}


def test_many_that_go_away_together_have_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """A broker that led a thousand topic-partitions is one line, with some names and a count."""
    unavailable = UnavailablePartitions("sink", MemoryEvents(), lambda: 0.0)
    unavailable.mark_unavailable([("orders", number) for number in range(1_000)], lambda key: "no leader")
    (record,) = caplog.records
    assert_says(record.message, "topic-partition 9 ", "990 more", "no leader")


def test_those_that_come_and_go_are_events() -> None:
    """Each topic-partition that does not answer, with the reason, and each that answers again; once."""
    store = MemoryEvents()
    unavailable = UnavailablePartitions("sink", store, lambda: 5.0)
    unavailable.mark_unavailable([A, B], lambda key: "no leader")
    unavailable.mark_unavailable([A], lambda key: "no leader")
    unavailable.mark_available([A, C])
    assert store.events_after(0).events == (
        PartitionUnavailable("sink", 5.0, *A, "no leader"),
        PartitionUnavailable("sink", 5.0, *B, "no leader"),
        PartitionAvailable("sink", 5.0, *A),
    )


def test_the_absence_of_brokers_is_told_every_half_minute(
    clock: Clock, state: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Not at each tick; the program sees it as long as it lasts, and the log says when it is over."""
    caplog.set_level(logging.INFO)
    outage = BrokerOutage("sink", state, clock)
    outage.end()
    for _ in range(60):
        outage.report("b:9092: connection refused.")
        clock.seconds += 1
    told = state.events_after(0)
    assert told.events == tuple(
        ConnectorWaiting("sink", clock.seconds - ago_s, "b:9092: connection refused.") for ago_s in (60, 30)
    )
    state.set(STARTED, True)
    outage.end()
    outage.end()
    assert state.events_after(told.position).events == (ConnectorRunning("sink", clock.seconds),)
    assert REPORT_S == 30
    first, second, back = caplog.messages
    assert first == second
    assert_says(first, "connector sink", "b:9092: connection refused.", "Nothing is lost", "trying again")
    assert_says(back, "connector sink", "Kafka answers again")


def test_a_bounded_call_gives_what_it_gives() -> None:
    """Results and exceptions pass."""
    bounded = TimeLimited(20)
    assert bounded.run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        bounded.run(lambda: 1 // 0)
    assert bounded.run(lambda: 8) == 8


def test_a_call_that_hangs_is_left_alone() -> None:
    """It counts as timed out; what is called next waits for it, so that calls keep their order."""
    bounded, release, done = TimeLimited(0.05), Future[None](), []
    with pytest.raises(TimeoutError):
        bounded.run(lambda: done.append(release.result(20)))
    with pytest.raises(TimeoutError):
        bounded.run(lambda: done.append("second"))
    assert done == []
    release.set_result(None)
    patient = TimeLimited(20)
    patient._before = bounded._before
    patient.run(lambda: done.append("third"))
    assert done == [None, "third"]


def test_a_thread_hands_over_its_exception() -> None:
    """What goes wrong in the background is seen by who asks for the result."""
    with pytest.raises(ValueError, match="no"):
        in_thread(lambda: int("no")).result(20)
