"""The front, the choice by objectives, and what is said of it."""

import math
from dataclasses import replace

import pytest

from parquet_sink.addons.tune.grid import grid, sweep
from parquet_sink.addons.tune.model import (
    Arrivals,
    Durations,
    Files,
    Freshness,
    Load,
    PartitionLoad,
    Simulated,
    Thresholds,
)
from parquet_sink.addons.tune.objectives import Aim, Objective, freshness_s
from parquet_sink.addons.tune.pareto_front import choose, front
from parquet_sink.addons.tune.simulate import Simulator
from tests.addons.tune.loads import SIZES, steady
from tests.messages import assert_says

LOAD = steady(4, 10)
FRESH = Objective(Aim.FRESHNESS, 30)
FEW = Objective(Aim.FILES_PER_HOUR, 250)
LARGE = Objective(Aim.FILE_SIZE, 10e6)


def given(seconds: float, files: float, size: float = 1e6, *, keeps_up: bool = True) -> Simulated:
    """What some settings give."""
    return Simulated(
        Thresholds(10_000_000, 100_000, int(seconds * 1000)),
        Freshness(seconds / 2, seconds * 0.9, seconds, seconds * 1.1),
        Files(size, size, size, size, 100),
        *(files, files, files * size, files * size, 0.1),
        keeps_up,
        covered_ms=1e6,
        reasons={"interval": 1.0},
    )


def test_the_front_has_what_nothing_beats() -> None:
    """Fresher costs files; what is neither fresher nor fewer, hardly differs, or piles up, is not on it."""
    best = [given(1, 1_000), given(10, 100), given(100, 10)]
    others = [given(2, 1_000), given(10, 101), given(10.01, 99.9), given(0.5, 1, keeps_up=False), given(200, 10)]
    assert front([*others, *reversed(best)]) == tuple(best)
    assert front([]) == ()


def test_the_first_objective_counts_first() -> None:
    """Where fresh and few cannot both be had, the order of the objectives decides, and the other is missed by least."""
    found = [given(10, 4_000), given(29, 500), given(58, 250), given(120, 125)]
    assert choose(found, [FRESH, FEW], LOAD).chosen == found[1]
    assert choose(found, [FEW, FRESH], LOAD).chosen == found[2]
    assert choose(found, [FRESH, FEW], LOAD).kept == (True, False)
    assert choose(found, [FEW, FRESH], LOAD).kept == (True, False)


def test_what_is_not_asked_for_decides_last() -> None:
    """Fresh enough: the fewest files. Few enough: the freshest. Nothing asked: the middle."""
    found = [given(10, 4_000), given(29, 500), given(58, 250), given(120, 125), given(3_600, 4)]
    assert choose(found, [FRESH], LOAD).chosen == found[1]
    assert choose(found, [FEW], LOAD).chosen == found[2]
    assert choose(found, [], LOAD).chosen in found[1:4]
    assert "middle" in choose(found, [], LOAD).why[0]


@pytest.mark.parametrize("asked_s", [3, 30, 299, 86_400])
def test_of_equal_settings_the_longest_interval_within_what_was_asked_is_taken(asked_s: int) -> None:
    """Records that came at once make as few files with any interval; those of tomorrow do not."""
    intervals = [1_000, 2_000, 5_000, 28_500, 30_000, 45_000, 300_000, 86_400_000]
    equal = [replace(given(0.5, 4), thresholds=Thresholds(10_000_000, 100_000, ms)) for ms in intervals]
    objective = Objective(Aim.FRESHNESS, asked_s)
    best = max(ms for ms in intervals if ms <= asked_s * 1000)
    for objectives in ([objective], [objective, FEW], [FEW, objective]):
        for found in (equal, equal[::-1]):
            assert choose(found, objectives, LOAD).chosen.thresholds.commit_interval_ms == best
    above = [one for one in equal if one.thresholds.commit_interval_ms > asked_s * 1000]
    if above:
        assert choose(above, [objective], LOAD).chosen == above[0]


@pytest.mark.parametrize(("partitions", "per_second"), [(1, 0.01), (4, 0.004), (2, 0.02)])
def test_rare_records_do_not_ask_for_the_shortest_interval(partitions: int, per_second: float) -> None:
    """From a load in which each record is a file of its own to the settings: what was asked for, and not a second."""
    load = steady(partitions, per_second)
    settings = [one for one in grid([FRESH]) if one.commit_records == 100_000 and one.commit_size_bytes == 10_000_000]
    choice = choose(sweep(Simulator(load, Durations()), settings), [FRESH, FEW], load)
    assert choice.kept == (True, True)
    assert 25_000 < choice.chosen.thresholds.commit_interval_ms <= 30_000


