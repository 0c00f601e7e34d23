"""How topic-partitions stand."""

import json
from dataclasses import asdict, replace

from parquet_sink.model.ranges import MOST_LOGGED, Attempt, PartitionProgress, PlannedRange, Tries, logged


def test_lag_is_never_negative() -> None:
    """A topic-partition that was made anew may end below where we stand."""
    assert PartitionProgress("orders", 0, 3, 10, None).lag == 7
    assert PartitionProgress("orders", 0, 10, 3, None).lag == 0


FIRST = Attempt(1, 0.5, "retriable", 503, "busy")


def test_of_many_attempts_the_first_and_the_last_stay() -> None:
    """The log is bounded, in order, and has what was noted last."""
    log: tuple[Attempt, ...] = ()
    for at_ms in range(1, 100):
        log = logged(log, replace(FIRST, at_ms=at_ms))
    assert [one.at_ms for one in log] == [1, *range(101 - MOST_LOGGED, 100)]


def test_attempts_cross_with_a_range() -> None:
    """A range that is tried again carries what came of each attempt; one of before this was there has none."""
    tries = Tries(2, 1.5, log=(FIRST, replace(FIRST, status=None)))
    planned = PlannedRange("orders", 0, 0, 9, "records", tries=tries)
    assert PlannedRange.from_json(planned.to_json()) == planned
    former = {name: value for name, value in asdict(tries).items() if name != "log"}
    assert Tries.from_dict(json.loads(json.dumps(former))) == Tries(2, 1.5)
