"""A replay sends the files of the first time again, in order, and goes on where it was stopped."""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.addons.replay.journal import Progress
from parquet_sink.addons.replay.pace import Rate
from parquet_sink.addons.replay.plan import ReplayPlan
from parquet_sink.addons.replay.results import Verdict
from parquet_sink.addons.replay.run import MOST_TOGETHER
from parquet_sink.model.ranges import LearnedSchema
from parquet_sink.parked.settings import ParkedSettings
from tests.addons.replay.world import Target, World, filled, left, results
from tests.factories import Clock
from tests.messages import assert_says
from tests.task.fakes import ACCEPTED, BAD_FILE, REFUSED, SLOW, UNKNOWN, made
from tests.thorough import FIXTURES_SHARED, examples

KEY = ("orders", 0)


def in_order(target: Target, times: int = 1) -> bool:
    """Whether files of each topic-partition came in offset order, round by round."""
    for partition in {one for one, _, _ in target.spans}:
        mine = [(first, last) for number, first, last in target.spans if number == partition]
        each = len(mine) // times
        rounds = [mine[begin : begin + each] for begin in range(0, len(mine), each)]
        if any(before[1] >= behind[0] for one in rounds for before, behind in pairwise(one)):
            return False
    return True


def test_everything_again_is_the_same_files(world: World) -> None:
    """Names, bytes and order are those of the first time, whatever each range taught the next."""
    world.records = {KEY: filled(3_000), ("orders", 1): filled(900)}
    first = world.deliver((0, 0, 1_100), (1, 0, 900), (0, 1_100, 3_000))
    again = Target()
    found = results(world.replay(world.plan(), again))
    assert sorted(one.name for one in again.files) == sorted(one.name for one in first.files)
    assert [one.verdict for one in found] == [Verdict.SAME] * len(first.files)
    assert in_order(again)
    assert again.closed == 1
    assert left(world) == []


def test_times_sends_all_of_it_again_and_again(world: World) -> None:
    """Each round is the whole, in order, and the same, also of ranges that the history does not know."""
    world.records = {KEY: filled(2_000), ("orders", 1): filled(800)}
    world.deliver((0, 0, 1_000))
    again = Target()
    found = results(world.replay(world.plan(), again, times=3))
    rounds = [[one.file.name for one in found if one.round == number] for number in (1, 2, 3)]
    assert rounds[0] == rounds[1] == rounds[2]
    assert len(again.files) == 3 * len(rounds[0])
    assert in_order(again, 3)


@pytest.mark.parametrize("block", [1, 333, 5_000])
def test_of_a_range_only_files_that_were_chosen_are_sent(world: World, block: int) -> None:
    """The range is read as a whole, so that they are the same, and nothing else is sent."""
    world.records, world.block = {KEY: filled(4_000 if block > 1 else 1_600)}, 10_000
    first = world.deliver((0, 0, len(world.records[KEY])))
    chosen = first.files[1]
    again = Target()
    plan = world.plan({KEY: [(chosen.last_offset, chosen.last_offset + 1)]})
    found = results(world.replay(plan, again))
    assert [one.name for one in again.files] == [chosen.name]
    assert [one.verdict for one in found] == [Verdict.SAME]


def test_a_dry_run_sends_nothing_and_says_what_would_come(world: World) -> None:
    """Without a target files are made, compared and removed."""
    world.records = {KEY: filled(1_500)}
    first = world.deliver((0, 0, 1_500))
    found = results(world.replay(world.plan(), None))
    assert [(one.file.name, one.verdict) for one in found] == [(one.name, Verdict.SAME) for one in first.files]
    assert left(world) == []


def test_records_that_are_gone_make_a_difference_with_its_cause(world: World) -> None:
    """Compaction took some: the file differs, and one without any record is told as not sent."""
    world.records = {KEY: filled(1_500)}
    world.deliver((0, 0, 1_500))
    for offset in [*range(10, 20), *range(700, 1_400)]:
        del world.records[KEY][offset]
    found = results(world.replay(world.plan(), Target()))
    assert [one.verdict for one in found] == [Verdict.DIFFERENT, Verdict.DIFFERENT, Verdict.ABSENT][: len(found)]
    (cause,) = {cause for one in found for cause in one.causes}
    assert_says(cause, "710 records fewer", "compacted", "without a row")