def test_another_percentile() -> None:
    """Half of the records within 30 s is less to ask than all of them."""
    found = [given(29, 500), given(58, 250)]
    assert choose(found, [replace(FRESH, of="p50")], LOAD).chosen == found[1]
    assert choose(found, [replace(FRESH, of="max")], LOAD).kept == (False,)


def test_file_sizes_are_about_right() -> None:
    """Of settings whose files are about 10 MB the freshest is taken; without any, the nearest."""
    found = [given(10, 100, 5e6), given(50, 20, 9e6), given(60, 18, 11e6), given(99, 3, 50e6)]
    assert choose(found, [LARGE], LOAD).chosen == found[1]
    small = choose(found[:1], [LARGE], LOAD)
    assert small.kept == (False,)
    assert any("to fill one of" in line for line in small.limits)


def test_piling_up_is_no_choice() -> None:
    """A setting that cannot keep up keeps no objective; where none can, that is what is said."""
    found = [given(1, 1, keeps_up=False), given(60, 60)]
    assert choose(found, [FRESH], LOAD).chosen == found[1]
    hopeless = choose(found[:1], [FRESH], LOAD)
    assert hopeless.kept == (False,)
    assert "pile up" in hopeless.limits[0]
    assert freshness_s(found[0]) == math.inf


def test_nothing_to_choose_from() -> None:
    """Without settings there is no choice."""
    with pytest.raises(ValueError, match="nothing"):
        choose([], [FRESH], LOAD)


def test_a_missed_objective_is_explained() -> None:
    """How near any settings come is said with figures."""
    found = [given(40, 4_000), given(3_600, 300)]
    assert_says(choose(found, [FRESH], LOAD).limits[0], "The freshest", "interval 40 s", "p99 40 s")
    assert_says(choose(found, [FEW], LOAD).limits[0], "4 topic-partitions", "their own files")


def test_the_smallest_topic_partition_is_named() -> None:
    """Forty records an hour are a file for each few of them, or a long wait: that is said of whom it concerns."""
    rare = PartitionLoad("orders", 7, Arrivals.steady(40 / 3600, 90_000), SIZES)
    load = Load((*steady(2, 50).partitions, rare))
    simulator = Simulator(load)
    found = sweep(simulator, [Thresholds(10_000_000, 100_000, ms) for ms in (10_000, 60_000, 600_000)])
    said = " ".join(choose(found, [FRESH], load).limits)
    assert_says(said, "The smallest topic-partition", "topic orders, topic-partition 7", "40 records an hour")


def test_a_sweep_simulates_only_what_may_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that are taken for those of higher thresholds are those, and most are taken so."""
    load = steady(3, 200)
    settings = [
        Thresholds(size, records, interval)
        for size in (100_000, 1_000_000, 50_000_000)
        for records in (1_000, 20_000, 1_000_000)
        for interval in (2_000, 60_000, 600_000)
    ]
    simulator, asked = Simulator(load), []
    watched = simulator.watched
    monkeypatch.setattr(simulator, "watched", lambda one: asked.append(one) or watched(one))
    told: list[tuple[int, int]] = []
    found = sweep(simulator, settings, lambda done, of: told.append((done, of)))
    assert len(asked) < len(settings) * 0.7
    assert (told[0], told[-1]) == ((0, 27), (27, 27))
    fresh = Simulator(load)
    assert found == [fresh.run(one) for one in settings]


def test_the_grid_has_what_is_asked_and_what_is_set() -> None:
    """Round settings within bounds, intervals below the freshness that is asked for, the size, and the present ones."""
    present = Thresholds(123_456, 777, 98_765)
    settings = grid([FRESH, LARGE], present)
    assert present in settings
    assert len(set(settings)) == len(settings)
    assert {28_000, 30_000, 15_000} <= {one.commit_interval_ms for one in settings}
    assert {8_000_000, 10_000_000, 12_500_000} <= {one.commit_size_bytes for one in settings}
    assert min(one.commit_interval_ms for one in grid([Objective(Aim.FRESHNESS, 0.001)])) == 1_000
    assert 300 < len(grid()) < 1_000


def test_an_objective_that_can_be_kept_is_kept() -> None:
    """From a load to the settings: thirty seconds of freshness with a simulated sink."""
    load = steady(6, 40)
    settings = [one for one in grid([FRESH]) if one.commit_records == 100_000 and one.commit_size_bytes == 10_000_000]
    choice = choose(sweep(Simulator(load, Durations()), settings), [FRESH], load)
    assert choice.kept == (True,)
    assert 25 < freshness_s(choice.chosen) <= 30
    assert 15_000 < choice.chosen.thresholds.commit_interval_ms < 30_000
    assert choice.chosen in choice.front
