"""distributed/assignment.py: who runs what, what moves, and who waits for whom."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.distributed import assignment
from parquet_sink.distributed.assignment import (
    EMPTY,
    NOBODY,
    Assignment,
    MemberInfo,
    Placement,
    Release,
    asked_to_release,
    assign,
    free,
    owned,
    to_end,
)


def member(worker: str, stay: int = 1) -> MemberInfo:
    """A worker in the group; each stay has a member id of its own."""
    return MemberInfo(worker, f"{worker}-{stay}", f"http://{worker}/", 0)


def members(workers: Iterable[str], stay: int = 1) -> list[MemberInfo]:
    """All that are in the group."""
    return [member(worker, stay) for worker in workers]


def even(count: int) -> dict[str, int]:
    """Connectors of one task each."""
    return {f"c{i:02}": 1 for i in range(count)}


def first(workers: str, weights: Mapping[str, int]) -> Assignment:
    """The first assignment, to workers of one letter each."""
    made = assign(EMPTY, workers[0], members(workers), weights, now_ms=1_000)
    assert made is not None
    return made


def changed(
    before: Assignment, workers: Iterable[MemberInfo], weights: Mapping[str, int], **more: object
) -> Assignment:
    """The next assignment, a second later: there is one."""
    made = assign(before, before.leader, list(workers), weights, now_ms=2_000, **more)  # type: ignore[arg-type]
    assert made is not None
    return made


def on(assignment: Assignment, worker: str) -> set[str]:
    """Connectors of a worker."""
    return {name for name, one in assignment.placements.items() if one.worker == worker}


def moved(before: Assignment, after: Assignment) -> dict[str, Placement]:
    """Placements on another worker than before."""
    return {name: one for name, one in after.placements.items() if before.placements[name].worker != one.worker}


def released(assignment: Assignment, worker: str) -> dict[str, Release]:
    """What a worker writes that does all that it is asked to."""
    return asked_to_release(assignment, worker, assignment.members[worker].member_id, {})


def test_new_connectors_go_to_who_has_least_to_do_the_heaviest_first() -> None:
    """Of weights 4, 3, 2, 2, 1 two workers have 6 each, and every placement may begin at once."""
    made = first("ab", {"v": 4, "w": 3, "x": 2, "y": 2, "z": 1})
    weights = {"v": 4, "w": 3, "x": 2, "y": 2, "z": 1}
    assert [sum(weights[name] for name in on(made, worker)) for worker in "ab"] == [6, 6]
    assert {(one.source, one.reason) for one in made.placements.values()} == {(NOBODY, "the connector is new")}
    assert made.epoch == 1


def test_what_stands_is_not_written_again() -> None:
    """The same members and connectors give no new assignment, nor does an empty list of members."""
    made = first("abc", even(8))
    assert assign(made, "a", members("abc"), even(8), now_ms=9_000) is None
    assert assign(made, "a", [], even(8), now_ms=9_000) is None


def test_a_new_leader_writes_its_name() -> None:
    """Followers find the leader in the assignment: a new one is a change, and moves nothing."""
    made = first("ab", even(4))
    after = assign(made, "b", members("ab"), even(4), now_ms=9_000)
    assert after is not None
    assert (after.leader, after.epoch, after.placements) == ("b", 2, made.placements)


def test_a_joining_worker_gets_as_much_as_balances_and_no_more() -> None:
    """Of 20 connectors on two workers a third gets six, each released by its owner first; the others stay."""
    made = first("ab", even(20))
    after = changed(made, members("abc"), even(20))
    assert {len(on(after, worker)) for worker in "abc"} == {7, 6}
    assert all((one.worker, one.reason) == ("c", "worker c joined") for one in moved(made, after).values())
    assert all(one.source == made.placements[name].worker for name, one in moved(made, after).items())


def test_a_lost_worker_s_connectors_go_to_the_others_at_once() -> None:
    """Its lease is over when the coordinator removed it, so nobody waits for it."""
    made = first("abc", even(9))
    after = changed(made, members("ab"), even(9))
    assert moved(made, after).keys() == on(made, "c")
    assert {(one.source, one.reason) for one in moved(made, after).values()} == {(NOBODY, "worker c was lost")}
    assert all(free(after, name, None) for name in after.placements)


def test_a_lost_worker_is_waited_for_as_long_as_the_delay_says() -> None:
    """With a rebalance delay its connectors stay until it is back, or until the delay is over."""
    made = first("ab", even(4))
    waiting = changed(made, members("a"), even(4), delay_ms=5_000)
    assert on(waiting, "b") == on(made, "b")
    assert assign(waiting, "a", members("a"), even(4), now_ms=6_999, delay_ms=5_000) is None
    after = assign(waiting, "a", members("a"), even(4), now_ms=7_000, delay_ms=5_000)
    assert after is not None
    assert on(after, "a") == set(even(4))
    back = changed(waiting, members("ab", stay=2), even(4), delay_ms=5_000)
    assert {back.placements[name].reason for name in on(made, "b")} == {"worker b came back"}
    assert owned(back, "b", "b-2", {}) == on(made, "b")


def test_a_worker_that_stopped_in_order_is_not_waited_for() -> None:
    """The delay is for losses: what a worker that was asked to stop still has moves when it is gone."""
    made = first("ab", even(4))
    after = changed(made, members("a"), even(4), leaving={"b-1"}, delay_ms=5_000)
    assert on(after, "a") == set(even(4))


def test_a_stopping_worker_hands_over() -> None:
    """What it has moves while it lives, after its release, and it is given nothing."""
    made = first("ab", even(4))
    after = changed(made, members("ab"), {**even(4), "new": 1}, leaving={"b-1"})
    assert on(after, "b") == set()
    assert {after.placements[name].source for name in on(made, "b")} == {"b"}
    assert after.placements["new"].source == NOBODY


def test_the_word_of_an_earlier_stay_stops_nobody() -> None:
    """A worker that was stopped and is back under another member id is given connectors again."""
    made = first("ab", even(4))
    after = changed(made, [member("a"), member("b", 2)], even(4), leaving={"b-1"})
    assert on(after, "b") == on(made, "b")


def test_where_all_are_asked_to_stop_all_stays() -> None:
    """There is nobody to move to."""
    made = first("ab", even(4))
    assert assign(made, "a", members("ab"), even(4), now_ms=2_000, leaving={"a-1", "b-1"}) is None


def test_a_worker_that_is_back_keeps_what_was_its_own() -> None:
    """Under its new member id it begins at once: whatever its earlier stay ran has no lease."""
    made = first("ab", even(4))
    after = changed(made, [member("a"), member("b", 2)], even(4))
    assert moved(made, after) == {}
    assert owned(made, "b", "b-2", {}) == frozenset()
    assert owned(after, "b", "b-2", {}) == on(made, "b")
    assert owned(after, "b", "b-1", {}) == frozenset()


def test_of_two_stays_of_one_worker_the_first_counts_until_it_is_gone() -> None:
    """The coordinator has not removed the earlier one, so it may be at work: frozen, or on a machine cut off."""
    made = first("ab", even(4))
    both = [*members("ab"), member("b", 0)]
    assert assign(made, "a", both, even(4), now_ms=2_000) is None
    after = changed(made, [member("a"), member("b", 0)], even(4))
    assert after.members["b"].member_id == "b-0"


def test_the_next_owner_begins_after_the_release() -> None:
    """Before it the connector is nobody's but its source's, who must stop it."""
    made = first("a", {"x": 1, "y": 1})
    after = changed(made, members("ab"), {"x": 1, "y": 1})
    (name,) = moved(made, after)
    assert owned(after, "b", "b-1", {}) == frozenset()
    assert name not in owned(after, "a", "a-1", {})
    assert released(after, "a") == {name: Release("a", "a-1", 2)}
    assert owned(after, "b", "b-1", released(after, "a")) == {name}
    assert asked_to_release(after, "a", "a-1", released(after, "a")) == {}


def test_a_release_of_an_earlier_move_or_stay_counts_for_nothing() -> None:
    """It must be by the source, under the member id that is assigned to, and of the move's epoch or later."""
    made = first("a", {"x": 1, "y": 1})
    after = changed(made, members("ab"), {"x": 1, "y": 1})
    (name,) = moved(made, after)
    for release in (Release("a", "a-1", 1), Release("a", "a-0", 2), Release("b", "b-1", 2)):
        assert owned(after, "b", "b-1", {name: release}) == frozenset()
    assert owned(after, "b", "b-1", {name: Release("a", "a-1", 7)}) == {name}


