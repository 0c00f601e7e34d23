"""Figures of uploads, hour by hour."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.history.records import Origin, UploadOutcome
from parquet_sink.history.store import HourSummary, Percentiles
from parquet_sink.history.summary import percentiles, summarised
from tests.history.uploads import HOUR_MS, upload


def test_hours_are_summed_up() -> None:
    """Each by itself, at its bounds; of files that were not accepted only how many, and their attempts."""
    records = [
        upload(0, 9, at_ms=HOUR_MS),
        upload(10, 29, at_ms=2 * HOUR_MS - 1, reason="interval", repeat=1, upload_s=4.0, oldest_ms=None),
        upload(30, 39, at_ms=2 * HOUR_MS - 1, outcome=UploadOutcome.REFUSED),
        upload(30, 39, at_ms=2 * HOUR_MS, outcome=UploadOutcome.WAITING),
    ]
    four, waits = Percentiles(4_000, 4_000, 4_000, 4_000), Percentiles(2.25, 4.0, 4.0, 4.0)
    assert summarised(reversed(records)) == [
        HourSummary(HOUR_MS, 2, 1, 30, 30, 2_468, 6, {"records": 1, "interval": 1}, {"refused": 1}, four, waits),
        HourSummary(2 * HOUR_MS, 0, 0, 0, 0, 0, 2, {}, {"waiting": 1}, None, None),
    ]


@pytest.mark.parametrize("again", [{"repeat": 2}, {"origin": Origin.REPLAY}, {"origin": Origin.PARKED}])
def test_what_is_sent_again_is_not_stale(again: dict[str, object]) -> None:
    """A replay sends old records; that says nothing of how fresh the target is kept."""
    (hour,) = summarised([upload(0, 9), upload(10, 19, oldest_ms=1, **again)])
    assert (hour.files, hour.freshness_ms) == (2, Percentiles(4_000, 4_000, 4_000, 4_000))


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, None), (1, (1, 1, 1, 1)), (2, (1, 2, 2, 2)), (100, (50, 95, 99, 100)), (1_000, (500, 950, 990, 1_000))],
)
def test_percentiles_are_nearest_ranks(count: int, expected: tuple[int, ...] | None) -> None:
    """The smallest value that so many of a hundred do not exceed."""
    assert percentiles(range(count, 0, -1)) == (None if expected is None else Percentiles(*expected))


@given(st.lists(st.floats(0, 1e9), min_size=1))
def test_percentiles_are_values(values: list[float]) -> None:
    """In order, and each of them was there."""
    found = percentiles(values)
    assert found is not None
    ordered = [found.p50, found.p95, found.p99, found.most]
    assert ordered == sorted(ordered)
    assert set(ordered) <= set(values)
