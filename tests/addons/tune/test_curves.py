"""Curves of arrivals from samples keep what matters: how many, when, bursts and pauses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.tune.curves import arrivals_of, between_marks


@given(st.lists(st.integers(0, 10_000), max_size=60))
def test_few_records_are_kept_each(times: list[int]) -> None:
    """Each record arrives when it did, or with the one before it in its log where its timestamp is older."""
    curve = arrivals_of(np.array(times, float), 10_000.0)
    assert curve.per_span == len(times)
    for number, at in enumerate(np.maximum.accumulate(np.array(times, float)) if times else ()):
        assert curve.arrived_ms(number) == pytest.approx(at, abs=0.01)


def test_many_records_become_few_marks() -> None:
    """A million records are a curve of some thousand marks that is nowhere far from them."""
    rng = np.random.default_rng(1)
    times = np.sort(rng.uniform(0, 600_000, 1_000_000))
    curve = arrivals_of(times, 600_000.0)
    assert len(curve.at_ms) < 4_100
    for number in range(0, 1_000_000, 50_021):
        assert curve.arrived_ms(number) == pytest.approx(times[number], abs=1_000)


def test_bursts_and_pauses_stay() -> None:
    """Where records come in bursts, the pauses between stay as long, and bursts as short."""
    burst = np.concatenate([at + np.linspace(0, 50, 5_000) for at in (1_000, 21_000, 41_000)])
    curve = arrivals_of(burst, 60_000.0)
    assert [curve.count(at) for at in (900, 1_060, 20_900, 21_060, 40_900, 41_060)] == [
        *(0, 5_000, 5_000, 10_000, 10_000, 15_000)
    ]


def test_timestamps_before_and_behind_the_window_count_at_its_ends() -> None:
    """A record whose timestamp lies outside arrives at the window's begin or end."""
    curve = arrivals_of(np.array([-500.0, 200.0, 99_999.0]), 1_000.0)
    assert [curve.count(at) for at in (0, 199, 200, 999.9)] == [1, 1, 2, 2]
    assert curve.per_span == 3


def test_marks_that_fall_are_mended() -> None:
    """Marks beyond the span, or in no order, give a curve all the same."""
    curve = between_marks([100.0, 50.0, 2_000.0], [10, 5, 20], 1_000.0)
    assert curve.count(999.9) >= 10
    assert curve.per_span == 20
    assert between_marks([], [], 1_000.0).per_span == 0