def test_what_was_not_released_does_not_move_on() -> None:
    """Whether the next owner has begun is not known then: it stays, also where that worker is asked to stop."""
    made = first("a", even(2))
    after = changed(made, members("ab"), even(2))
    (name,) = moved(made, after)
    again = changed(after, members("abc"), even(2), leaving={"b-1"})
    assert (again.placements[name].worker, again.placements[name].source) == ("b", "a")
    settled = changed(again, members("abc"), even(2), leaving={"b-1"}, releases=released(again, "a"))
    assert (settled.placements[name].worker, settled.placements[name].source) == ("c", "b")


def test_the_source_stays_where_the_next_owner_is_lost() -> None:
    """It may still be at work, so whoever comes in its place waits for it; it itself does not."""
    made = first("ac", even(4))
    after = changed(made, members("abc"), even(4))
    (name,) = moved(made, after)
    source = after.placements[name].source
    again = changed(after, members("ac"), {**even(4), "heavy": 3} if source == "c" else even(4))
    placement = again.placements[name]
    assert placement.source == (NOBODY if placement.worker == source else source)


def test_a_lost_source_is_waited_for_no_longer() -> None:
    """Neither where it is gone, nor where it is back under another member id."""
    made = first("a", even(2))
    after = changed(made, members("ab"), even(2))
    (name,) = moved(made, after)
    for now in (members("b"), [member("a", 2), member("b")]):
        assert name in owned(changed(after, now, even(2)), "b", "b-1", {})


