"""The demo's stream of orders."""

from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.devkit.demo.orders import Change, changes

STATES = ["created", "paid", "shipped", "delivered"]


@pytest.fixture(scope="module")
def stream() -> list[Change]:
    """A stream long enough for everything to happen."""
    return list(changes(7, 20_000))


def values_by_order(stream: list[Change]) -> dict[int, list[dict[str, object]]]:
    """The values of each order, in order."""
    found: dict[int, list[dict[str, object]]] = {}
    for change in stream:
        if change.value is not None:
            found.setdefault(change.order_id, []).append(orjson.loads(change.value))
    assert any(len(values) == len(STATES) for values in found.values())
    return found


@given(seed=st.integers(0, 2**32), records=st.integers(0, 300))
def test_the_same_seed_gives_the_same_stream_of_exactly_so_many_records(seed: int, records: int) -> None:
    """Keys and values depend on the seed and on nothing else."""
    first, second = list(changes(seed, records)), list(changes(seed, records))
    assert first == second
    assert len(first) == records


def test_another_seed_gives_another_stream() -> None:
    """Seeds matter."""
    assert list(changes(1, 50)) != list(changes(2, 50))


def test_each_order_goes_through_its_states_in_order(stream: list[Change]) -> None:
    """created, paid, shipped, delivered; none skipped, none repeated."""
    for values in values_by_order(stream).values():
        assert [value["status"] for value in values] == STATES[: len(values)]


def test_updates_are_later_and_keep_the_order_itself(stream: list[Change]) -> None:
    """An update has a later time and the same customer and items."""
    for values in values_by_order(stream).values():
        for before, after in pairwise(values):
            assert str(before["updated_at"]) < str(after["updated_at"])
            assert (before["customer"], before["items"]) == (after["customer"], after["items"])


def test_the_key_is_the_order_number_of_the_value(stream: list[Change]) -> None:
    """So that all changes of one order share a topic-partition."""
    for order_id, values in values_by_order(stream).items():
        assert {value["order_id"] for value in values} == {order_id}
    assert stream[0].key == b"100001"


def test_some_orders_are_cancelled_before_they_are_shipped(stream: list[Change]) -> None:
    """A tombstone is an order's last record, and ends one that is in the table."""
    last: dict[int, object] = {}
    for change in stream:
        assert last.get(change.order_id, "new") is not None
        if change.value is None:
            assert last[change.order_id] in ("created", "paid")
        last[change.order_id] = None if change.value is None else orjson.loads(change.value)["status"]
    cancelled = sum(status is None for status in last.values())
    assert 0.01 * len(stream) < cancelled < 0.05 * len(stream)


def test_fields_are_sometimes_null_and_sometimes_absent(stream: list[Change]) -> None:
    """The stream has what real streams have: nulls, absent fields, nested objects, lists, letters beyond ASCII."""
    values = [value for values in values_by_order(stream).values() for value in values]
    coupons = {value.get("coupon", "absent") for value in values}
    assert {None, "absent", "SPRING-10"} <= coupons
    assert any(value["customer"]["phone"] is None for value in values)  # type: ignore[index]
    assert all(isinstance(value["items"], list) for value in values)
    assert any(not change.value.isascii() for change in stream if change.value is not None)
