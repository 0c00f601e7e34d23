"""Log lines: one for each file, and for each connector that begins or ends."""

import json
import logging
from dataclasses import replace

import pytest

from parquet_sink.errors import KafkaFailed, failure_named
from parquet_sink.model.events import (
    ConnectorFailed,
    ConnectorRestarting,
    ConnectorRunning,
    ConnectorStarting,
    ConnectorStopped,
    ConnectorStopping,
    ConnectorWaiting,
    EventsDropped,
    FileAccepted,
    FileFailed,
    FilePassedOver,
    OffsetCommitted,
    OffsetsPassedOver,
    RangeFlushed,
    RecordsDelivered,
    RecordsSetAside,
)
from parquet_sink.model.ranges import Attempt, AttemptCount, LossCause
from parquet_sink.model.receipts import Receipt
from parquet_sink.process.logs import JsonLines
from parquet_sink.worker.loop.log_lines import LogLines, describe_file, fields_of
from tests.messages import assert_line_says, assert_says

SENT = Receipt(
    "orders", "t", 3, "f.parquet", 0, 9, 10, rows=30, records=10, size_bytes=5_000, reason="interval", attempts=1,
    seconds={"write": 0.25, "upload": 0.12345}, status=200, accepted_at=1.0, tried=(Attempt(1, 0.1, "accepted", 200),),
    answers=(AttemptCount("accepted", 200, 1),),
)  # fmt: skip


def test_a_file_says_what_its_receipt_does() -> None:
    """Side by side, so that a reader can ask for `rows` without knowing of receipts."""
    assert fields_of(FileAccepted("orders", 1.0, "t", 3, SENT)) == {
        "event": "FileAccepted", "connector": "orders", "topic": "t", "partition": 3, "file_name": "f.parquet",
        "first_offset": 0, "last_offset": 9, "next_offset": 10, "rows": 30, "records": 10, "size_bytes": 5_000,
        "reason": "interval", "attempts": 1, "write_s": 0.25, "upload_s": 0.123, "status": 200, "accepted_at": 1.0,
    }  # fmt: skip


def test_a_failure_is_its_kind_and_its_words() -> None:
    """Of a file, whose reason is why it was closed, and of a connector."""
    failure = failure_named("UploadRefused", "the target answered 403")
    of_file = fields_of(FileFailed("orders", 1.0, "t", 3, replace(SENT, failure=failure)))
    assert (of_file["error"], of_file["failure"], of_file["reason"]) == (failure.kind, failure.message, "interval")
    assert fields_of(ConnectorFailed("orders", 1.0, failure)) == {
        "event": "ConnectorFailed", "connector": "orders", "error": failure.kind, "failure": failure.message,
    }  # fmt: skip


def test_a_connector_s_failure_has_its_topic_partition() -> None:
    """Where it is of only one."""
    fields = fields_of(ConnectorFailed("orders", 1.0, KafkaFailed("away").at(("t", 3)).failure()))
    assert (fields["topic"], fields["partition"]) == ("t", 3)


@pytest.mark.parametrize(
    "event",
    [
        RecordsSetAside("orders", 1.0, "t", 3, 2, 0, 9, {"VALUE_CONVERTER": 2}, "no", "parked in p"),
        RangeFlushed("orders", 1.0, "t", 3, 0, 10, 1, 10, 10, 1_000, read=10),
        OffsetsPassedOver("orders", 1.0, "t", 3, 0, 10, LossCause.RETENTION),
    ],
)
def test_every_event_is_json(event: RangeFlushed) -> None:
    """With its connector and its topic-partition."""
    found = json.loads(json.dumps(fields_of(event)))
    assert (found["event"], found["connector"], found["topic"], found["partition"]) == (
        *(type(event).__name__, "orders", "t"),
        3,
    )


RECEIPT = Receipt(
    "orders", "orders", 0, "topic-orders_partition-0.parquet", 0, 9, 10, 10, 10, 1_234, "interval",
    attempts=1, seconds={"write": 0.1, "upload": 0.257}, status=200, accepted_at=1.0,
)  # fmt: skip


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> LogLines:
    """Log lines, at the level that operators see."""
    caplog.set_level(logging.INFO)
    return LogLines()


def test_a_file_is_one_line() -> None:
    """Name, rows, bytes, reason and time of an accepted file, in one line."""
    line = describe_file(RECEIPT)
    assert_says(line, "connector orders", "accepted topic-orders_partition-0.parquet", "10 rows", "1234 bytes")
    assert_says(line, "rotated by interval", "upload 0.26 s")
    assert "attempts" not in line
    assert "\n" not in line
    assert_says(describe_file(replace(RECEIPT, attempts=3)), "upload 0.26 s", "3 attempts")
    assert_says(describe_file(replace(RECEIPT, rows=1)), "1 row,")
    assert_says(describe_file(replace(RECEIPT, table="T")), "topic-orders_partition-0.parquet into table T")


