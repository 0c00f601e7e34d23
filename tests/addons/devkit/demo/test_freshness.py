"""Percentiles of the demo's freshness."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.devkit.demo.freshness import Freshness, freshness, percentile
from parquet_sink.addons.devkit.demo.read_back import ArrivedFile, waits_ms


def test_percentiles_are_nearest_ranks() -> None:
    """Of 1 to 100 the p-th percentile is p."""
    waits = [1_000 * number for number in range(100, 0, -1)]
    assert freshness(waits) == Freshness(records=100, p50_s=50, p90_s=90, p99_s=99, max_s=100)


def test_one_record_is_every_percentile() -> None:
    """A single wait is the median and the maximum."""
    assert freshness([1_500]) == Freshness(1, 1.5, 1.5, 1.5, 1.5)


def test_no_records_have_no_freshness() -> None:
    """There is nothing to say, and no figure is made up."""
    assert freshness([]) is None
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_is_a_value_that_the_share_does_not_exceed(values: list[float], share: float) -> None:
    """At least that share is at or below it."""
    ordered = sorted(values)
    found = percentile(ordered, share)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= share * len(ordered)


def test_waits_go_from_each_records_timestamp_to_the_acceptance_of_its_file() -> None:
    """Every row counts by its own timestamp, within the span asked for."""
    file = ArrivedFile("f", 10, 5_000, "upserted", [0, 0, 0], [0, 1, 2], [1_000, 2_000, 4_900])
    assert waits_ms([file]) == [4_000, 3_000, 100]
    assert waits_ms([file], since_ms=2_000) == [3_000, 100]
    assert waits_ms([file], before_ms=2_000) == [4_000]