def test_a_deleted_connector_is_released_before_one_of_its_name_begins() -> None:
    """Its last owner may still be stopping it when it is created again on another worker."""
    made = first("a", {"x": 1})
    deleted = changed(made, members("a"), {})
    assert deleted.placements["x"] == Placement(NOBODY, "a", "the connector was deleted", 2, 2_000)
    created = changed(deleted, members("ab"), {"x": 1, "y": 9}, leaving={"a-1"})
    assert (created.placements["x"].worker, created.placements["x"].source) == ("b", "a")
    assert owned(created, "b", "b-1", {}) == {"y"}
    gone = changed(deleted, members("a"), {}, releases=released(deleted, "a"))
    assert gone.placements == {}


workers = st.sets(st.sampled_from("abcde"), min_size=1)
loads = st.dictionaries(st.sampled_from([f"c{i}" for i in range(12)]), st.integers(1, 5))


@given(st.lists(st.tuples(workers, loads), min_size=1, max_size=8))
def test_every_change_leaves_all_placed_and_no_move_that_would_help(
    steps: list[tuple[set[str], dict[str, int]]],
) -> None:
    """All connectors are on living workers; when releases came no single move would make the load more even."""
    before = EMPTY
    for there, weights in steps:
        for _ in range(30):
            releases: dict[str, Release] = {}
            for worker in before.members:
                releases |= released(before, worker)
            after = assign(before, "a", members(sorted(there)), weights, now_ms=0, releases=releases)
            if after is None:
                break
            assert after.epoch == before.epoch + 1
            before = after
        else:
            raise AssertionError("it never comes to rest")
        assert before.placements.keys() == weights.keys()
        load = {worker: sum(weights[name] for name in on(before, worker)) for worker in there}
        assert sum(load.values()) == sum(weights.values())
        least = min(load.values())
        assert all(least + weights[name] >= load[one.worker] for name, one in before.placements.items())


@given(workers, st.sampled_from("abcde"), loads)
def test_only_what_was_on_a_lost_worker_moves_from_it(there: set[str], lost: str, weights: dict[str, int]) -> None:
    """Others move only to even the load, and none twice."""
    left = there - {lost}
    if not left or lost not in there:
        return
    made = first("".join(sorted(there)), weights)
    after = assign(made, min(there), members(sorted(left)), weights, now_ms=0)
    assert after is not None
    for name, one in moved(made, after).items():
        assert one.source in {NOBODY, made.placements[name].worker}
        assert (one.source == NOBODY) == (made.placements[name].worker == lost)


