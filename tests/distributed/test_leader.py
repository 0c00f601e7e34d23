"""distributed/leader.py: who rests. What a leader does with a group is in `test_group.py`."""

from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.distributed.assignment import EMPTY, Assignment, MemberInfo, asked_to_release, assign
from parquet_sink.distributed.leader import REST_S, LostWorkers


def _members(**stays: int) -> list[MemberInfo]:
    return [MemberInfo(worker, f"{worker}-{stay}", "", 0) for worker, stay in stays.items()]


def _assignment(**stays: int) -> Assignment:
    return Assignment(1, "a", 0, {one.worker_id: one for one in _members(**stays)}, {})


def test_a_worker_that_was_lost_rests_when_it_is_back() -> None:
    """For some seconds from when it is there again, whenever that is; who joins for the first time does not."""
    lost = LostWorkers()
    assert lost.resting(_assignment(a=1, b=1), _members(a=1), {}, 10.0) == frozenset()
    assert lost.resting(_assignment(a=1), _members(a=1, b=2, c=1), {}, 500.0) == {"b"}
    assert lost.resting(_assignment(a=1, b=2, c=1), _members(a=1, b=2, c=1), {}, 500.0 + REST_S / 2) == {"b"}
    assert lost.resting(_assignment(a=1, b=2, c=1), _members(a=1, b=2, c=1), {}, 501.0 + REST_S) == frozenset()


def test_a_worker_that_is_back_before_it_was_missed_rests() -> None:
    """Its earlier stay was lost all the same."""
    assert LostWorkers().resting(_assignment(a=1, b=1), _members(a=1, b=2), {}, 10.0) == {"b"}


def test_a_worker_that_stopped_in_order_does_not_rest() -> None:
    """A rolling restart gives it its share at once."""
    lost = LostWorkers()
    assert lost.resting(_assignment(a=1, b=1), _members(a=1), {"b": "b-1"}, 10.0) == frozenset()
    assert lost.resting(_assignment(a=1), _members(a=1, b=2), {"b": "b-1"}, 12.0) == frozenset()


def _assigned(before: Assignment, members: list[MemberInfo], resting: frozenset[str]) -> Assignment | None:
    """The next assignment, where all has been released that was to be."""
    releases = {}
    for one in before.members.values():
        releases |= asked_to_release(before, one.worker_id, one.member_id, {})
    weights = {"v": 1, "w": 1, "x": 1, "y": 2, "z": 3}
    return assign(before, "a", members, weights, now_ms=0, resting=resting, releases=releases)


_STAYS = st.fixed_dictionaries(dict.fromkeys("abc", st.integers(0, 2))).filter(lambda stays: any(stays.values()))


@given(st.lists(st.tuples(_STAYS, st.integers(0, 2 * int(REST_S))), min_size=1, max_size=8))
def test_what_runs_moves_to_no_worker_that_rests_and_each_rest_ends(steps: list[tuple[dict[str, int], int]]) -> None:
    """All have a worker at any time, be it one that rests; after a rest the load is as even as ever."""
    lost, before, now_s, here, back_s = LostWorkers(), EMPTY, 0, set[MemberInfo](), dict[str, int]()
    for stays, wait_s in [*steps, *[(steps[-1][0], int(REST_S))] * 2]:
        now_s += wait_s
        members = _members(**{worker: stay for worker, stay in stays.items() if stay})
        for one in set(members) - here:
            back_s[one.worker_id] = now_s if one.worker_id in back_s else -int(REST_S)
        here = set(members)
        while (after := _assigned(before, members, lost.resting(before, members, {}, now_s))) is not None:
            for placement in after.placements.values():
                if placement.source and placement.epoch == after.epoch:
                    assert now_s >= back_s[placement.worker] + REST_S
            before = after
        assert {one.worker for one in before.placements.values()} <= {one.worker_id for one in members}
    assert _assigned(before, members, frozenset()) is None
