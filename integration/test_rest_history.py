"""The judge of what clients were told by REST: it finds what no order explains, and believes what one does."""

from dataclasses import replace
from itertools import pairwise, permutations
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integration.cluster_faults.rest_history import (
    FRESH_S,
    NEVER,
    Act,
    Asked,
    Stored,
    Told,
    after,
    troubles,
    unexplained,
    went_back,
)
from parquet_sink.distributed.herder import BARRIER_S
from parquet_sink.worker.herder.values import TargetState

PAUSED: Final = TargetState.PAUSED


def asked(
    act: Act,
    begun_s: float,
    ended_s: float,
    told: Told = Told.DONE,
    value: str = "",
    target: TargetState = TargetState.STARTED,
    worker: str = "w0",
) -> Asked:
    """Of connector `c`."""
    return Asked("c", worker, act, told, begun_s, ended_s, value, target)


CREATED: Final = asked(Act.CREATE, 0.0, 0.1, value="1")


@pytest.mark.parametrize(
    "sound",
    [
        [CREATED, asked(Act.PUT, 1, 1.1, value="2"), asked(Act.READ, 2, 2.1, value="2")],
        [CREATED, asked(Act.PUT, 1, 1.5, value="2"), asked(Act.READ, 1.1, 1.2, value="1")],
        [CREATED, asked(Act.PUT, 1, 1.5, value="2"), asked(Act.READ, 1.1, 1.2, value="2")],
        [
            CREATED,
            asked(Act.PUT, 1, NEVER, Told.UNKNOWN, "2"),
            asked(Act.READ, 2, 2.1, value="1"),
            asked(Act.READ, 60, 60.1, value="2"),
        ],
        [CREATED, asked(Act.DELETE, 1, NEVER, Told.UNKNOWN), asked(Act.CREATE, 5, 5.1, value="2")],
        [CREATED, asked(Act.DELETE, 1, 1.1), asked(Act.READ, 2, 2.1, Told.ABSENT), asked(Act.PATCH, 3, 4, Told.ABSENT)],
        [
            CREATED,
            asked(Act.TARGET, 1, 1.5, target=PAUSED),
            asked(Act.DELETE, 1, 1.5),
            asked(Act.PUT, 2, 2.1, Told.MADE, "2"),
            asked(Act.LOOK, 3, 3.1, value="2"),
        ],
        [CREATED, asked(Act.PUT, 1, 1.1, value="2"), asked(Act.READ, 1.2, 3.3, value="1", worker="w1")],
    ],
    ids=["in turn", "not yet", "already", "late", "gone after all", "gone", "paused, then gone", "stale and slow"],
)
def test_what_an_order_explains_is_sound(sound: list[Asked]) -> None:
    """Also what took effect long after nobody answered, and what a worker read that did not reach its brokers."""
    assert list(troubles(sound)) == []


@pytest.mark.parametrize(
    ("broken", "at"),
    [
        ([CREATED, asked(Act.PUT, 1, 1.1, value="2"), asked(Act.READ, 2, 2.1, value="1")], 2),
        ([CREATED, asked(Act.PUT, 1, 1.1, value="2"), asked(Act.LOOK, 9, 9.1, value="1")], 2),
        (
            [
                CREATED,
                asked(Act.PUT, 1, 5, value="2"),
                asked(Act.READ, 2, 2.1, value="2"),
                asked(Act.PUT, 3, 3.1, value="3"),
                asked(Act.READ, 6, 6.1, value="2"),
            ],
            4,
        ),
        ([CREATED, asked(Act.DELETE, 1, 1.1), asked(Act.READ, 2, 2.1, value="1")], 2),
        ([CREATED, asked(Act.DELETE, 1, 1.1), asked(Act.PUT, 2, 2.1, value="2")], 2),
        ([CREATED, asked(Act.CREATE, 0, 0.1, value="2")], 1),
        ([CREATED, asked(Act.DELETE, 1, 1.2), asked(Act.DELETE, 1, 1.2)], 2),
        (
            [
                CREATED,
                asked(Act.TARGET, 1, 1.5, target=PAUSED),
                asked(Act.DELETE, 1, 1.5),
                asked(Act.CREATE, 2, 2.1, value="2"),
                asked(Act.LOOK, 3, 3.1, value="2", target=PAUSED),
            ],
            4,
        ),
        ([CREATED, asked(Act.TARGET, 1, 1.1, target=PAUSED), asked(Act.LOOK, 3, 3.1, value="1")], 2),
        ([CREATED, asked(Act.PATCH, 1, 1.1, Told.ABSENT, "2")], 1),
    ],
    ids=[
        "a lost update",
        "a lost update, seen in the end",
        "a former leader's write that comes late",
        "a resurrected connector",
        "a resurrected connector, changed",
        "two that both made it",
        "two that both ended it",
        "a pause that outlives its connector",
        "a pause that was lost",
        "one that is there and was not found",
    ],
)
def test_what_no_order_explains_is_found(broken: list[Asked], at: int) -> None:
    """And the answer is named that was untrue."""
    assert unexplained(broken) == broken[at]
    (found,) = troubles(broken)
    assert "connector c: " in found
    assert str(broken[at]) in found


