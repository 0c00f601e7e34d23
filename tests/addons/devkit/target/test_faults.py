"""Faults to order: parsing, and which upload a rule hits."""

from contextlib import suppress
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.devkit.target.faults import BadFault, Fault, choose, parse_fault


def fire(rules: tuple[Fault, ...], uploads: int, draws: list[float] | None = None) -> list[Fault | None]:
    """The faults of some uploads one after the other."""
    chances = iter(draws) if draws else repeat(0.0)
    hit = []
    for _ in range(uploads):
        fault, rules = choose(rules, "orders", "topic-a_partition-0.parquet", lambda: next(chances))
        hit.append(fault)
    return hit


def test_next_counts_down_and_ends() -> None:
    """A rule for the next two uploads hits two, and the third is answered well."""
    rule = Fault(status=503, next=2)
    assert [fault is not None for fault in fire((rule,), 3)] == [True, True, False]


def test_rate_follows_the_draw() -> None:
    """A rule of rate 0.1 fires for draws below 0.1 only."""
    hit = fire((Fault(status=500, rate=0.1),), 3, [0.05, 0.1, 0.9])
    assert [fault is not None for fault in hit] == [True, False, False]


def test_rate_and_next_together_limit_the_firings() -> None:
    """Uploads that a rate spares do not use up the count."""
    hit = fire((Fault(cut="before", rate=0.5, next=1),), 3, [0.9, 0.1])
    assert [fault is not None for fault in hit] == [False, True, False]


def test_first_rule_that_fires_decides() -> None:
    """Rules take their turns in the order in which they were given."""
    hit = fire((Fault(status=503, next=1), Fault(status=429)), 2)
    assert [fault and fault.status for fault in hit] == [503, 429]


@pytest.mark.parametrize(("match", "hits"), [("orders", True), ("topic-a_", True), ("", True), ("topic-b", False)])
def test_match_looks_at_target_and_file_name(match: str, hits: bool) -> None:
    """A rule is for every upload whose target or file name holds its text."""
    assert (fire((Fault(status=500, match=match),), 1)[0] is not None) is hits


def test_firings_are_shown() -> None:
    """What was ordered, the firings and the firings left are listed; a spent rule stays in view."""
    _, rules = choose((Fault(status=503, next=1),), "t", "f", lambda: 0.0)
    assert rules[0].as_json() == {"status": 503, "next": 0, "fired": 1}


@pytest.mark.parametrize(
    ("order", "stores", "status"),
    [
        ({"latency_s": 1}, True, 200),
        ({"cut": "before"}, False, 200),
        ({"cut": "during"}, True, 200),
        ({"cut": "after"}, True, 200),
        ({"status": 503, "retry_after": 2}, False, 503),
        ({"status": 504, "store": True}, True, 504),
        ({"body": "<html>"}, False, 200),
        ({"location": "http://127.0.0.1:1/"}, False, 307),
    ],
)
def test_each_kind_says_whether_the_file_is_stored(order: dict[str, object], stores: bool, status: int) -> None:
    """Storing and status follow from the kind of fault."""
    fault = parse_fault(order)
    assert (fault.stores, fault.answer_status) == (stores, status)


@pytest.mark.parametrize(
    ("order", "named"),
    [
        ([], "object"),
        ({}, "give one of"),
        ({"next": 1}, "give one of"),
        ({"stauts": 503}, "stauts"),
        ({"status": 99}, "status"),
        ({"status": True}, "status"),
        ({"status": "503"}, "status"),
        ({"status": 204, "body": "x"}, "body"),
        ({"cut": "sometimes"}, "cut"),
        ({"cut": "before", "status": 503}, "cut"),
        ({"latency_s": -1}, "latency_s"),
        ({"status": 500, "rate": 1.5}, "rate"),
        ({"status": 500, "next": 0}, "next"),
        ({"status": 500, "retry_after": "1\r\nx: y"}, "retry_after"),
        ({"status": 307, "location": "ü"}, "location"),
        ({"status": 500, "store": 1}, "store"),
        ({"body": 7}, "body"),
    ],
)
def test_orders_without_sense_are_refused_by_name(order: object, named: str) -> None:
    """The message names the key that is wrong."""
    with pytest.raises(BadFault, match=named):
        parse_fault(order)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)
    )
)
def test_any_json_is_a_rule_or_refused(order: object) -> None:
    """Nothing but BadFault comes out of an order, whatever it holds."""
    with suppress(BadFault):
        assert parse_fault(order).fired == 0
