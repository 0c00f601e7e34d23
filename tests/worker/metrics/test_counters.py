"""What each event adds to the figures."""

from dataclasses import replace

import pytest

from parquet_sink.errors import failure_named
from parquet_sink.model.events import (
    ConnectorFailed,
    ConnectorRestarting,
    ConnectorRunning,
    ConnectorStarting,
    ConnectorWaiting,
    Event,
    EventsDropped,
    FileAccepted,
    FileArchived,
    FileFailed,
    FileNotified,
    FilePassedOver,
    FlushIntervalExceeded,
    OffsetCommitted,
    OffsetsPassedOver,
    RangeFlushed,
    RangePostponed,
    RecordsSetAside,
)
from parquet_sink.model.ranges import AttemptCount, LossCause, Trying
from parquet_sink.model.receipts import Archiving
from parquet_sink.worker.metrics.labels import OTHER, TopicLabels
from tests.worker.metrics.figures import ACCEPTED, RECEIPT, Page, World, connector

ABOUT = ("orders", 1.0, "t", 0)


def after(*events: Event) -> Page:
    """The figures after these events."""
    world = World(connector())
    for event in events:
        world.metrics.on_event(event)
    return world.page()


def test_an_accepted_file_counts_in_every_unit() -> None:
    """Records, rows, bytes and the file itself with its reason; sizes and times; how old its oldest record was."""
    page = after(ACCEPTED, replace(ACCEPTED, receipt=replace(RECEIPT, reason="records", records=5)))
    of = {"connector": "orders", "topic": "t"}
    assert page.get("parquet_sink_records_total", **of) == 15
    assert page.get("parquet_sink_rows_total", **of) == 60
    assert page.get("parquet_sink_uploaded_bytes_total", **of) == 10_000_000
    assert page.get("parquet_sink_files_total", connector="orders", reason="interval") == 1
    assert page.get("parquet_sink_files_total", connector="orders", reason="records") == 1
    assert page.get("parquet_sink_uploads_total", connector="orders", outcome="accepted") == 2
    assert page.get("parquet_sink_freshness_seconds_bucket", connector="orders", le="10.0") == 2
    assert page.get("parquet_sink_freshness_seconds_bucket", connector="orders", le="5.0") == 0
    assert page.get("parquet_sink_freshness_seconds_sum", connector="orders") == 18
    assert page.get("parquet_sink_upload_seconds_bucket", connector="orders", le="1.0") == 2
    assert page.get("parquet_sink_write_seconds_sum", connector="orders") == pytest.approx(0.4)
    assert page.get("parquet_sink_file_bytes_bucket", connector="orders", le="4e+06") == 0
    assert page.get("parquet_sink_file_bytes_bucket", connector="orders", le="1.6e+07") == 2


def test_ranges_that_waited_too_long_are_counted() -> None:
    """Of each micro-batch; the end of it adds none."""
    late = FlushIntervalExceeded("orders", 1.0, 300, 27.0, 3.0, 300, 26.0)
    page = after(late, replace(late, at_s=30.0, partitions=12), replace(late, at_s=60.0, partitions=0))
    assert page.get("parquet_sink_flush_interval_exceeded_total", connector="orders") == 312


def test_freshness_is_of_files_that_know_it() -> None:
    """Records without a timestamp have no age, and a producer's clock that is ahead makes none below zero."""
    unknown, ahead = replace(RECEIPT, oldest_ms=None), replace(RECEIPT, oldest_ms=105_000)
    page = after(replace(ACCEPTED, receipt=unknown), replace(ACCEPTED, receipt=ahead))
    assert page.get("parquet_sink_freshness_seconds_count", connector="orders") == 1
    assert page.get("parquet_sink_freshness_seconds_sum", connector="orders") == 0


@pytest.mark.parametrize(
    ("attempts", "made", "retries"),
    [(1, 1, 0), (3, 3, 2), (5, 2, 2), (0, 0, 0)],
    ids=["at once", "in this task", "with an earlier task", "none"],
)
def test_retries_are_attempts_after_the_first_one(attempts: int, made: int, retries: int) -> None:
    """However many tasks they took, each attempt is counted once, and the first one is none."""
    refused = AttemptCount("retriable", 503, made - 1)
    answers = (refused, AttemptCount("accepted", 200, 1))[-made:] if made else ()
    page = after(replace(ACCEPTED, receipt=replace(RECEIPT, attempts=attempts, answers=answers)))
    assert page.get("parquet_sink_upload_retries_total", connector="orders") == retries


def test_uploads_are_counted_where_they_happened() -> None:
    """Those of a range that is tried again at once; those of a file that is given up when that is told."""
    busy = (AttemptCount("unknown", 503, 2), AttemptCount("retriable", None, 1))
    no = failure_named("UploadRefused", "no")
    given_up = replace(RECEIPT, failure=no, attempts=4, answers=(AttemptCount("refused", 403, 1),))
    page = after(
        RangePostponed(*ABOUT, 0, 100, 0, attempts=3, elapsed_s=1, wait_s=8, answers=busy),
        FileFailed(*ABOUT, given_up),
        FilePassedOver(*ABOUT, replace(given_up, failure=None, passed_over="no", attempts=1)),
    )
    assert page.all("parquet_sink_uploads_total", "outcome") == {
        "unknown": 2, "retriable": 1, "refused": 2, "accepted": 0,
    }  # fmt: skip
    assert page.all("parquet_sink_upload_answers_total", "status") == {"503": 2, "": 1, "403": 2}
    assert page.get("parquet_sink_upload_retries_total", connector="orders") == 2 + 1
    assert page.all("parquet_sink_refused_files_total", "fate") == {"failed": 1, "passed_over": 1}
    assert page.all("parquet_sink_range_retries_total", "trying") == {"upload": 1, "transform": 0, "put": 0}