def test_a_worker_that_goes_back_is_found() -> None:
    """Stale is allowed to a read that took long; back behind an earlier one of that worker is not."""
    slow = [
        asked(Act.READ, begun, begun + 2.5, value=value, worker=worker)
        for begun, value, worker in ((1, "1", "w1"), (4, "2", "w1"), (7, "1", "w2"), (8, "1", "w1"), (8.1, "2", "w1"))
    ]
    assert went_back(slow) == [slow[3]]
    assert len(list(troubles([CREATED, asked(Act.PUT, 0.5, 0.6, value="2"), *slow]))) == 1


def test_a_fresh_read_has_seen_the_topic_s_end() -> None:
    """A worker that gives the end up waits longer than a read may take that counts."""
    assert FRESH_S < BARRIER_S


WRITES: Final = (Act.CREATE, Act.PUT, Act.PATCH, Act.DELETE, Act.TARGET, Act.READ)


@st.composite
def true_histories(draw: st.DrawFn) -> list[Asked]:
    """What clients are told where each request takes effect at one moment within it; some answers are lost."""
    state: Stored | None = None
    found = []
    for number in range(draw(st.integers(1, 12))):
        begun = number - draw(st.floats(0.0, 3.0))
        ended = number + draw(st.floats(0.0, 1.5))
        act, target = draw(st.sampled_from(WRITES)), draw(st.sampled_from(list(TargetState)))
        value = (state.value if state else "") if act is Act.READ else str(number)
        one = asked(act, begun, ended, value=value, target=target)
        one = next(each for told in Told if told is not Told.UNKNOWN and after(state, each := replace(one, told=told)))
        if act is not Act.READ and draw(st.integers(0, 3)) == 0:
            one = replace(one, told=Told.UNKNOWN, ended_s=NEVER)
            if draw(st.booleans()):
                found.append(one)
                continue
        (state,) = after(state, one)
        found.append(one)
    return found


@given(true_histories())
def test_true_histories_are_believed(history: list[Asked]) -> None:
    """Whatever overlaps, and whatever became of what was not answered."""
    assert unexplained(history) is None


@given(true_histories(), st.data())
def test_it_is_as_right_as_trying_all_orders(history: list[Asked], data: st.DataObject) -> None:
    """Of short histories, in which one answer may be made untrue."""
    history = history[:5]
    number = data.draw(st.integers(0, len(history) - 1))
    told = data.draw(st.sampled_from(list(Told)))
    history[number] = replace(history[number], told=told, ended_s=NEVER if told is Told.UNKNOWN else number + 0.5)
    assert (unexplained(history) is None) == _some_order_explains(history)


def _some_order_explains(history: list[Asked]) -> bool:
    """By its definition."""
    unknown = [number for number, one in enumerate(history) if one.ended_s == NEVER]
    for chosen in range(1 << len(unknown)):
        left_out = {one for place, one in enumerate(unknown) if chosen >> place & 1}
        kept = [one for number, one in enumerate(history) if number not in left_out]
        if any(_explains(order) for order in permutations(kept)):
            return True
    return False


def _explains(order: tuple[Asked, ...]) -> bool:
    if any(later.ended_s < one.begun_s for place, one in enumerate(order) for later in order[place + 1 :]):
        return False
    states: list[Stored | None] = [None]
    for one in order:
        states = [next_ for state in states for next_ in after(state, one)]
    return bool(states)


def test_a_long_history_with_many_lost_answers_is_judged_at_once() -> None:
    """Unknown outcomes stay possible to the end, and do not multiply the orders that are tried."""
    history = [CREATED]
    for number in range(60):
        history.append(asked(Act.PUT, number + 1, NEVER, Told.UNKNOWN, f"unknown-{number}"))
        history.append(asked(Act.TARGET, number + 1, NEVER, Told.UNKNOWN, target=PAUSED))
        history.append(asked(Act.PUT, number + 1.1, number + 1.2, value=f"known-{number}"))
        history.append(asked(Act.READ, number + 1.3, number + 1.4, value=f"known-{number}"))
    assert unexplained(history) is None
    assert all(one.begun_s <= other.begun_s for one, other in pairwise(history))
    assert unexplained([*history, asked(Act.LOOK, 70, 71, value="known-3")]) is not None
