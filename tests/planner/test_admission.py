"""Which topic-partitions are due, up to which offset, and why."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.files.rotation import NEARLY_FULL, Reason
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.planner.admission import (
    LEAST_BATCH_S,
    LEAST_RANGE_RECORDS,
    MOST_BATCH_S,
    MOST_TASKS,
    RECORDS_PER_SECOND,
    Candidate,
    Pace,
    Range,
    batch_records,
    by_task,
    due_range,
    select_batch,
    tick_ms,
    with_reading,
)
from parquet_sink.planner.record_ages import MARKS, Arrivals

FLUSH = FlushSettings(commit_size_bytes=1_000_000, commit_records=1_000, commit_interval_ms=5_000)
NOW = 1_000_000

flushes = st.builds(FlushSettings, st.integers(100_000, 10**9), st.integers(1, 5_000_000), st.integers(1_000, 600_000))
per_record = st.none() | st.floats(0.01, 1e6)


def test_nothing_waiting_is_never_due() -> None:
    """Without a record above the start nothing is due, however old, and not while draining either."""
    assert due_range(10, 10, 0, None, FLUSH, NOW) is None
    assert due_range(10, 9, 0, None, FLUSH, NOW) is None
    assert due_range(10, 10, 0, None, FLUSH, NOW, draining=True) is None


@given(st.integers(0, 5_000), st.integers(0, 5_000), flushes, per_record, st.booleans())
def test_what_was_there_before_the_clocks_time_is_due_by_itself(
    before: int, after: int, flush: FlushSettings, size: float | None, draining: bool
) -> None:
    """All of it and nothing of what came since, however much that is; what came since waits as ever."""
    high = 100 + before + after
    found = due_range(100, high, NOW, size, flush, NOW, draining=draining, scheduled_end=100 + before)
    if before:
        assert (found and (found.start, found.end, found.reason)) == (100, 100 + before, Reason.SCHEDULE)
    else:
        assert found == due_range(100, high, NOW, size, flush, NOW, draining=draining)


def test_records_make_a_range_due() -> None:
    """As many records as a file takes are due at once, and one less is not."""
    assert due_range(5, 1_005, NOW, None, FLUSH, NOW) == Range(5, 1_005, Reason.RECORDS)
    assert due_range(5, 1_004, NOW, None, FLUSH, NOW) is None


def test_bytes_make_a_range_due() -> None:
    """What earlier files taught of a record's size decides when a file's worth of bytes waits."""
    assert due_range(0, 95, NOW, 10_000.0, FLUSH, NOW) == Range(0, 95, Reason.SIZE)
    assert due_range(0, 94, NOW, 10_000.0, FLUSH, NOW) is None


def test_without_an_estimate_size_is_never_the_reason() -> None:
    """A topic of which nothing is known is due by records or age alone."""
    assert due_range(0, 999, NOW, None, FLUSH, NOW) is None
    assert due_range(0, 999, NOW, 0.0, FLUSH, NOW) is None


def test_a_record_larger_than_a_file_is_a_file() -> None:
    """One record is due when it alone fills a file."""
    assert due_range(0, 3, NOW, 5e6, FLUSH, NOW) == Range(0, 3, Reason.SIZE)


def test_age_makes_a_range_due() -> None:
    """The oldest unflushed record may be as old as the interval, and no older."""
    assert due_range(0, 1, NOW - 5_000, None, FLUSH, NOW) == Range(0, 1, Reason.INTERVAL)
    assert due_range(0, 1, NOW - 4_999, None, FLUSH, NOW) is None


def test_draining_takes_what_is_there() -> None:
    """While draining a single fresh record is due, and says so."""
    assert due_range(0, 1, NOW, None, FLUSH, NOW, draining=True) == Range(0, 1, Reason.END_OF_INPUT)


def test_a_backlog_is_taken_in_whole_files() -> None:
    """With many files' worth waiting, a range ends where a file ends, so that the rest is not a small file."""
    assert due_range(0, 3_700, NOW, None, FLUSH, NOW) == Range(0, 3_000, Reason.RECORDS)


def test_the_interval_fires_on_a_busy_topic_too() -> None:
    """A trickle that never reaches a file's worth is flushed by the age of its oldest record, not of its last."""
    arrivals, start, flushed = Arrivals(), 0, []
    for tick in range(100):
        now, high = NOW + tick * 500, tick + 1
        arrivals = arrivals.after(start).observed(high, now)
        span = due_range(start, high, arrivals.oldest_ms(start), None, FLUSH, now)
        if span is not None:
            flushed.append((now, span.reason))
            start = span.end
    gaps = {later - earlier for (earlier, _), (later, _) in pairwise(flushed)}
    assert {reason for _, reason in flushed} == {Reason.INTERVAL}
    assert gaps == {5_500}


