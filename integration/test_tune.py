"""What the simulation predicts is what the sink does."""

import os
from collections.abc import Sequence

import pytest

from integration.bench.figures import Accepted
from integration.tune.compare import TOLERANCE, Compared, Figures, load_of, measured, table
from integration.tune.loads import GROUPS, MeasuredLoad, steady
from integration.tune.run import compare, stand
from parquet_sink.addons.tune.model import Sizes, Thresholds
from parquet_sink.addons.tune.outcome import Window
from tests.messages import saying

SIZES = Sizes.proportional(20)
WINDOW = Window(10_000, 20_000)
"""From 1010 to 1020 where the simulation begins at 1000 (epoch seconds)."""


TABLE_LINE = "| idle | 7 | 1.00 / 1.00 | 2.00 / 2.00 | 3.00 / 4.00 | 9.00 / 4.00 | 110 / 100 | 25% |"
"""In Markdown, for the documentation."""


def test_measured_figures_are_those_of_the_window() -> None:
    """Records outside of it count for nothing, and their share of a file for no file."""
    stamps = {(0, offset): 1009.0 + offset for offset in range(4)}
    files = [Accepted(0, 0, 1, 2, 100, 1012.0), Accepted(0, 2, 3, 2, 100, 1014.0)]
    found = measured(stamps, files, 1000, WINDOW)
    assert found == Figures(2.0, 3.0, 3.0, 3.0, pytest.approx(1.5 * 360))
    with pytest.raises(ValueError, match=saying("1 records", "no accepted file", "(1, 7)")):
        measured(stamps | {(1, 7): 1015.0}, files, 1000, WINDOW)


def test_a_load_is_simulated_as_it_arrived() -> None:
    """Each topic-partition's records at their times from the base on, and nothing again after them."""
    one = MeasuredLoad("steady", 2, Thresholds(10**7, 10, 1_000), steady)
    load = load_of(one, {(0, 1): 1002.0, (0, 2): 1003.0, (1, 0): 1001.5}, 1000, 60, SIZES)
    assert [load.partitions[0].arrivals.arrived_ms(number) for number in (0, 1)] == pytest.approx([2_000, 3_000])
    assert load.partitions[1].arrivals.count(1_500) == 1
    assert load.partitions[1].arrivals.count(500_000) == 1


def test_the_table_says_how_far_off() -> None:
    """Predicted beside measured, and the furthest of the figures that count."""
    off = Compared("idle", Figures(1, 2, 3, 9, 110), Figures(1, 2, 4, 4, 100), 7)
    assert off.worst == pytest.approx(0.25)
    assert TABLE_LINE in table([off])


@pytest.mark.slow
@pytest.mark.parametrize("loads", GROUPS, ids=lambda loads: "_".join(one.name for one in loads))
def test_predicted_is_measured(loads: Sequence[MeasuredLoad]) -> None:
    """Loads on the real sink: freshness percentiles and files an hour are within TOLERANCE of what is predicted.

    Where others keep the cores busy, a single micro-batch may take any time: there it is thrice TOLERANCE.
    """
    with stand() as ready:
        compared, _, batches = compare(ready, 60.0, loads)
        quiet = os.getloadavg()[0] < 1.5 * (os.cpu_count() or 1)
    print(table(compared))
    assert batches
    assert [one.name for one in compared] == [one.name for one in loads]
    for one in compared:
        assert one.records > 0
        assert one.worst <= (TOLERANCE if quiet else 3 * TOLERANCE), one
