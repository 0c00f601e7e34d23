"""Ranges dealt to Spark tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.model.ranges import PlannedRange
from parquet_sink.planner.task_assignment import MOST_TASKS, by_task, with_reading

spans = st.lists(
    st.builds(
        lambda topic, partition, start, length: PlannedRange(topic, partition, start, start + length, "records"),
        st.sampled_from(["orders", "items"]),
        st.integers(0, 200),
        st.integers(0, 10**6),
        st.integers(1, 10**6),
    ),
    max_size=150,
    unique_by=lambda span: (span.topic, span.partition),
)


def test_without_a_bound_each_range_has_a_task() -> None:
    """Ranges run side by side when nothing forbids it."""
    ranges = [PlannedRange("orders", p, 0, 10, "size") for p in range(5)]
    assert sorted(map(len, by_task(ranges, None))) == [1] * 5


def test_tasks_max_bounds_the_tasks() -> None:
    """`tasks.max` is never exceeded, and one task takes all ranges one after the other."""
    ranges = [PlannedRange("orders", p, 0, 10, "size") for p in range(5)]
    assert list(map(len, by_task(ranges, 1))) == [5]
    assert sorted(map(len, by_task(ranges, 2))) == [2, 3]


def test_long_ranges_do_not_share_a_task() -> None:
    """The longest range has a task of its own while the short ones share the other."""
    long, short = (
        PlannedRange("orders", 0, 0, 1_000, "records"),
        [PlannedRange("orders", p, 0, 10, "records") for p in (1, 2, 3)],
    )
    assert by_task([*short, long], 2) == [[long], short]


def test_nothing_due_is_no_task() -> None:
    """Without a range there is no Spark task."""
    assert by_task([], 3) == []


@given(spans, st.none() | st.integers(1, 100))
def test_every_range_is_dealt_exactly_once(ranges: list[PlannedRange], tasks: int | None) -> None:
    """No range is lost or doubled, no task is empty, and the bound holds."""
    piles = by_task(ranges, tasks)
    assert sorted(map(repr, (span for pile in piles for span in pile))) == sorted(map(repr, ranges))
    assert all(piles)
    assert len(piles) <= (tasks or MOST_TASKS)


@given(spans, st.none() | st.integers(1, 100))
def test_the_deal_does_not_depend_on_the_order(ranges: list[PlannedRange], tasks: int | None) -> None:
    """The same ranges are dealt the same way in whatever order they were found."""
    assert by_task(ranges, tasks) == by_task(ranges[::-1], tasks)


@pytest.mark.parametrize(
    ("tasks", "slots", "cores", "ahead"),
    [(1, 4, 2, True), (2, 4, 2, False), (4, 4, 2, False), (3, 4, 8, True), (1, 1, 1, False), (30, 80, 8, True)],
)
def test_tasks_read_ahead_where_cores_are_free(tasks: int, slots: int, cores: int, ahead: bool) -> None:
    """With fewer tasks than the machine has cores, or than half of a cluster's slots; the ranges stay the same."""
    piles = by_task([PlannedRange("t", number, 0, 9, "age") for number in range(tasks)], None)
    found = with_reading(piles, slots, cores)
    assert [planned.read_ahead for pile in found for planned in pile] == [ahead] * tasks
    assert [[one.partition for one in pile] for pile in found] == [[one.partition for one in pile] for pile in piles]