def test_other_settings_are_a_cause(world: World) -> None:
    """Files of another size are compared with those that have their offsets."""
    world.records = {KEY: filled(1_400)}
    world.deliver((0, 0, 1_400))
    other = replace(world.settings, flush=replace(world.settings.flush, commit_records=500))
    found = results(world.replay(world.plan(), Target(), settings=other))
    assert {one.verdict for one in found} == {Verdict.DIFFERENT}
    ((cause,),) = {one.causes for one in found}
    assert_says(cause, "the connector's settings")
    assert all(one.was for one in found)


def test_what_the_history_does_not_know_is_cut_anew_with_what_was_learned(world: World) -> None:
    """A topic of which nothing is known teaches its later ranges, as it does the first time."""
    world.records = {KEY: filled(2_500)}
    again = Target()
    found = results(world.replay(world.plan(), again))
    assert {one.verdict for one in found} == {Verdict.NEW}
    assert [row["id"] for row in again.rows] == list(range(2_500))


def test_a_record_without_a_row_is_left_out_and_told(world: World) -> None:
    """Where the connector would stop, the replay goes on behind it; nothing is set aside."""
    world.records = {KEY: filled(1_500)}
    world.records[KEY] |= {300: b"no JSON", 900: b"{"}
    again = Target()
    replay = world.replay(world.plan(), again)
    results(replay)
    assert replay.failure is None
    assert replay.left_out.count == 2
    assert [text.partition(": ")[0] for text in replay.left_out.named] == [
        f"topic orders, topic-partition 0, offset {offset}" for offset in (300, 900)
    ]
    assert [row["id"] for row in again.rows] == [number for number in range(1_500) if number not in (300, 900)]
    assert in_order(again)


def test_records_set_aside_the_first_time_are_left_out_of_the_same_files(world: World, tmp_path: Path) -> None:
    """A connector that passes over such records cuts files across them, and so does its replay."""
    world.settings = replace(world.settings, errors=replace(world.settings.errors, invalid_records=True), parked=PARKED)
    world.records = {KEY: filled(1_500)}
    world.records[KEY] |= {300: b"no JSON", 900: b"{"}
    first = world.deliver((0, 0, 1_500))
    parked = sorted(path for path in tmp_path.rglob("*") if path.is_file() and ".parked" in str(path))
    replay = world.replay(world.plan(), Target())
    found = results(replay)
    assert [(one.file.name, one.verdict) for one in found] == [(one.name, Verdict.SAME) for one in first.files]
    assert replay.left_out.count == 2
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file() and ".parked" in str(path)) == parked


def test_records_that_were_not_chosen_are_not_told_as_left_out(world: World) -> None:
    """One outside of what was chosen is nobody's business, though its range is read."""
    world.settings = replace(world.settings, errors=replace(world.settings.errors, invalid_records=True), parked=PARKED)
    world.records = {KEY: filled(1_500)}
    world.records[KEY][1_400] = b"no JSON"
    world.deliver((0, 0, 1_500))
    replay = world.replay(world.plan({KEY: [(0, 10)]}), Target())
    results(replay)
    assert replay.left_out.count == 0


@pytest.mark.parametrize("outcome", [REFUSED, BAD_FILE])
def test_a_file_that_is_refused_ends_the_replay(world: World, outcome: Any) -> None:
    """Nothing after it of its topic-partition is sent, and the message says how to go on."""
    world.records = {KEY: filled(3_000)}
    world.deliver((0, 0, 3_000))
    again = Target(ACCEPTED, outcome)
    replay = world.replay(world.plan(), again)
    found = results(replay)
    assert replay.failure is not None
    assert "--resume" in replay.failure.message
    assert "committed" not in replay.failure.message
    assert [one.file.first for one in found] == [0]
    assert replay.progress.positions[KEY].accepted == 700


def test_a_refused_file_is_passed_over_where_the_connector_does(world: World) -> None:
    """Its records are told, and the next file goes on."""
    world.settings = replace(world.settings, errors=replace(world.settings.errors, refused_files=True))
    world.records = {KEY: filled(2_000)}
    again = Target(BAD_FILE)
    replay = world.replay(world.plan(), again)
    results(replay)
    assert replay.failure is None
    assert (replay.left_out.count, replay.left_out.refused) == (700, 700)
    assert [row["id"] for row in again.rows] == list(range(700, 2_000))


