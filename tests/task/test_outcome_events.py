"""What the outcome of a range tells: its files in order, then the range itself."""

from dataclasses import replace

import pytest

from parquet_sink.errors import failure_named
from parquet_sink.model.events import (
    FileAccepted,
    FileFailed,
    FileNotified,
    FilePassedOver,
    OffsetsPassedOver,
    RangeFailed,
    RangeFlushed,
    RangePostponed,
    RecordsSetAside,
    event_from_json,
)
from parquet_sink.model.ranges import Again, AttemptCount, LearnedSchema, LossCause, LostOffsets, PlannedRange, Tries
from parquet_sink.model.receipts import Failure, Notifying, Receipt
from parquet_sink.task.outcome import RangeOutcome, events_of

PLANNED = PlannedRange("orders", 3, 0, 100, "records")
REFUSED = failure_named("UploadRefused", "no")


def receipt(first: int, failure: Failure | None = None) -> Receipt:
    """Of a file with 10 records and 20 rows."""
    accepted_at = None if failure else first + 0.5
    about = ("sink", "orders", 3, f"f{first}", first, first + 9, first + 10)
    return Receipt(*about, 20, 10, 1_000, "records", accepted_at=accepted_at, failure=failure)


def test_a_whole_range_is_its_files_and_their_sums() -> None:
    """Each file at the time of its acceptance, the range when it ended."""
    outcome = RangeOutcome(PLANNED, 100, (receipt(0), receipt(10)), None, LearnedSchema(), ended_at_s=99.0, read=20)
    assert list(events_of("sink", outcome)) == [
        FileAccepted("sink", 0.5, "orders", 3, receipt(0)),
        FileAccepted("sink", 10.5, "orders", 3, receipt(10)),
        RangeFlushed(
            "sink", 99.0, "orders", 3, 0, 100, files=2, records=20, rows=40, size_bytes=2_000, read=20, gaps=80
        ),
    ]


@pytest.mark.parametrize("cause", [None, "503"])
def test_a_notice_that_a_task_posted_is_told_after_its_file(cause: str | None) -> None:
    """Taken or given up, and the same whenever the outcome is told again."""
    told = replace(receipt(0), notice=Notifying("id-1", cause))
    outcome = RangeOutcome(PLANNED, 100, (told, receipt(10)), None, LearnedSchema(), ended_at_s=99.0, read=20)
    events = list(events_of("sink", outcome))
    assert [type(one) for one in events] == [FileAccepted, FileNotified, FileAccepted, RangeFlushed]
    assert events[1] == FileNotified("sink", 0.5, "id-1", cause)
    assert [event_from_json(one.to_json()) for one in events] == events == list(events_of("sink", outcome))


def test_a_range_without_a_row_is_flushed_all_the_same() -> None:
    """Tombstones make no file, and the range is done."""
    outcome = RangeOutcome(PLANNED, 100, (), None, LearnedSchema(), ended_at_s=99.0, read=95)
    assert list(events_of("sink", outcome)) == [RangeFlushed("sink", 99.0, "orders", 3, 0, 100, 0, 0, 0, 0, 95, 5)]


def test_diverted_records_are_reported_before_the_range() -> None:
    """Also of a range that did not end well: what counts counts."""
    stages = {"VALUE_CONVERTER": 2, "TASK_PUT": 1}
    told = RecordsSetAside(
        "sink", 99.0, "orders", 3, 3, 4, 9, stages, "it is not JSON", "dead letters in topic d", True
    )
    whole = RangeOutcome(PLANNED, 100, (), None, LearnedSchema(), ended_at_s=99.0, diverted=told)
    assert next(iter(events_of("sink", whole))) == told
    assert event_from_json(told.to_json()) == told
    failed = RangeOutcome(PLANNED, 10, (receipt(0),), REFUSED, LearnedSchema(), ended_at_s=99.0, diverted=told)
    assert [type(one) for one in events_of("sink", failed)] == [FileAccepted, RecordsSetAside, RangeFailed]