def test_the_interval_fires_on_an_idle_topic() -> None:
    """One record and then silence: it is due when it is as old as the interval, at whatever tick comes next."""
    arrivals = Arrivals().observed(1, NOW)
    found = [
        due_range(0, 1, arrivals.observed(1, now).oldest_ms(0), None, FLUSH, now)
        for now in range(NOW, NOW + 6_000, 1_000)
    ]
    assert found == [None] * 5 + [Range(0, 1, Reason.INTERVAL)]


@given(
    flushes, per_record, st.integers(0, 10**9), st.integers(0, 10**9), st.none() | st.integers(0, NOW), st.booleans()
)
def test_a_range_is_bounded_and_within_what_waits(
    flush: FlushSettings, size: float | None, start: int, waiting: int, oldest: int | None, draining: bool
) -> None:
    """A range begins at the start and ends within what is there."""
    span = due_range(start, start + waiting, oldest, size, flush, NOW, draining=draining)
    if span is None:
        assert not (draining and waiting)
        return
    assert span.start == start
    assert start < span.end <= start + waiting


@given(flushes, st.floats(0.01, 1e6), st.integers(1, 10**8))
def test_a_backlog_makes_full_files_only(flush: FlushSettings, size: float, waiting: int) -> None:
    """A range that is due by records or size holds whole files of what is known to fill one."""
    span = due_range(0, waiting, NOW, size, flush, NOW)
    if span is not None and span.reason in (Reason.RECORDS, Reason.SIZE):
        whole = max(1, min(flush.commit_records, int(NEARLY_FULL * flush.commit_size_bytes / size)))
        assert span.end % whole == 0


@given(st.integers(1, 10**7), st.integers(1, 64))
def test_the_length_of_a_micro_batch_follows_the_interval_within_bounds(interval: int, slots: int) -> None:
    """A longer interval allows longer micro-batches, between a second's and ten seconds' work."""
    least, most = (int(slots * RECORDS_PER_SECOND * seconds) for seconds in (LEAST_BATCH_S, MOST_BATCH_S))
    assert least <= batch_records(interval, slots) <= batch_records(interval + 1_000, slots) <= most


@given(st.integers(0, 10**9), st.integers(1, 10**7), st.integers(1, 10**7), st.integers(1, 10**7))
def test_a_range_is_cut_after_whole_files(start: int, length: int, file_records: int, most: int) -> None:
    """A cut range holds whole files, at least one, and no more offsets than allowed unless one file alone does."""
    cut = Range(start, start + length, Reason.RECORDS, file_records).cut(most)
    assert cut.start == start
    assert 0 < len(cut) <= length
    assert len(cut) == length or len(cut) % file_records == 0
    assert len(cut) <= max(most, file_records)


ticks = st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 20_000), st.booleans()), max_size=60)


@given(flushes, per_record, ticks)
def test_every_offset_is_admitted_exactly_once(
    flush: FlushSettings, size: float | None, steps: list[tuple[int, int, bool]]
) -> None:
    """Whatever arrives between ticks, ranges join without gap or overlap, and a drain at the end takes the rest."""
    arrivals, start, high, now = Arrivals(), 0, 0, NOW
    for more, later, accepted in steps:
        high, now = high + more, now + later
        arrivals = arrivals.after(start).observed(high, now) if high > start else arrivals.after(start)
        span = due_range(start, high, arrivals.oldest_ms(start), size, flush, now)
        if span is not None:
            assert span.start == start
            start = span.end if accepted else start  # a range that failed is admitted again
    while (rest := due_range(start, high, None, size, flush, now, draining=True)) is not None:
        assert rest.start == start < rest.end
        start = rest.end
    assert start == high


