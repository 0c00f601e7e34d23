"""What the demo concludes from replays: only what holds is called so."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from parquet_sink.addons.devkit.demo.expected import Comparison, Delivered
from parquet_sink.addons.devkit.demo.replays import Ended, Half, judge_ordered, judge_table, judge_unordered
from tests.messages import assert_says

SAME = Half(Ended(0, ("connector c: table T: unchanged: 1,200 rows, 2,400 repeated rows absorbed",), ""), ())
CHANGED = Half(Ended(1, ("connector c: table T: CHANGED: of 1,200 rows now: 1 went back in time",), ""), ())


def test_both_halves_must_leave_the_table_unchanged() -> None:
    """The figures are those that the command printed."""
    check = judge_ordered([SAME, SAME], "T")
    assert check.ok
    assert_says(check.figures, "1,200 rows", "4,800 repeated rows absorbed")


@pytest.mark.parametrize(
    "halves",
    [
        [SAME, CHANGED],
        [CHANGED, CHANGED],
        [SAME, replace(SAME, ended=replace(SAME.ended, status=1))],
        [SAME, replace(SAME, ended=replace(SAME.ended, lines=()))],
    ],
)
def test_anything_else_is_no_proof(halves: Sequence[Half]) -> None:
    """A status without the words, or words without the status, are not enough."""
    assert not judge_ordered(halves, "T").ok


def test_the_table_must_equal_what_was_sent() -> None:
    """And an empty one equals nothing."""
    assert judge_table(Comparison(5, 3, 0, ()), "T").ok
    assert not judge_table(Comparison(5, 3, 1, ("order_id 1",)), "T").ok
    assert not judge_table(Comparison(0, 0, 0, ()), "T").ok


LAST = {order: Delivered(json.dumps({"status": "paid"}).encode(), 0, 100 + order, 0) for order in range(5)}
NOW: Mapping[int, Mapping[str, Any]] = {
    order: {"order_id": order, "status": "created", "kafkaOffset": 10 if order < 2 else 100 + order}
    for order in range(5)
}


def told(order: int, before: int, after: int, became: str = "back") -> dict[str, Any]:
    """A difference as the command writes it."""
    return {"key": {"order_id": order}, "became": became, "before": {"offset": before}, "after": {"offset": after}}


RIGHT = (told(0, 100, 10), told(1, 101, 10))


@pytest.mark.parametrize(
    ("differences", "ok"),
    [
        (RIGHT, True),
        (RIGHT[:1], False),  # one is not named
        ((*RIGHT, told(2, 102, 102)), False),  # one did not go back
        ((*RIGHT, told(3, 103, 7)), False),  # the table has another one
        ((RIGHT[0], told(1, 99, 10)), False),  # another one was there before
        ((RIGHT[0], told(1, 101, 10, "changed")), False),
        ((), False),
    ],
)
def test_rows_that_went_back_are_named_and_no_others(differences: tuple[Any, ...], ok: bool) -> None:
    """What the command says is compared with what the demo itself knows."""
    check = judge_unordered([SAME, replace(CHANGED, differences=differences)], LAST, NOW, "T")
    assert check.ok is ok
    assert_says(check.details[0], "order 0", "was paid (offset 100)", "is created (offset 10)")


def test_a_replay_that_found_nothing_is_none_of_an_unordered_table() -> None:
    """Rows went back, and the command says it did not see it."""
    assert not judge_unordered([SAME, replace(SAME, differences=RIGHT)], LAST, NOW, "T").ok
