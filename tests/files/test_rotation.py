"""When a file is closed, and how large its next row group is planned."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.files.rotation import Fill, GroupEnd, GroupLimits, Limits, Reason, next_group, should_rotate

LIMITS = Limits(size_bytes=1_000_000, records=100)


@pytest.mark.parametrize(
    ("fill", "same_schema", "reason"),
    [
        (Fill(0, 0), False, None),
        (Fill(99, 0), True, None),
        (Fill(100, 0), True, Reason.RECORDS),
        (Fill(1, 949_999), True, None),
        (Fill(1, 950_000), True, Reason.SIZE),
        (Fill(1, 0), False, Reason.SCHEMA),
    ],
)
def test_should_rotate(fill: Fill, same_schema: bool, reason: Reason | None) -> None:
    """A file rotates on records, on nearly its size, or on a schema, and never while it is empty."""
    assert should_rotate(fill, LIMITS, same_schema=same_schema) == reason


def planned(fill: Fill, group: GroupLimits, *, parquet: float | None = 10.0) -> GroupEnd:
    """The end of the next group at LIMITS."""
    return next_group(fill, LIMITS, group, footer_bytes=0, parquet_bytes_per_row=parquet)


def test_group_fills_the_file() -> None:
    """Without a row-group size, a group is planned to bring the file to its size."""
    assert planned(Fill(0, 0), GroupLimits(10**9, 10**9)).rows == 100_000
    assert planned(Fill(1, 400_000), GroupLimits(10**9, 10**9)).rows == 60_000


def test_group_is_bounded_by_memory_and_rows() -> None:
    """Memory and row bounds hold however large the file may be."""
    assert planned(Fill(0, 0), GroupLimits(memory_bytes=100_000, rows=10**9)) == GroupEnd(100_000, 100_000)
    assert planned(Fill(0, 0), GroupLimits(memory_bytes=10**9, rows=777)) == GroupEnd(777, 10**9)


def test_group_has_the_configured_size() -> None:
    """A configured row-group size is Parquet bytes, not bytes in memory."""
    assert planned(Fill(0, 0), GroupLimits(10**9, 10**9, size_bytes=10_240)) == GroupEnd(1_024, 10**9)


def test_unknown_size_is_taken_from_memory() -> None:
    """Without an estimate the first group ends with as many bytes in memory as the file may have, or the group."""
    assert planned(Fill(0, 0), GroupLimits(10**9, 777), parquet=None) == GroupEnd(777, 1_000_000)
    assert planned(Fill(0, 0), GroupLimits(10**9, 777, size_bytes=500), parquet=None) == GroupEnd(777, 500)
    assert planned(Fill(0, 0), GroupLimits(100, 777, size_bytes=500), parquet=None) == GroupEnd(777, 100)


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.none() | st.floats(0, 1e9), st.integers(1, 10**9))
def test_a_group_always_has_rows(size: int, footer: int, parquet: float | None, memory: int) -> None:
    """Whatever the estimates, at least one row is planned and never more than the bounds on rows and memory."""
    end = next_group(
        Fill(1, size), LIMITS, GroupLimits(memory, 5_000), footer_bytes=footer, parquet_bytes_per_row=parquet
    )
    assert 1 <= end.rows <= 5_000
    assert 0 < end.memory_bytes <= memory