def test_a_worker_that_rests_is_given_what_has_no_worker_alone() -> None:
    """Nothing moves to it from where it runs; afterwards it gets its share, without anything else having happened."""
    made = first("ab", even(6))
    resting = changed(made, members("abc"), even(6), resting={"c"})
    assert moved(made, resting) == {}
    assert resting.members.keys() == {"a", "b", "c"}
    more = changed(resting, members("abc"), even(9), resting={"c"})
    assert on(more, "c") == {"c06", "c07", "c08"}
    shared = changed(resting, members("abc"), even(6))
    assert len(on(shared, "c")) == 2
    assert assign(resting, "a", members("abc"), even(6), now_ms=3_000, resting={"a", "b", "c"}) is None


def test_an_assignment_is_in_the_form_that_all_of_the_group_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest member's, and never one that the leader does not know itself."""
    monkeypatch.setattr(assignment, "FORM", 3)
    forms = {"a": 2, "b": 4}
    mixed = assign(EMPTY, "b", [replace(one, form=forms[one.worker_id]) for one in members("ab")], {}, now_ms=1_000)
    assert mixed is not None
    assert mixed.form == 2
    assert changed(mixed, [replace(member("b"), form=4)], {}).form == 3


def _stopping(names: Iterable[str]) -> tuple[Assignment, dict[str, float]]:
    """A is stopping, and what it has goes to b and c; with what a runs, which never flushes."""
    before = first("abc", dict.fromkeys(names, 1))
    after = changed(before, members("abc"), dict.fromkeys(names, 1), leaving=["a-1"])
    return after, dict.fromkeys(on(before, "a"), math.inf)


def test_what_others_are_to_have_ends_one_after_the_other() -> None:
    """One for each worker that is to have some; the next one once that worker said that it began."""
    assignment, running = _stopping(even(18))
    begun, ended = set[str](), list[set[str]]()
    while running:
        now = to_end(assignment, "a", "a-1", running, begun)
        running = {name: next_s for name, next_s in running.items() if name not in now}
        assert to_end(assignment, "a", "a-1", running, begun) == set()
        ended.append(now)
        begun |= now
    assert [len(one) for one in ended] == [2, 2, 2]
    assert all({assignment.placements[name].worker for name in one} == {"b", "c"} for one in ended)


@pytest.mark.parametrize(
    ("flushes", "ends"),
    [
        ([4.0, 9.0, 5.0], 1),
        ([2.9, 3.1, -3.1], 1),
        ([2.9, 0.0, -3.1], 2),
        ([2.9, 0.0, -2.9], None),
        ([math.inf, 9.0, 5.0], 0),
    ],
    ids=["who flushed last", "soon", "late for long", "all are about to flush", "one that never flushes"],
)
def test_who_flushed_last_ends_first(flushes: list[float], ends: int | None) -> None:
    """So it rests hardly longer than it does anyway; what is about to flush does so before it moves."""
    assignment, running = _stopping(even(18))
    names = sorted(name for name in running if assignment.placements[name].worker == "b")
    now = to_end(assignment, "a", "a-1", dict(zip(names, flushes, strict=True)), ())
    assert now == (set() if ends is None else {names[ends]})


def test_what_nobody_waits_for_ends_at_once() -> None:
    """What was deleted, and all that runs on a worker that is another member by now; about to flush or not."""
    assignment, running = _stopping(even(18))
    before, soon = first("abc", even(18)), dict.fromkeys(running, 1.0)
    deleted = changed(before, members("abc"), dict.fromkeys(before.placements.keys() - running.keys(), 1))
    assert to_end(deleted, "a", "a-1", soon, ()) == running.keys()
    assert to_end(assignment, "a", "a-2", soon, ()) == running.keys()
    assert to_end(EMPTY, "a", "a-1", soon, ()) == running.keys()
