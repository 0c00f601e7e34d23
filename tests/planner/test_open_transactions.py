"""An open transaction holds records back: they count as lag, they are warned of, and a drain does not end without."""

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

from parquet_sink.errors import TransactionOpen
from parquet_sink.files.rotation import Reason
from parquet_sink.model.flushes import FlushRequest, progress_from_json, requests_to_json
from parquet_sink.model.ranges import HELD_WARNING_S
from parquet_sink.planner.admission import Range
from parquet_sink.planner.open_transactions import DRAIN_WAIT_S
from parquet_sink.planner.planner import Planner
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import FLUSH, FLUSHED
from tests.factories import Clock
from tests.messages import assert_says
from tests.planner.planner_cluster import KEY, SETTINGS, Cluster, Reported, planner_on, spans

OTHER = ("orders", 1)


@pytest.fixture
def make(cluster: Cluster, clock: Clock, state: SqliteStore) -> Callable[..., Planner]:
    """Makes planners of the cluster, with other settings of Kafka if given."""

    def made(**kafka: object) -> Planner:
        settings = replace(SETTINGS, kafka=replace(SETTINGS.kafka, **kafka))
        return planner_on(cluster, settings, state, clock, Reported, ensure_topic=lambda settings: None)

    return made


@pytest.fixture
def held(cluster: Cluster, make: Callable[..., Planner]) -> Planner:
    """A planner of a topic-partition whose first three records are delivered, and eight offsets are held back."""
    cluster.logs[KEY], cluster.highest[KEY] = (0, 3), 11
    cluster.group[KEY] = 3
    planner = make()
    planner.tick(planner.begin())
    return planner


def test_what_is_held_back_is_lag(held: Planner, state: SqliteStore, clock: Clock) -> None:
    """Lag counts to the high watermark, age since the records were seen, and the first offset is named."""
    (progress,) = state.progress()
    assert (progress.start, progress.lag, progress.held_at) == (3, 8, 3)
    assert progress.oldest_ms == progress.held_ms == int(clock.now() * 1000)


def test_a_transaction_that_ends_lets_its_records_go(held: Planner, cluster: Cluster, state: SqliteStore) -> None:
    """Once it ends all of them are read, and nothing is held back any more."""
    cluster.logs[KEY] = (0, 11)
    held.drain()
    assert spans(held.tick({})) == [(*KEY, Range(3, 11, Reason.END_OF_INPUT))]
    assert held.tick({KEY: 11}) == []
    (progress,) = state.progress()
    assert (progress.lag, progress.oldest_ms, progress.held_at) == (0, None, None)


def test_markers_of_transactions_that_ended_are_no_lag(
    cluster: Cluster, make: Callable[..., Planner], state: SqliteStore
) -> None:
    """Where a topic-partition ends with markers, a drain reads over them and ends without waiting."""
    cluster.logs[KEY] = (0, 5)
    planner = make()
    planner.begin()
    planner.drain()
    assert spans(planner.tick({})) == [(*KEY, Range(0, 5, Reason.END_OF_INPUT))]
    assert planner.tick({KEY: 5}) == []
    assert [one.lag for one in state.progress()] == [0]


def test_one_that_stays_open_is_warned_of(held: Planner, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """After a minute the log names topic-partition, offset and how long; once in ten minutes."""
    clock.seconds += HELD_WARNING_S - 1
    held.tick({})
    assert not caplog.records
    clock.seconds += 61
    for _ in range(3):
        held.tick({})
    (line,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert_says(line, "connector orders", "topic-partition 0", "held back at offset 3", "open transaction", "2 min")


def test_another_transaction_counts_anew(held: Planner, cluster: Cluster, clock: Clock, state: SqliteStore) -> None:
    """Transactions that follow each other are none that stays open."""
    clock.seconds += 50
    cluster.logs[KEY] = (0, 5)
    cluster.group[KEY] = 5
    held.tick({})
    assert [one.held_at for one in state.progress()] == [5]
    assert [one.held_ms for one in state.progress()] == [int(clock.now() * 1000)]


def test_a_drain_waits_a_minute_then_fails(held: Planner, clock: Clock) -> None:
    """What is held back is waited for, and its absence is an error that says what is missing."""
    before = clock.now()
    held.drain()
    with pytest.raises(TransactionOpen) as caught:
        held.tick({})
    assert DRAIN_WAIT_S <= clock.now() - before < DRAIN_WAIT_S + 5
    assert_says(str(caught.value), "Not caught up", "topic orders", "offset 3", "8 offsets", "transaction.timeout.ms")
    assert caught.value.topic_partition == KEY


def test_a_drain_goes_on_when_the_transaction_ends(held: Planner, cluster: Cluster, clock: Clock) -> None:
    """A transaction that ends within the minute is delivered, and what came after the start of the drain is not."""
    sleep = clock.sleep

    def ends(seconds: float) -> None:
        cluster.logs[KEY], cluster.highest[KEY] = (0, 20), 20
        sleep(seconds)

    held._sleep = ends  # type: ignore[assignment]
    held.drain()
    assert spans(held.tick({})) == [(*KEY, Range(3, 11, Reason.END_OF_INPUT))]


def test_a_flush_waits_for_what_is_held_back(held: Planner, cluster: Cluster, state: SqliteStore) -> None:
    """It is not done before the transaction has ended and its records are committed."""
    state.set(FLUSH, requests_to_json([FlushRequest("a")]))
    assert held.tick({}) == []
    (flush,) = progress_from_json(state.get(FLUSHED) or "[]")
    assert (flush.partitions[0].until, flush.open) == (11, True)
    cluster.logs[KEY] = (0, 11)
    assert spans(held.tick({})) == [(*KEY, Range(3, 11, Reason.REQUEST))]
    held.tick({KEY: 11})
    (flush,) = progress_from_json(state.get(FLUSHED) or "[]")
    assert not flush.open


def test_one_that_is_held_back_is_no_idle_one(
    cluster: Cluster, make: Callable[..., Planner], state: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among very many topic-partitions, too, what an open transaction holds back is seen."""
    for name, value in (("AT_ONCE", 0), ("IDLE_AFTER", 1)):
        monkeypatch.setattr(f"parquet_sink.planner.idle_turns.{name}", value)
    planner = make()
    planner.begin()
    planner.tick({})
    cluster.highest[KEY] = 4
    planner.tick({})
    planner.tick({})
    assert [(one.lag, one.held_at) for one in state.progress()] == [(4, 0)]


def test_an_idle_connector_asks_one_request(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """Up to where records may be read is asked of those alone that have something new."""
    cluster.logs[OTHER] = (0, 0)
    planner = make()
    planner.begin()
    cluster.calls.clear()
    planner.tick({})
    assert [call for call in cluster.calls if call in {"ends", "highs"}] == ["highs"]


def test_who_reads_uncommitted_records_waits_for_none(
    cluster: Cluster, make: Callable[..., Planner], state: SqliteStore
) -> None:
    """With isolation.level=read_uncommitted nothing is hidden, and one request tells the ends."""
    cluster.logs[KEY] = (0, 5)
    planner = make(isolation_level="read_uncommitted")
    planner.begin()
    cluster.calls.clear()
    planner.tick({})
    assert [call for call in cluster.calls if call in {"ends", "highs"}] == ["ends"]
    assert [(one.lag, one.held_at) for one in state.progress()] == [(5, None)]
