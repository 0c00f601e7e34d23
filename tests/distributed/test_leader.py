"""distributed/leader.py: who rests. What a leader does with a group is in `test_group.py`."""

from parquet_sink.distributed.assignment import Assignment, MemberInfo
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
