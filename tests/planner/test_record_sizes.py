"""A size makes a range due before any file taught what records become, and when they have grown since."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.files.rotation import Reason
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.ranges import LearnedSchema, ValueSizes
from parquet_sink.planner.admission import Range
from parquet_sink.planner.planner import Planner
from parquet_sink.planner.record_sizes import (
    ALIKE,
    LEAST_INTERVAL_MS,
    LOOK_EVERY_MS,
    MARKS,
    MOST_LOOKED_AT,
    WaitingBytes,
)
from parquet_sink.state.sqlite import SqliteStore
from tests.factories import Clock
from tests.planner.planner_cluster import KEY, SETTINGS, Cluster, planner_on, spans

HOURLY = FlushSettings(1_000_000, 100_000, 3_600_000)
LOOK_S = LOOK_EVERY_MS / 1_000


@pytest.fixture
def make(cluster: Cluster, clock: Clock, state: SqliteStore) -> Callable[..., Planner]:
    """Makes planners of the cluster that have begun, and looked once."""

    def made(flush: FlushSettings = HOURLY) -> Planner:
        found = planner_on(cluster, replace(SETTINGS, flush=flush), state, clock, reported=False)
        found.tick(found.begin())
        return found

    return made


def test_a_new_topic_is_due_by_the_bytes_of_its_values(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """Nothing is known of its Parquet: an hour is not waited for what may be larger than a file."""
    made = make()
    cluster.times.values = lambda key, offset: 530.0
    cluster.logs[KEY] = (0, 8_000)
    assert spans(made.tick({})) == [(*KEY, Range(0, 8_000, Reason.SIZE))]


def test_what_is_less_than_a_file_waits(cluster: Cluster, make: Callable[..., Planner], clock: Clock) -> None:
    """And what comes between two looks counts as what was seen last."""
    made = make()
    cluster.times.values = lambda key, offset: 530.0
    cluster.logs[KEY] = (0, 1_000)
    assert made.tick({}) == []
    cluster.logs[KEY] = (0, 1_700)
    assert made.tick({}) == []
    clock.sleep(1)
    cluster.logs[KEY] = (0, 1_900)
    assert spans(made.tick({})) == [(*KEY, Range(0, 1_900, Reason.SIZE))]
    assert cluster.times.looks == [{KEY: 0}]


def test_records_that_grew_are_seen(
    cluster: Cluster, make: Callable[..., Planner], state: SqliteStore, clock: Clock
) -> None:
    """A thousandfold, say: within a look, not after an interval; their Parquet is reckoned by the share of before."""
    state.learn("orders", LearnedSchema(None, 30.0, 30.0))
    state.learn_sizes({"orders": ValueSizes(100.0, 30.0)})
    made = make()
    cluster.times.values = lambda key, offset: 100.0 if offset < 2_000 else 100_000.0
    cluster.logs[KEY] = (0, 2_000)
    assert made.tick({}) == []
    clock.sleep(LOOK_S)
    cluster.logs[KEY] = (0, 2_020)
    assert made.tick({}) == []
    clock.sleep(LOOK_S)
    cluster.logs[KEY] = (0, 2_040)
    assert spans(made.tick({})) == [(*KEY, Range(0, 2_040, Reason.SIZE))]


@pytest.mark.parametrize("value_bytes", [20.0, 100.0, 190.0])
def test_what_files_taught_holds_while_values_are_alike(
    cluster: Cluster, make: Callable[..., Planner], state: SqliteStore, value_bytes: float
) -> None:
    """A few records are no better a measure than whole files: they make no small ones."""
    state.learn("orders", LearnedSchema(None, 30.0, 30.0))
    state.learn_sizes({"orders": ValueSizes(100.0, 30.0)})
    made = make()
    cluster.times.values = lambda key, offset: value_bytes
    cluster.logs[KEY] = (0, 31_000)
    assert made.tick({}) == []
    cluster.logs[KEY] = (0, 32_000)
    assert spans(made.tick({})) == [(*KEY, Range(0, 31_666, Reason.SIZE))]


def test_a_state_of_an_earlier_version_is_believed(
    cluster: Cluster, make: Callable[..., Planner], state: SqliteStore
) -> None:
    """It knows what records become, and not what their values were."""
    state.learn("orders", LearnedSchema(None, 30.0, 30.0))
    made = make()
    cluster.times.values = lambda key, offset: 1_000_000.0
    cluster.logs[KEY] = (0, 1_000)
    assert made.tick({}) == []


def test_nothing_is_looked_at_where_the_age_comes_first(cluster: Cluster, make: Callable[..., Planner]) -> None:
    """With a short interval what waits is flushed before a second look."""
    made = make(FlushSettings(1_000, 100_000, LEAST_INTERVAL_MS - 1))
    cluster.times.values = lambda key, offset: 530.0
    cluster.logs[KEY] = (0, 8_000)
    assert made.tick({}) == []
    assert cluster.times.looks == []


def test_nothing_is_looked_at_twice(cluster: Cluster, make: Callable[..., Planner], clock: Clock) -> None:
    """A look is at what came since the last; without new records there is none, nor within its time."""
    made = make()
    cluster.times.values = lambda key, offset: 1.0
    cluster.logs[KEY] = (0, 10)
    for _ in range(10):
        assert made.tick({}) == []
        clock.sleep(LOOK_S / 2)
    cluster.logs[KEY] = (0, 11)
    made.tick({})
    assert cluster.times.looks == [{KEY: 0}, {KEY: 10}]


def test_topic_partitions_take_turns(cluster: Cluster, make: Callable[..., Planner], clock: Clock) -> None:
    """A look reads a bounded number of them, and the others next, also where nothing came of those."""
    keys = [("orders", number) for number in range(MOST_LOOKED_AT + 20)]
    cluster.logs = dict.fromkeys(keys, (0, 0))
    made = make()
    cluster.logs = dict.fromkeys(keys, (0, 5))
    for _ in range(2):
        assert made.tick({}) == []
        clock.sleep(LOOK_S)
    first, second = (set(look) for look in cluster.times.looks)
    assert len(first) == len(second) == MOST_LOOKED_AT
    assert first | second == set(keys)


def test_markers_alone_are_as_what_came_before(cluster: Cluster, make: Callable[..., Planner], clock: Clock) -> None:
    """Where offsets have no records the mean stays, and they are not asked for again."""
    made = make()
    cluster.times.values = lambda key, offset: 530.0 if offset == 0 else None
    cluster.logs[KEY] = (0, 1_000)
    made.tick({})
    clock.sleep(LOOK_S)
    cluster.logs[KEY] = (0, 1_001)
    made.tick({})
    clock.sleep(LOOK_S)
    cluster.logs[KEY] = (0, 1_900)
    assert spans(made.tick({})) == [(*KEY, Range(0, 1_900, Reason.SIZE))]
    assert cluster.times.looks == [{KEY: 0}, {KEY: 1_000}, {KEY: 1_001}]


@given(st.lists(st.tuples(st.integers(1, 100), st.floats(1, 1e6)), min_size=1, max_size=200), st.data())
def test_bytes_are_those_of_the_looks(looks: list[tuple[int, float]], data: st.DataObject) -> None:
    """Never fewer; and no more by far where they did not change."""
    waiting, offset, means = WaitingBytes(), 0, []
    for count, mean in looks:
        offset += count
        means += [mean] * count
        waiting = waiting.looked(offset, mean)
    assert waiting.until == offset
    assert len(waiting.marks) <= MARKS
    start = data.draw(st.integers(0, offset))
    beyond = data.draw(st.integers(0, 50))
    found = waiting.after(start).between(start, offset + beyond)
    exact = sum(means[start:]) + beyond * means[-1]
    assert found >= exact * (1 - 1e-9)
    if max(means) <= ALIKE * min(means):
        assert found <= ALIKE * exact * (1 + 1e-9)
