"""What outcomes of ranges leave in the history."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink import __version__
from parquet_sink.errors import UploadExhausted, UploadPostponed, UploadRefused, failure_named
from parquet_sink.history.records import Origin, Sender, UploadOutcome
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import SqliteHistory, read_history
from parquet_sink.history.writer import HistoryWriter
from parquet_sink.model.ranges import Again, Attempt, LearnedSchema, PlannedRange, Tries
from parquet_sink.model.receipts import Failure, Receipt
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.task.outcome import RangeOutcome, record_outcomes, record_uploads, sender_of
from tests.factories import settings

SENDER = Sender("T", "https://push.example", "recipe", "1.0", Origin.RUN)
KNOWN = LearnedSchema(b"schema", 1.5, 3.0)
PLANNED = PlannedRange("orders", 3, 0, 100, "interval", topic_id="id", known=KNOWN)
REFUSED = Attempt(1, 0.5, "refused", 422, "no")
UNKNOWN = Attempt(1, 0.5, "unknown", None, "cut off")


def receipt(first: int, **changes: object) -> Receipt:
    """Of a file with ten records."""
    about = ("sink", "orders", 3, f"f{first}", first, first + 9)
    counts = {"next_offset": first + 10, "rows": 20, "records": 10, "size_bytes": 1_000, "reason": "records"}
    given = counts | {"accepted_at": 5.25, "seconds": {"write": 0.5, "upload": 1.5}, "oldest_ms": 1_250, "attempts": 1}
    return Receipt(*about, **{**given, **changes})  # type: ignore[arg-type]


def failed(first: int, failure: Failure, tried: tuple[Attempt, ...]) -> Receipt:
    """One that was not accepted."""
    return receipt(first, failure=failure, tried=tried, accepted_at=None, next_offset=first)


def kept(folder: Path, *outcomes: RangeOutcome) -> SqliteHistory:
    """The history after these."""
    writer = HistoryWriter("sink", folder / "history.db", HistorySettings(), now=lambda: 9.0)
    with closing(writer):
        record_outcomes(writer, SENDER, outcomes)
    return read_history(folder / "history.db")


def test_a_file_and_its_range_are_kept(tmp_path: Path) -> None:
    """With times in milliseconds, the connector's table where the topic has none, and what was known at first."""
    whole = RangeOutcome(PLANNED, 100, (receipt(0), receipt(10, table="U")), None, LearnedSchema(), ended_at_s=99.0)
    with closing(kept(tmp_path, whole)) as history:
        first, second = history.files()
        (span,) = history.ranges()
    assert (first.table, second.table) == ("T", "U")
    assert (first.accepted_ms, first.freshness_ms, first.upload_s, first.write_s) == (5_250, 4_000, 1.5, 0.5)
    assert (first.topic_id, first.target, first.origin) == ("id", "https://push.example", "run")
    assert (span.known, span.recipe, span.version, span.at_ms) == (KNOWN, "recipe", "1.0", 99_000)
    assert span.planned() == PLANNED


@pytest.mark.parametrize(
    ("failure", "tried", "outcome"),
    [
        (UploadRefused("no", 422).failure(), (UNKNOWN, REFUSED), UploadOutcome.REFUSED),
        (UploadExhausted("no", 503).failure(), (REFUSED, UNKNOWN), UploadOutcome.EXHAUSTED),
        (failure_named("StorageFailed", "no"), (), UploadOutcome.FAILED),
    ],
)
def test_what_was_not_accepted_is_kept(
    tmp_path: Path, failure: Failure, tried: tuple[Attempt, ...], outcome: UploadOutcome
) -> None:
    """When it was known, why, and after which attempts; a range of which nothing is done is not a range yet."""
    ended = RangeOutcome(PLANNED, 0, (failed(0, failure, tried),), failure, LearnedSchema(), ended_at_s=99.0)
    with closing(kept(tmp_path, ended)) as history:
        (one,) = history.files()
        assert list(history.ranges()) == []
    cause = tried[-1].cause if tried else failure.message
    assert (one.outcome, one.cause, one.tried, one.at_ms) == (outcome, cause, tried, 99_000)
    assert (one.accepted_ms, one.freshness_ms) == (None, None)


def test_a_file_that_waits_is_kept_until_it_is_sent(tmp_path: Path) -> None:
    """While it waits it is found with its attempts; then what came of it stands there alone."""
    again = Again(Tries(1, 2.0, log=(UNKNOWN,)), 60.0)
    postponed = UploadPostponed("later", None, again).failure()
    waiting = failed(10, postponed, (UNKNOWN,))
    part = RangeOutcome(PLANNED, 10, (receipt(0),), None, LearnedSchema(), again, 99.0, waiting=waiting)
    with closing(kept(tmp_path, part)) as history:
        assert [(one.first_offset, one.outcome) for one in history.files()] == [(0, "accepted"), (10, "waiting")]
        assert [one.end for one in history.ranges()] == [100]
    done = receipt(10, accepted_at=150.0, tried=(UNKNOWN, replace(UNKNOWN, verdict="accepted")), attempts=2)
    rest = RangeOutcome(replace(PLANNED, accepted=10), 100, (done,), None, LearnedSchema(), ended_at_s=160.0)
    with closing(kept(tmp_path, rest)) as history:
        found = [(one.first_offset, one.outcome, len(one.tried)) for one in history.files()]
        assert found == [(0, "accepted", 0), (10, "accepted", 2)]
        assert len(list(history.ranges())) == 1, "it is the same range"


def test_a_file_that_was_passed_over_is_kept_once_its_records_are(tmp_path: Path) -> None:
    """Else it comes again."""
    passed = receipt(10, accepted_at=None, passed_over="it said no", tried=(REFUSED,))
    for until, found in ((10, ["accepted"]), (100, ["accepted", "passed_over"])):
        outcome = RangeOutcome(PLANNED, until, (receipt(0), passed), None, LearnedSchema(), ended_at_s=99.0)
        with closing(kept(tmp_path, outcome)) as history:
            assert [str(one.outcome) for one in history.files()] == found


def test_uploads_of_no_range_leave_none(tmp_path: Path) -> None:
    """Parked records that are replayed are not what Kafka has between their first and last offset."""
    with closing(HistoryWriter("sink", tmp_path / "history.db", HistorySettings(), now=lambda: 9.0)) as writer:
        record_uploads(
            writer, replace(SENDER, origin=Origin.PARKED), [RangeOutcome(PLANNED, 100, (receipt(0),), None, KNOWN)]
        )
    with closing(read_history(tmp_path / "history.db")) as history:
        assert [one.origin for one in history.files()] == ["parked replay"]
        assert list(history.ranges()) == []


def test_the_sender_is_that_of_the_settings() -> None:
    """Address, table, version, and what files depend on; of a folder its path."""
    given = settings("orders")
    sender = sender_of(given)
    assert (sender.recipe, sender.version, sender.table) == (given.fingerprint, __version__, given.target.target_table)
    assert sender_of(replace(given, target=DirectorySettings("/data", "T"))).target == "directory:/data"