def test_each_accepted_file_has_a_line(lines: LogLines, caplog: pytest.LogCaptureFixture) -> None:
    """One that failed has its own error elsewhere; commits have lines for DEBUG only."""
    failed = replace(RECEIPT, failure=failure_named("UploadRefused", "no"))
    lines.on_event(FileAccepted("orders", 1.0, "orders", 0, RECEIPT))
    lines.on_event(FileFailed("orders", 2.0, "orders", 0, failed))
    lines.on_event(OffsetCommitted("orders", 2.5, "orders", 0, 10))
    lines.on_event(FileAccepted("orders", 3.0, "orders", 0, replace(RECEIPT, file_name="second")))
    lines.close([])
    assert [record.message.split()[2:4] for record in caplog.records] == [
        ["accepted", "topic-orders_partition-0.parquet"],
        ["accepted", "second"],
    ]


def test_records_without_a_file_have_a_line(lines: LogLines, caplog: pytest.LogCaptureFixture) -> None:
    """How many, from where, and to where."""
    caplog.set_level(logging.INFO)
    lines.on_event(RecordsDelivered("one", 6.0, "orders", 3, 9, 10, 19, "file /out"))
    (told,) = caplog.messages
    assert_says(told, "connector one", "9 records", "orders, topic-partition 3", "offsets 10 to 19", "to file /out")


def test_a_file_that_is_passed_over_has_a_line(lines: LogLines, caplog: pytest.LogCaptureFixture) -> None:
    """It says why, and what becomes of its records: passing over is never silent."""
    refused = replace(RECEIPT, passed_over="the target refused file topic-orders.parquet: the target answered 422")
    lines.on_event(FilePassedOver("orders", 1.0, "orders", 0, refused))
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert_says(record.message, "connector orders", str(refused.passed_over), "10 rows", "1234 bytes")
    assert_says(record.message, "10 records are diverted", "next file goes on")


def test_what_is_set_aside_is_one_line_for_each_range(lines: LogLines, caplog: pytest.LogCaptureFixture) -> None:
    """Whether or not each record has a line: passing over records is never silent."""
    lines.on_event(
        RecordsSetAside(
            "sink", 1.0, "orders", 3, 1_200, 5, 9_000, {"SHAPE": 1, "BIG": 1_199}, "a reason", "parked in /p"
        )
    )
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert_says(record.message, "connector sink", "diverted 1,200 records", "orders, topic-partition 3")
    assert_says(record.message, "offsets 5 to 9000", "BIG 1,199, SHAPE 1", "parked in /p", "a reason")


def test_each_change_of_a_connector_has_a_line(lines: LogLines, caplog: pytest.LogCaptureFixture) -> None:
    """Begin and end of each connector are told once, however often its query starts again meanwhile."""
    for event in (
        ConnectorStarting("a", 1.0),
        ConnectorStarting("b", 1.0),
        ConnectorWaiting("a", 2.0, "No answer from host:1 yet."),
        ConnectorRunning("a", 3.0),
        ConnectorFailed("b", 3.5, failure_named("TopicGone", "no such topic")),
        ConnectorRunning("a", 4.0),
        ConnectorStopping("a", 5.0),
        ConnectorRunning("a", 4.9),
        ConnectorStopped("a", 6.0),
    ):
        lines.on_event(event)
    a, b, *after = caplog.messages
    assert_says(a, "connector a: starting", "Java and Spark", "5 to 10 s")
    assert_says(b, "connector b: starting", "Java and Spark", "5 to 10 s")
    assert after == [
        "connector a: running",
        "connector b: failed",
        "connector a: stopping",
        "connector a: done",
    ]


def test_every_other_event_has_a_line_for_debug(caplog: pytest.LogCaptureFixture) -> None:
    """With its fields, where lines are JSON; what is to be done about it is told in words by whoever saw it."""
    caplog.set_level(logging.DEBUG)
    lines = LogLines()
    gone = OffsetsPassedOver("orders", 1.0, "t", 3, 10, 30, LossCause.RETENTION)
    for event in (gone, ConnectorWaiting("orders", 2.0, "no answer"), ConnectorRestarting("orders", 3.0, "why", 2.0)):
        lines.on_event(event)
    ours = [one for one in caplog.records if one.name.startswith("parquet_sink.worker.loop.")]  # not other threads'
    assert [record.levelname for record in ours] == ["DEBUG"] * 3
    told = json.loads(JsonLines().format(ours[0]))
    assert (told["event"], told["connector"], told["start"], told["cause"]) == (
        "OffsetsPassedOver", "orders", 10, "retention",
    )  # fmt: skip


def test_a_file_s_line_has_its_values(lines: LogLines, caplog: pytest.LogCaptureFixture) -> None:
    """A collector need not read words."""
    lines.on_event(FileAccepted("orders", 1.0, "orders", 0, RECEIPT))
    told = json.loads(JsonLines().format(caplog.records[0]))
    assert (told["message"], told["rows"], told["upload_s"]) == (describe_file(RECEIPT), 10, 0.257)


def test_missing_lines_are_told(lines: LogLines, caplog: pytest.LogCaptureFixture) -> None:
    """When the event log dropped events the reader of the log knows that lines are missing, and that no record is."""
    lines.on_event(EventsDropped("orders", 1.0, 12))
    assert_line_says(caplog.text, "connector orders", "12 events", "dropped", "log lines of files", "No record is")
