"""Events as names and values."""

import json
from dataclasses import replace

import pytest

from parquet_sink.errors import KafkaFailed, failure_named
from parquet_sink.model.attempts import Attempt, AttemptCount
from parquet_sink.model.events import (
    ConnectorFailed,
    FileAccepted,
    FileFailed,
    OffsetsPassedOver,
    RangeFlushed,
    RecordsSetAside,
)
from parquet_sink.model.lost import LossCause
from parquet_sink.model.receipts import Receipt
from parquet_sink.worker.loop.event_fields import fields_of

RECEIPT = Receipt(
    "orders", "t", 3, "f.parquet", 0, 9, 10, rows=30, records=10, size_bytes=5_000, reason="interval", attempts=1,
    seconds={"write": 0.25, "upload": 0.12345}, status=200, accepted_at=1.0, tried=(Attempt(1, 0.1, "accepted", 200),),
    answers=(AttemptCount("accepted", 200, 1),),
)  # fmt: skip


def test_a_file_says_what_its_receipt_does() -> None:
    """Side by side, so that a reader can ask for `rows` without knowing of receipts."""
    assert fields_of(FileAccepted("orders", 1.0, "t", 3, RECEIPT)) == {
        "event": "FileAccepted", "connector": "orders", "topic": "t", "partition": 3, "file_name": "f.parquet",
        "first_offset": 0, "last_offset": 9, "next_offset": 10, "rows": 30, "records": 10, "size_bytes": 5_000,
        "reason": "interval", "attempts": 1, "write_s": 0.25, "upload_s": 0.123, "status": 200, "accepted_at": 1.0,
    }  # fmt: skip


def test_a_failure_is_its_kind_and_its_words() -> None:
    """Of a file, whose reason is why it was closed, and of a connector."""
    failure = failure_named("UploadRefused", "the target answered 403")
    of_file = fields_of(FileFailed("orders", 1.0, "t", 3, replace(RECEIPT, failure=failure)))
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