def test_what_may_pass_is_tried_again(world: World) -> None:
    """A target that does not answer is asked again after the pauses of the settings."""
    world.settings = made(Path(world.settings.files.tmp_dir), 700, SLOW)
    world.records = {KEY: filled(1_500), ("orders", 1): filled(100)}
    world.deliver((0, 0, 1_500))
    again, clock = Target(UNKNOWN, UNKNOWN), Clock()
    replay = world.replay(world.plan(), again, sleep=clock.sleep, monotonic=clock.monotonic)
    found = results(replay)
    assert replay.failure is None
    assert len(found) == len(again.files) == 4
    assert clock.waits


PARKED = ParkedSettings(max_bytes=10**8)


class Stop(Exception):
    """Stands for Ctrl-C."""


@settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=FIXTURES_SHARED,
)
@given(
    stops=st.lists(st.integers(1, 9), max_size=4),
    cuts=st.lists(st.integers(1, 2_199), max_size=4, unique=True),
    known=st.integers(0, 5),
    times=st.integers(1, 2),
)
def test_a_replay_that_is_stopped_goes_on(
    world: World, stops: list[int], cuts: list[int], known: int, times: int
) -> None:
    """Wherever it is stopped, and however often: together it is all files of each round, in order, as the same ones."""
    world.records = {KEY: filled(2_200), ("orders", 1): filled(700)}
    world.ranges, world.files, world.block = [], [], 250
    edges = [0, *sorted(cuts), 2_200]
    world.deliver(*[(0, start, end) for start, end in list(pairwise(edges))[:known]], (1, 0, 700))
    plan = world.plan()
    whole = Target()
    results(world.replay(plan, whole, times=times))
    parts, progress = Target(), Progress()
    for files in [*stops, None]:
        saved: list[dict[str, Any]] = [progress.to_dict()]
        replay = world.replay(plan, parts, times=times, progress=Progress.from_dict(saved[0]), saved=saved)
        stop_at = None if files is None else len(parts.files) + files
        world.on_batch = partial(_stop, parts, stop_at)
        with suppress(Stop):
            results(replay)
        world.on_batch = lambda: None
        progress = Progress.from_dict(saved[-1])
    assert sorted(one.name for one in parts.files) == sorted(one.name for one in whole.files)
    assert progress.round == times + 1
    assert progress.files == len(whole.files)


def _stop(target: Target, at: int | None) -> None:
    if at is not None and len(target.files) >= at:
        raise Stop


def test_a_share_of_the_time_is_a_share_of_the_time(world: World) -> None:
    """Between batches it rests until it worked no more than its share."""
    world.records, clock = {KEY: filled(2_000)}, Clock()

    def work() -> None:
        clock.seconds += 0.1

    world.on_batch = work
    replay = world.replay(world.plan(), Target(), rate=Rate(0.2), sleep=clock.sleep, monotonic=clock.monotonic)
    results(replay)
    assert clock.seconds - sum(clock.waits) == pytest.approx(0.5)
    assert sum(clock.waits) >= 4 * 0.4


def test_more_topic_partitions_than_go_together(world: World) -> None:
    """They take turns."""
    world.records = {("orders", number): filled(5 + number) for number in range(MOST_TOGETHER * 2 + 1)}
    again = Target()
    results(world.replay(world.plan(), again))
    assert {file.partition for file in again.files} == set(range(MOST_TOGETHER * 2 + 1))


def test_nothing_to_send_is_the_end(world: World) -> None:
    """A plan without ranges ends at once."""
    again = Target()
    assert results(world.replay(ReplayPlan(()), again, times=2)) == []
    assert again.closed == 1


def test_what_the_connector_learned_is_known_when_ranges_are_cut_anew(world: World) -> None:
    """Columns that came late the first time are in each file."""
    world.records = {KEY: filled(1_000)}
    taught = Target()
    replay = world.replay(world.plan(), taught)
    results(replay)
    known = LearnedSchema(None, 50.0, 50.0)
    again = Target()
    results(world.replay(world.plan(None, orders=known), again))
    assert len(again.rows) == 1_000