@given(flushes, ticks)
def test_nothing_waits_longer_than_the_interval(flush: FlushSettings, steps: list[tuple[int, int, bool]]) -> None:
    """At a tick, a record as old as the interval is always in the range, or a longer backlog before it is."""
    arrivals, start, high, now = Arrivals(), 0, 0, NOW
    seen: dict[int, int] = {}
    for more, later, _ in steps:
        high, now = high + more, now + later
        if more:
            seen[high] = now
        arrivals = arrivals.after(start).observed(high, now) if high > start else arrivals.after(start)
        span = due_range(start, high, arrivals.oldest_ms(start), None, flush, now)
        oldest = next((at for end, at in seen.items() if end > start), None)
        if oldest is not None and now - oldest >= flush.commit_interval_ms:
            assert span is not None
        start = start if span is None else span.end


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 1_000)), min_size=1, max_size=MARKS * 3))
def test_ages_never_shrink(steps: list[tuple[int, int]]) -> None:
    """However many marks were merged, a record is never taken for younger than it is."""
    arrivals, high, now = Arrivals(), 0, NOW
    seen: list[tuple[int, int]] = []
    for more, later in steps:
        high, now = high + more, now + later
        arrivals = arrivals.observed(high, now)
        seen.append((high, now))
    assert len(arrivals.marks) <= MARKS
    position = 0
    for offset in range(0, high, max(1, high // 50)):
        while seen[position][0] <= offset:
            position += 1
        told = arrivals.oldest_ms(offset)
        assert told is not None
        assert told <= seen[position][1]


def test_marks_of_flushed_records_go() -> None:
    """After a flush only records above the start have an age; seeing the same end again changes nothing."""
    arrivals = Arrivals().observed(10, 1).observed(20, 2)
    assert arrivals.observed(20, 99) is arrivals
    assert arrivals.after(5) is arrivals
    assert arrivals.after(10).marks == ((20, 2),)
    assert arrivals.after(20).oldest_ms(20) is None
    assert arrivals.oldest_ms(19) == 2


def candidate(partition: int, records: int) -> Candidate:
    """A range of so many records."""
    return ("orders", partition, Range(0, records, Reason.RECORDS, 1_000))


def test_one_micro_batch_takes_who_waited_longest_for_a_turn() -> None:
    """Beyond its budget a micro-batch leaves the topic-partitions that had a turn last for the next."""
    turns = [9 - partition for partition in range(10)]
    taken = select_batch([(turn, candidate(p, 10**6)) for p, turn in enumerate(turns)], FLUSH, 4)
    assert {partition for _, partition, _ in taken} == {9, 8, 7, 6, 5}


def test_what_short_ranges_leave_goes_to_long_ones() -> None:
    """Beside a short range a long one gets more than half of the micro-batch, in whole files."""
    taken = select_batch([(0, candidate(0, 10**7)), (0, candidate(1, 500))], FLUSH, 4)
    assert {partition: len(span) for _, partition, span in taken} == {1: 500, 0: 499_000}


def test_a_range_put_down_earlier_is_never_cut() -> None:
    """A range without a place to cut comes whole, so that its files come out the same."""
    again = ("orders", 0, Range(0, 10**7, Reason.RECORDS))
    assert select_batch([(0, again)], FLUSH, 1) == [again]


def test_small_ranges_all_fit() -> None:
    """Forty small topic-partitions go in one micro-batch."""
    assert len(select_batch([(0, candidate(p, 10)) for p in range(40)], FLUSH, 4)) == 40


def test_no_topic_partition_starves() -> None:
    """With endless backlogs everywhere ten topic-partitions, three at a time, wait four micro-batches at most."""
    last = dict.fromkeys(range(10), 0)
    for number in range(1, 16):
        taken = select_batch([(turn, candidate(p, 10**6)) for p, turn in last.items()], FLUSH, 2)
        assert len(taken) == 3
        last.update({partition: number for _, partition, _ in taken})
        assert number - min(last.values()) <= 4


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 2_000_000)), max_size=30), st.integers(1, 8))
def test_a_micro_batch_is_bounded_and_never_empty_handed(waiting: list[tuple[int, int]], slots: int) -> None:
    """The budget is passed by the least share at most; what is due is taken, each at most once."""
    taken = select_batch([(turn, candidate(p, records)) for p, (turn, records) in enumerate(waiting)], FLUSH, slots)
    assert bool(taken) == bool(waiting)
    assert sum(len(span) for _, _, span in taken) < batch_records(FLUSH.commit_interval_ms, slots) + LEAST_RANGE_RECORDS
    assert len({partition for _, partition, _ in taken}) == len(taken)


@pytest.mark.parametrize(("interval", "expected"), [(1_000, 250), (2_000, 500), (60_000, 1_000)])
def test_ticks_follow_the_interval(interval: int, expected: int) -> None:
    """A short commit interval is looked at more often, a long one once a second."""
    assert tick_ms(FlushSettings(1_000_000, 100, interval)) == expected


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


