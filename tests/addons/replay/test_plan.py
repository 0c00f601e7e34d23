"""A plan covers what was chosen: ranges of the history where it has them, else as admission cuts a backlog."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.replay.copies import Span, common, merged, without
from parquet_sink.addons.replay.plan import (
    Cutting,
    Held,
    Missing,
    Past,
    ReplayPlan,
    ReplayRange,
    make_plan,
    range_from_dict,
    range_to_dict,
)
from parquet_sink.history.records import RangeRecord, UploadOutcome, UploadRecord
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.ranges import LearnedSchema
from parquet_sink.planner.admission import MOST_RANGE_RECORDS
from tests.messages import assert_says

KEY = ("orders", 0)
ALL_HELD = Held(0, 10_000, "id", False)
FLUSH = FlushSettings(10_000_000, 100, 30_000)


def ranged(start: int, end: int, at_ms: int = 0, topic_id: str = "id") -> RangeRecord:
    """A range of the history."""
    learned = LearnedSchema(b"s", 1.0, 2.0)
    return RangeRecord("orders", 0, start, end, "records", topic_id, learned, "digest", "1", at_ms)


def uploaded(first: int, last: int, topic_id: str = "id") -> UploadRecord:
    """A file that was accepted."""
    count = last + 1 - first
    about = (f"{first}-{last}", "t", "orders", 0, first, last, count, count, 10 * count, f"d{first}", "records", None)
    return UploadRecord(*about, UploadOutcome.ACCEPTED, 1, topic_id=topic_id)


def planned(
    chosen: Sequence[Span],
    ranges: Sequence[RangeRecord] = (),
    files: Sequence[UploadRecord] = (),
    held: Held = ALL_HELD,
) -> ReplayPlan:
    """Of one topic-partition."""
    return make_plan({KEY: chosen}, {KEY: held}, {KEY: Past(ranges, files)}, Cutting(FLUSH))


def spans(plan: ReplayPlan) -> list[tuple[int, int, bool]]:
    """Start, end, and whether it is of the history, of each range."""
    return [(one.planned.start, one.planned.end, one.recorded) for one in plan.ranges]


def test_ranges_of_the_history_are_taken_whole() -> None:
    """Of one that holds what was chosen only some files are sent; around it ranges are cut anew."""
    files = [uploaded(200, 249), uploaded(250, 299), uploaded(300, 399)]
    plan = planned([(150, 260)], [ranged(200, 400)], files)
    assert spans(plan) == [(150, 200, False), (200, 400, True)]
    recorded = plan.ranges[1]
    assert recorded.planned.known == LearnedSchema(b"s", 1.0, 2.0)
    assert [one.name for one in recorded.expected] == ["200-249", "250-299"]
    assert recorded.wants(250, 299)
    assert not recorded.wants(300, 399)
    assert recorded.foretold
    assert not plan.ranges[0].foretold


def test_of_several_ranges_the_latest_counts() -> None:
    """After a reset of the group offsets were cut twice; what the later ones leave is of the earlier."""
    plan = planned([(0, 300)], [ranged(0, 300, 1), ranged(100, 200, 2)])
    assert spans(plan) == [(0, 300, True), (100, 200, True), (0, 300, True)]
    assert [one.windows for one in plan.ranges] == [((0, 100),), ((100, 200),), ((200, 300),)]


def test_a_range_counts_as_far_as_it_was_done() -> None:
    """One that ended at a record without a row, or is under way, has the rest cut anew; it is read as it was cut."""
    plan = planned([(0, 100)], [replace(ranged(0, 100), done_until=40)])
    assert spans(plan) == [(0, 100, True), (40, 100, False)]
    assert plan.ranges[0].windows == ((0, 40),)


def test_files_of_one_range_are_read_once() -> None:
    """Two files that were chosen, and are not neighbours, are of one range."""
    plan = planned([(0, 10), (50, 60)], [ranged(0, 100)])
    assert [one.windows for one in plan.ranges] == [((0, 10), (50, 60))]


def test_a_backlog_is_cut_as_admission_cuts_it() -> None:
    """Whole files, at most as long as a range may be, and the rest."""
    flush = FlushSettings(10**9, 300_000, 60_000)
    high = 2_500_001
    cutting = Cutting(flush, {"orders": LearnedSchema(None, 1.0, 2.0)})
    plan = make_plan({KEY: [(0, high)]}, {KEY: Held(0, high)}, {}, cutting)
    lengths = [one.planned.end - one.planned.start for one in plan.ranges]
    assert sum(lengths) == high
    assert all(length % 300_000 == 0 for length in lengths[:-1])
    assert max(lengths) <= MOST_RANGE_RECORDS
    assert {one.planned.known for one in plan.ranges} == {LearnedSchema(None, 1.0, 2.0)}
    assert plan.offsets_read == high


def test_what_retention_took_is_missing_and_the_rest_is_cut_short() -> None:
    """Files and rows of it are told by the history; a range that lost its begin says so."""
    files = [uploaded(0, 99), uploaded(100, 199), uploaded(200, 299)]
    plan = planned([(0, 300)], [ranged(0, 100, 1), ranged(100, 300, 2)], files, Held(150, 400, "id"))
    assert plan.missing == (Missing("orders", 0, 0, 150, 2, 200),)
    assert_says(plan.missing[0], "offsets 0 to 149", "150", "2 files with 200 rows")
    (only,) = plan.ranges
    assert (only.planned.start, only.planned.accepted, only.planned.end) == (150, 150, 300)
    assert only.deleted == (100, 150)
    assert not only.foretold


def test_all_gone_leaves_nothing_to_send() -> None:
    """Nothing is planned, and all of it is missing."""
    plan = planned([(0, 100)], held=Held(500, 600))
    assert plan.ranges == ()
    assert plan.missing == (Missing("orders", 0, 0, 100),)


def test_a_topic_made_anew_has_no_past() -> None:
    """Ranges and files of the topic that had the name before are not its."""
    plan = planned([(0, 100)], [ranged(0, 100, topic_id="old")], [uploaded(0, 99, "old")])
    assert spans(plan) == [(0, 100, False)]
    assert plan.ranges[0].expected == ()


def test_ranges_beyond_the_end_are_not_of_this_log() -> None:
    """A log that was cut back, and ends before a range did, is another one there."""
    assert spans(planned([(0, 50)], [ranged(0, 100)], held=Held(0, 50))) == [(0, 50, False)]


def test_topics_that_compaction_may_thin_are_not_foretold() -> None:
    """Only reading says what is left."""
    for thinned in (True, None):
        plan = planned([(0, 100)], [ranged(0, 100)], [uploaded(0, 99)], Held(0, 100, "id", thinned))
        assert not plan.ranges[0].foretold


@given(
    low=st.integers(0, 120),
    ranges=st.lists(st.tuples(st.integers(0, 200), st.integers(1, 80)), max_size=8),
    chosen=st.lists(st.tuples(st.integers(0, 200), st.integers(1, 90)), max_size=4),
)
def test_each_chosen_offset_is_in_exactly_one_window(
    low: int, ranges: list[tuple[int, int]], chosen: list[tuple[int, int]]
) -> None:
    """Whatever the history has: nothing is left out but what is missing, nothing comes twice, and in order."""
    wanted = [(start, start + length) for start, length in chosen]
    before = [ranged(start, start + length, at) for at, (start, length) in enumerate(ranges)]
    plan = planned(wanted, before, held=Held(low, 300))
    windows = [window for one in plan.ranges for window in one.windows]
    covered = [offset for start, end in windows for offset in range(start, end)]
    expected = sorted({offset for start, end in wanted for offset in range(start, end)})
    assert covered == [offset for offset in expected if offset >= low]
    assert sum(one.end - one.start for one in plan.missing) == sum(offset < low for offset in expected)
    for one in plan.ranges:
        assert one.planned.start >= low
        assert all(one.planned.start <= start and end <= one.planned.end for start, end in one.windows)


def test_a_range_survives_json() -> None:
    """All of it comes back, for a replay that goes on."""
    plan = planned([(0, 300)], [ranged(100, 300, 2)], [uploaded(100, 199)], Held(150, 400, "id"))
    for one in plan.ranges:
        assert range_from_dict(json.loads(json.dumps(range_to_dict(one)))) == one


def test_a_range_begins_anew_behind_a_record() -> None:
    """What is left of it is as wide as its windows, and none when they end before."""
    (one,) = planned([(0, 100)], [ranged(0, 200)], [uploaded(0, 99), uploaded(100, 199)]).ranges
    rest = one.from_here(50)
    assert isinstance(rest, ReplayRange)
    assert (rest.planned.start, rest.planned.accepted, rest.windows) == (50, 50, ((50, 100),))
    assert not rest.recorded
    assert one.from_here(100) is None


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], []),
        ([(3, 5), (1, 3)], [(1, 5)]),
        ([(1, 9), (2, 3), (9, 9)], [(1, 9)]),
        ([(5, 6), (1, 2)], [(1, 2), (5, 6)]),
    ],
)
def test_spans_are_merged(spans: list[Span], expected: list[Span]) -> None:
    """Neighbours and what overlaps become one."""
    assert merged(spans) == expected


def test_spans_are_cut_out_and_shared() -> None:
    """What is taken from the middle leaves two."""
    assert without([(0, 10), (20, 30)], (5, 25)) == [(0, 5), (25, 30)]
    assert without([(0, 10)], (2, 4)) == [(0, 2), (4, 10)]
    assert common((5, 25), [(0, 10), (20, 30)]) == [(5, 10), (20, 25)]


def test_files_without_digest_of_other_topics_do_not_matter() -> None:
    """A plan of nothing is nothing."""
    assert planned([]).ranges == ()
    assert replace(planned([]), missing=()).offsets_read == 0