def test_files_are_counted_by_what_became_of_them_at_the_archive() -> None:
    """Once each, whether accepting them waited for that or it came behind; without an archive it stays 0."""
    there, full = Archiving("directory:/a", 1), Archiving("directory:/a", 1, "full")
    page = after(
        FileAccepted(*ABOUT, RECEIPT),
        FileAccepted(*ABOUT, replace(RECEIPT, archive=there)),
        FileArchived("orders", 1.0, "f", there),
        FileArchived("orders", 1.0, "g", full),
    )
    assert page.all("parquet_sink_archived_files_total", "outcome") == {"archived": 2, "failed": 1}
    assert after(FileAccepted(*ABOUT, RECEIPT)).all("parquet_sink_archived_files_total", "outcome") == {
        "archived": 0, "failed": 0,
    }  # fmt: skip


def test_notices_are_counted_by_what_became_of_them_at_the_webhook() -> None:
    """What was given up is told apart from what was taken."""
    page = after(
        FileNotified("orders", 1.0, "a"), FileNotified("orders", 1.0, "b", "full"), FileNotified("orders", 1.0, "c")
    )
    assert page.all("parquet_sink_notices_total", "outcome") == {"taken": 2, "given_up": 1}


def test_a_transform_that_is_tried_again_is_no_upload() -> None:
    """Its attempts are none at the target."""
    page = after(RangePostponed(*ABOUT, 0, 100, 0, 3, 1.0, 8.0, Trying.TRANSFORM))
    assert page.all("parquet_sink_range_retries_total", "trying") == {"upload": 0, "transform": 1, "put": 0}
    assert set(page.all("parquet_sink_uploads_total", "outcome").values()) == {0}
    assert page.get("parquet_sink_upload_retries_total", connector="orders") == 0


def test_records_set_aside_count_by_stage_and_place() -> None:
    """Dead letters and parked records apart."""
    letters = RecordsSetAside(*ABOUT, 3, 0, 9, {"VALUE_CONVERTER": 2, "TASK_PUT": 1}, "no", "in d", dead_letters=True)
    page = after(letters, replace(letters, count=4, stages={"TRANSFORMATION": 4}, dead_letters=False))
    assert page.all("parquet_sink_rejects_total", "stage") == {
        "KEY_CONVERTER": 0, "VALUE_CONVERTER": 2, "HEADER_CONVERTER": 0, "TRANSFORMATION": 4, "TASK_PUT": 1,
    }  # fmt: skip
    assert page.get("parquet_sink_dead_letters_total", connector="orders") == 3
    assert page.get("parquet_sink_parked_records_total", connector="orders") == 4


def test_gaps_and_losses_are_told_apart() -> None:
    """A gap had no record; a loss had some, even where nobody knows how many."""
    page = after(
        RangeFlushed(*ABOUT, 0, 100, 1, 90, 90, 1_000, read=95, gaps=5),
        OffsetsPassedOver(*ABOUT, 100, 130, LossCause.RETENTION),
        OffsetsPassedOver(*ABOUT, 130, 130, LossCause.RECREATED),
    )
    assert page.get("parquet_sink_records_read_total", connector="orders", topic="t") == 95
    assert page.get("parquet_sink_offset_gaps_total", connector="orders", topic="t") == 5
    assert page.all("parquet_sink_losses_total", "cause") == {
        "retention": 1, "recreated": 1, "deleted": 0, "truncated": 0,
    }  # fmt: skip
    assert page.all("parquet_sink_lost_offsets_total", "cause")["retention"] == 30


def test_what_happens_to_a_connector_is_counted() -> None:
    """Restarts, failures, outages of the brokers, commits, and events that nobody could count."""
    failure = failure_named("TopicGone", "no such topic")
    page = after(
        ConnectorStarting("orders", 1.0),
        ConnectorRestarting("orders", 1.0, "it was killed", 2.0),
        ConnectorRestarting("orders", 3.0, "it was killed", 4.0),
        ConnectorWaiting("orders", 4.0, "no answer"),
        ConnectorRunning("orders", 5.0),
        OffsetCommitted(*ABOUT, 10),
        EventsDropped("orders", 6.0, 12),
        ConnectorFailed("orders", 7.0, failure),
    )
    counts = {"restarts": 2, "failures": 1, "broker_outages": 1, "offset_commits": 1, "dropped_events": 12}
    assert {name: page.get(f"parquet_sink_{name}_total", connector="orders") for name in counts} == counts


def test_figures_begin_with_zero() -> None:
    """Prometheus sees no growth in a series that begins with 1: so what may be alerted of is there beforehand."""
    page = World(connector("quiet")).page()
    for name in ("restarts", "failures", "dead_letters", "parked_records", "dropped_events", "upload_retries"):
        assert page.get(f"parquet_sink_{name}_total", connector="quiet") == 0
    for name in ("losses", "refused_files", "uploads", "rejects"):
        found = [key for key in page.samples if key[0] == f"parquet_sink_{name}_total"]
        assert len(found) > 1
        assert {page.samples[key] for key in found} == {0}


def test_topics_are_bounded() -> None:
    """The first ones have series of their own, the others one together; a connector that goes makes room."""
    labels = TopicLabels(most=2)
    assert [labels.of("a", topic) for topic in ("one", "two", "three", "one")] == ["one", "two", OTHER, "one"]
    assert labels.of("b", "one") == OTHER
    labels.forget("a")
    assert [labels.of("b", topic) for topic in ("one", "two", "three")] == ["one", "two", OTHER]