@pytest.mark.parametrize("tasks", [2, 4, 7])
def test_ranges_without_records_are_spread(tasks: int) -> None:
    """Many that hold a transaction's marker alone are no lighter for that: no task gets all of them."""
    empty = [PlannedRange("orders", p, 4_000, 4_001, "interval") for p in range(900)]
    long = [PlannedRange("items", p, 0, 4_000, "records") for p in range(33)]
    piles = by_task([*empty, *long], tasks)
    work = [sum(one.end - one.start + 500 for one in pile) for pile in piles]
    assert max(work) - min(work) <= 4_500


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


def test_a_micro_batch_takes_what_the_ones_before_got_done() -> None:
    """The first that takes half of what it may shows it; small ones show nothing, and one alone no more than twice."""
    pace, interval = Pace(), FLUSH.commit_interval_ms
    budget = batch_records(interval, 2)
    for offsets, seconds, expected in (
        (budget // 2 - 1, 10.0, None),
        (600_000, 1.5, 400_000),
        (3, 60.0, 400_000),
        (budget, budget / 500_000, 500_000),
        (10**7, 1.0, 1_000_000),
        (10**6, 100.0, 500_000),
    ):
        pace.begin(offsets, budget, 100.0)
        pace.end(100.0 + seconds)
        assert pace.per_second == (None if expected is None else pytest.approx(expected))
    pace.end(200.0)  # of no micro-batch
    assert pace.per_second == pytest.approx(500_000)


@given(st.integers(1, 10**7), st.integers(1, 64), st.none() | st.floats(1.0, 1e7))
def test_micro_batches_of_one_topic_partition_are_as_long_as_any_may_be(
    interval: int, slots: int, per_second: float | None
) -> None:
    """Nobody waits for them, so that their length does not depend on the interval; one slot does the work."""
    rate = RECORDS_PER_SECOND if per_second is None else per_second
    assert batch_records(interval, slots, per_second, alone=True) == int(MOST_BATCH_S * rate)


@given(st.floats(1.0, 1e7), st.integers(1, 64), st.integers(1, 30))
def test_a_single_backlog_gets_all_that_is_done_in_a_micro_batch(per_second: float, slots: int, files: int) -> None:
    """Up to the last whole file that fits, and one file at least, however fast or slow it is."""
    whole = 10_000 * files
    (taken,) = select_batch([(0, ("orders", 0, Range(0, 10**9, Reason.RECORDS, whole)))], FLUSH, slots, per_second)
    budget = max(batch_records(FLUSH.commit_interval_ms, slots, per_second), LEAST_RANGE_RECORDS)
    assert len(taken[2]) == max(budget // whole, 1) * whole


def test_a_flush_takes_what_is_there() -> None:
    """While something below the offset that was asked for waits, all that is there is due; full files go first."""
    assert due_range(0, 9, NOW, None, FLUSH, NOW, asked_until=5) == Range(0, 9, Reason.REQUEST)
    assert due_range(0, 9, NOW - 5_000, None, FLUSH, NOW, asked_until=5) == Range(0, 9, Reason.REQUEST)
    assert due_range(0, 3_700, NOW, None, FLUSH, NOW, asked_until=3_700) == Range(0, 3_000, Reason.RECORDS)


@given(
    start=st.integers(0, 10_000),
    waiting=st.integers(0, 10_000),
    asked=st.integers(0, 25_000),
    age_ms=st.none() | st.integers(0, 20_000),
    size=per_record,
    flush=flushes,
)
def test_a_flush_is_done_in_the_end_and_changes_nothing_else(
    start: int, waiting: int, asked: int, age_ms: int | None, size: float | None, flush: FlushSettings
) -> None:
    """Range after range, all that waited below the offset is taken once and in order; then thresholds alone decide."""
    high, oldest, at = start + waiting, None if age_ms is None else NOW - age_ms, start
    for _ in range(waiting + 1):
        plain = due_range(at, high, oldest, size, flush, NOW)
        found = due_range(at, high, oldest, size, flush, NOW, asked_until=asked)
        if at >= min(asked, high):
            assert found == plain
            break
        assert found is not None
        assert found.start == at < found.end <= high
        assert found.reason in (Reason.RECORDS, Reason.SIZE, Reason.REQUEST)
        assert found.reason is Reason.REQUEST or found == plain
        at = found.end
    else:
        raise AssertionError("it never ends")
