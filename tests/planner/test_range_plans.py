"""What is left of a range comes again, and the time of its tries counts."""

import pytest

from parquet_sink.model.ranges import Accepted, Again, Attempt, PlannedRange, Tries, Trying
from parquet_sink.planner.range_plans import pending_retry
from parquet_sink.task.range_attempt import TransformRetry

RANGE = PlannedRange("orders", 0, 0, 10, "records")


def found(again: Again) -> Accepted:
    """Nothing of the range is accepted yet."""
    return Accepted("orders", 0, 0, 0, 10, "records", again)


def test_a_transforms_patience_ends_however_short_the_pauses() -> None:
    """What is done for a try takes longer than a pause of a millisecond; the first failure begins the time."""
    policy, planned, now_s, tries = TransformRetry(3_000, 1), RANGE, 100.0, 0
    while (again := policy.again(planned.tries)) is not None:
        taken_s, now_s = now_s, now_s + 0.5
        retry = pending_retry(planned, found(again), now_s, taken_s)
        assert retry is not None
        planned, tries = retry.now(now_s), tries + 1
        assert tries < 20
    assert tries == 7
    assert planned.tries.elapsed_s == pytest.approx(3.0)


def test_uploads_are_timed_where_they_are_made() -> None:
    """The time of a try is in its outcome already; after a start nothing is known of the last one."""
    of_upload = found(Again(Tries(1, 7.0), 2.0))
    of_transform = found(Again(Tries(2, 3.0, Trying.TRANSFORM), 2.0))
    planned = PlannedRange("orders", 0, 0, 10, "records", tries=Tries(1, 3.0, Trying.TRANSFORM))
    for begun, what, taken_s, elapsed_s in (
        (RANGE, of_upload, 90.0, 7.0),
        (planned, of_transform, None, 3.0),
        (planned, of_transform, 90.0, 13.0),
    ):
        retry = pending_retry(begun, what, 100.0, taken_s)
        assert retry is not None
        assert retry.planned.tries.elapsed_s == elapsed_s
        assert retry.due_s == 102.0


@pytest.mark.parametrize(("verdict", "repeated"), [("unknown", True), ("retriable", False)])
def test_an_upload_of_which_nothing_is_known_is_remembered(verdict: str, repeated: bool) -> None:
    """When other tries take the place of those at a file, the range is one of which files may be at the target."""
    uploads = Tries(1, 7.0, log=(Attempt(0, 1.0, verdict),))
    once = pending_retry(RANGE, found(Again(uploads, 2.0)), 100.0)
    assert once is not None
    assert not once.planned.repeated, "its first file tells itself"
    other = found(Again(Tries(1, 0.0, Trying.TRANSFORM), 2.0))
    twice = pending_retry(once.planned, other, 100.0)
    assert twice is not None
    assert twice.planned.repeated == repeated
    thrice = pending_retry(twice.planned, other, 100.0)
    assert thrice is not None
    assert thrice.planned.repeated == repeated