def test_a_file_that_was_passed_over_is_told_when_its_records_are_kept() -> None:
    """It is no acceptance and no failure; where its records could not be kept, the range's failure says so."""
    refused = replace(receipt(0), passed_over="the target refused it")
    kept = RangeOutcome(PLANNED, 100, (refused, receipt(10)), None, LearnedSchema(), ended_at_s=99.0, read=100)
    first, second, flushed = events_of("sink", kept)
    assert first == FilePassedOver("sink", 0.5, "orders", 3, refused)
    assert event_from_json(first.to_json()) == first
    assert (type(second), flushed) == (
        FileAccepted,
        RangeFlushed("sink", 99.0, "orders", 3, 0, 100, 1, 10, 20, 1_000, 100),
    )
    lost = RangeOutcome(PLANNED, 0, (refused, receipt(10)), REFUSED, LearnedSchema(), ended_at_s=99.0)
    assert [type(one) for one in events_of("sink", lost)] == [FileAccepted, RangeFailed]


def test_a_range_that_is_tried_again_says_when() -> None:
    """With the attempts so far, how far it got, and what came of those attempts that were made this time."""
    answers = (AttemptCount("unknown", 503, 2), AttemptCount("retriable", None, 1))
    waiting = replace(receipt(10, REFUSED), answers=answers)
    again = Again(Tries(3, 12.5), 8.0)
    outcome = RangeOutcome(PLANNED, 10, (receipt(0),), None, LearnedSchema(), again, 99.0, waiting=waiting)
    (postponed,) = list(events_of("sink", outcome))[1:]
    assert postponed == RangePostponed(
        *("sink", 99.0, "orders", 3, 0, 100, 10), attempts=3, elapsed_s=12.5, wait_s=8.0, answers=answers
    )
    assert event_from_json(postponed.to_json()) == postponed


def test_what_is_lost_is_told_once_with_the_range_that_passed_over_it() -> None:
    """Not while the range comes again from before it, since it meets the same loss then; what is lost is no gap."""
    lost = (LostOffsets(0, 30, LossCause.RETENTION),)
    whole = RangeOutcome(PLANNED, 100, (), None, LearnedSchema(), ended_at_s=99.0, read=60, lost=lost)
    gone, flushed = events_of("sink", whole)
    assert gone == OffsetsPassedOver("sink", 99.0, "orders", 3, 0, 30, LossCause.RETENTION)
    assert event_from_json(gone.to_json()) == gone
    assert isinstance(flushed, RangeFlushed)
    assert flushed.gaps == 10
    again = replace(whole, accepted_until=0, again=Again(Tries(3, 12.5), 8.0))
    assert [type(one) for one in events_of("sink", again)] == [RangePostponed]
    failed = replace(whole, accepted_until=0, failure=REFUSED)
    assert [type(one) for one in events_of("sink", failed)] == [RangeFailed]


@pytest.mark.parametrize(("until", "told"), [(30, 30), (50, 30), (20, 20)])
def test_a_loss_below_what_is_accepted_is_told_when_the_rest_comes_again(until: int, told: int) -> None:
    """Whoever reads the range again takes everything below for delivered, and says nothing of it."""
    lost = (LostOffsets(0, 30, LossCause.RETENTION), LostOffsets(60, 70, LossCause.RETENTION))
    outcome = RangeOutcome(PLANNED, until, (), None, LearnedSchema(), Again(Tries(3, 12.5), 8.0), 99.0, lost=lost)
    for one in (outcome, replace(outcome, again=None, failure=REFUSED)):
        gone, _ = events_of("sink", one)
        assert gone == OffsetsPassedOver("sink", 99.0, "orders", 3, 0, told, LossCause.RETENTION)


def test_a_range_that_failed_says_why() -> None:
    """The file that was refused, and the failure that ends the query."""
    outcome = RangeOutcome(PLANNED, 0, (receipt(0, REFUSED),), REFUSED, LearnedSchema(), ended_at_s=99.0)
    assert list(events_of("sink", outcome)) == [
        FileFailed("sink", 99.0, "orders", 3, receipt(0, REFUSED)),
        RangeFailed("sink", 99.0, "orders", 3, 0, 100, 0, REFUSED),
    ]
