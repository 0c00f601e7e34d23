"""How topic-partitions stand, from what the planner saw and what was accepted since."""

import pytest

from parquet_sink.model.ranges import PartitionProgress
from parquet_sink.worker.loop.totals import FileTotals


@pytest.mark.parametrize(
    ("accepted", "lag", "oldest_s"),
    [({}, 100, 60.0), ({("t", 0): 10}, 100, 60.0), ({("t", 0): 11}, 99, 60.0), ({("t", 0): 110}, 0, None)],
)
def test_what_is_accepted_in_part_still_waits(
    accepted: dict[tuple[str, int], int], lag: int, oldest_s: float | None
) -> None:
    """It has an age as long as it has a lag, also when nobody looks again, because the connector failed."""
    seen = [PartitionProgress("t", 0, 10, 110, 40_000)]
    [view] = FileTotals(0.0).partitions(seen, accepted, 100.0)
    assert (view.lag, view.oldest_s) == (lag, oldest_s)
