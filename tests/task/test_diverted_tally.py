"""Diverted records are counted as far as the range got, whatever order it came in."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.model.events import RecordsSetAside
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.task.range_attempt import DivertedTally
from tests.factories import settings

SINK = settings(Path("d"), "sink")
ABOUT = ("sink", 9.0, "orders", 3)
PLACE = SINK.diverted_to


def rejected(offset: int, stage: Stage = Stage.VALUE_CONVERTER) -> Rejected:
    """A record whose reason names its offset."""
    return Rejected("orders", 3, offset, stage, f"reason {offset}")


def test_what_is_below_counts() -> None:
    """By stage in Kafka Connect's names, the most frequent first, with the first one's reason."""
    tally = DivertedTally(SINK)
    assert tally.below(100, 9.0) is None
    for one in (rejected(5), rejected(9, Stage.SHAPE), rejected(7), rejected(3, Stage.TASK_PUT), rejected(20)):
        tally.add(one)
    some, every = {"VALUE_CONVERTER": 2, "TASK_PUT": 2}, {"VALUE_CONVERTER": 3, "TASK_PUT": 2}
    assert tally.below(3, 9.0) is None
    assert tally.below(4, 9.0) == RecordsSetAside(*ABOUT, 1, 3, 3, {"TASK_PUT": 1}, "reason 3", PLACE)
    assert tally.below(10, 9.0) == RecordsSetAside(*ABOUT, 4, 3, 9, some, "reason 3", PLACE)
    assert tally.below(10**9, 9.0) == RecordsSetAside(*ABOUT, 5, 3, 20, every, "reason 3", PLACE)


@given(st.dictionaries(st.integers(0, 50), st.sampled_from(Stage)), st.integers(0, 60))
def test_it_is_the_count_of_a_list(given_: dict[int, Stage], below: int) -> None:
    """Against the plain form."""
    tally = DivertedTally(SINK)
    for offset, stage in given_.items():
        tally.add(rejected(offset, stage))
    kept = sorted(offset for offset in given_ if offset < below)
    found = tally.below(below, 9.0)
    if not kept:
        assert found is None
        return
    assert found is not None
    assert (found.count, found.first, found.last, found.reason) == (len(kept), kept[0], kept[-1], f"reason {kept[0]}")
