"""Durations that vary from micro-batch to micro-batch."""

import pytest

from parquet_sink.addons.tune.model import Durations, Thresholds
from parquet_sink.addons.tune.simulate import simulate
from tests.addons.tune.loads import steady


def test_each_variation_comes_as_often() -> None:
    """Over as many micro-batches as there are variations each has its turn; records cost what they cost."""
    durations = Durations(plan_ms=100, finish_ms=10, variation=(0.5, 1.0, 3.0))
    taken = [durations.of_batch(number) for number in range(3)]
    assert sorted(one.plan_ms for one in taken) == [50, 100, 300]
    assert sorted(one.finish_ms for one in taken) == [5, 10, 30]
    assert {one.record_us for one in taken} == {durations.record_us}


def test_variation_shows_at_the_top() -> None:
    """Where one micro-batch in ten is slow, the slowest records show it, and half of them do not."""
    thresholds = Thresholds(10_000_000, 100_000, 10_000)
    even = simulate(steady(1, 10), thresholds, Durations(plan_ms=500)).freshness
    uneven = simulate(steady(1, 10), thresholds, Durations(plan_ms=500, variation=(*[0.5] * 9, 12.0))).freshness
    assert even is not None
    assert uneven is not None
    assert uneven.max_s > even.max_s + 4
    assert uneven.p50_s == pytest.approx(even.p50_s, abs=1)
