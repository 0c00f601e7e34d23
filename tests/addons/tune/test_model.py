"""Arrival curves and file sizes."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.tune.model import Arrivals, Sizes, arrivals_of, between_marks


def test_steady_records_are_evenly_spaced() -> None:
    """At four a second a record comes each 250 ms, also where the curve repeats itself."""
    steady = Arrivals.steady(4, span_ms=1_000)
    assert [steady.count(at) for at in (0, 249, 250, 999, 1_000, 1_250, 60_000)] == [0, 0, 1, 3, 4, 5, 240]
    assert [steady.arrived_ms(number) for number in (0, 3, 4, 239)] == [250, 1_000, 1_250, 60_000]


def test_a_span_may_end_within_a_record() -> None:
    """One record in a minute and a half, told as a curve of a minute, comes each minute and a half."""
    rare = Arrivals.steady(1 / 90, span_ms=60_000)
    assert [rare.arrived_ms(number) for number in range(3)] == pytest.approx([90_000, 180_000, 270_000])
    assert [rare.count(at) for at in (89_999, 90_000.001, 180_000.001)] == [0, 1, 2]


@pytest.mark.parametrize("seed", range(20))
def test_times_of_records_are_kept(seed: int) -> None:
    """Each record arrives when it did, several at one time too, and again in each further span."""
    chance = random.Random(seed)
    times = sorted(float(chance.choice([chance.randrange(1_000), 500])) for _ in range(chance.choice([1, 2, 50])))
    arrivals = Arrivals.of_times(chance.sample(times, len(times)), 1_000)
    assert [arrivals.arrived_ms(n) for n in range(len(times))] == pytest.approx(times)
    assert [arrivals.arrived_ms(n + len(times)) for n in range(len(times))] == pytest.approx([t + 1_000 for t in times])
    for at in (0.0, 499.0, 500.0, 999.0):
        assert arrivals.count(at) == sum(t <= at for t in times)


@pytest.mark.parametrize("seed", range(20))
def test_a_record_has_arrived_by_the_time_it_arrives(seed: int) -> None:
    """Count and time are each other's inverse, for any rates, jumps and pauses."""
    chance = random.Random(seed)
    marks = [(0.0, 0.0)]
    for _ in range(chance.randrange(1, 9)):
        at, records = marks[-1]
        marks.append((at + chance.choice([0, 0.5, 700.0]), records + chance.choice([0, 0.3, 1, 40.7])))
    at_ms, records = zip(*[*marks, (marks[-1][0] + 10, marks[-1][1] + 1)], strict=True)
    arrivals = Arrivals(at_ms, records, at_ms[-1])
    for number in [*range(100), 12_345]:
        at = arrivals.arrived_ms(number)
        assert arrivals.count(at + 0.001) >= number + 1
        assert arrivals.count(at - 0.01) <= number or at < 0.01


def test_no_records_never_arrive() -> None:
    """An idle topic-partition has no record at any time."""
    idle = Arrivals.of_times([], 1_000)
    assert (idle.count(1e9), idle.arrived_ms(0), idle.per_second) == (0, float("inf"), 0)


@pytest.mark.parametrize(
    ("at_ms", "records", "span_ms"),
    [((), (), 1), ((0, 1), (1, 1), 1), ((0, 2), (0, 1), 1), ((0, 2, 1, 3), (0, 1, 2, 3), 3), ((0, 0), (0, 1), 0)],
)
def test_what_is_no_curve_is_refused(at_ms: tuple[float, ...], records: tuple[float, ...], span_ms: float) -> None:
    """A curve begins at nothing, rises, and ends with its span."""
    with pytest.raises(ValueError, match="arrivals"):
        Arrivals(at_ms, records, span_ms)


def test_a_record_outside_of_the_span_is_refused() -> None:
    """What was sampled is within the time of the sample."""
    with pytest.raises(ValueError, match="0 to 1000 ms"):
        Arrivals.of_times([5, 1_001], 1_000)


def test_file_sizes_follow_what_was_measured() -> None:
    """Between two measured files the size is between theirs, beyond them it grows as it did last."""
    sizes = Sizes(((0, 1_000), (100, 3_000), (1_000, 12_000)), record_bytes=150)
    assert [sizes.file_bytes(records) for records in (0, 50, 100, 550, 1_000, 2_000)] == [
        *(1_000, 2_000, 3_000, 7_500, 12_000, 22_000)
    ]
    assert sizes.overhead == 1_000


def test_file_sizes_of_one_measured_file_are_proportional() -> None:
    """Without what an empty file has, a file is as large as its records."""
    assert Sizes(((100, 3_000),), 150).file_bytes(250) == 7_500


def test_falling_file_sizes_are_refused() -> None:
    """More records never make a smaller file."""
    with pytest.raises(ValueError, match="rise"):
        Sizes(((10, 100), (20, 90)), 10)


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
