"""Uploads and ranges to put into a history."""

from parquet_sink.files.naming import file_name
from parquet_sink.history.records import RangeRecord, UploadOutcome, UploadRecord
from parquet_sink.model.ranges import Attempt, LearnedSchema

HOUR_MS = 3_600_000
TRIED = (Attempt(1_000, 0.5, "retriable", 503, "busy"), Attempt(3_000, 0.25, "accepted", 200, "stored"))


def upload(first: int = 0, last: int = 9, partition: int = 0, at_ms: int = 5_000, **changes: object) -> UploadRecord:
    """An accepted file of one record for each offset."""
    rows, topic = last - first + 1, str(changes.get("topic", "orders"))
    given: dict[str, object] = {
        "file_name": file_name(topic, partition, first, last, 1_234, rows),
        "table": "T",
        "topic": topic,
        "partition": partition,
        "first_offset": first,
        "last_offset": last,
        "rows": rows,
        "records": rows,
        "size_bytes": 1_234,
        "digest": "ab" * 32,
        "reason": "records",
        "oldest_ms": at_ms - 4_000,
        "outcome": UploadOutcome.ACCEPTED,
        "at_ms": at_ms,
        "attempts": len(TRIED),
        "tried": TRIED,
        "upload_s": 2.25,
        "write_s": 0.125,
        "status": 200,
        "answer_id": "job-1",
        "topic_id": "id",
        "target": "https://push.example",
    }
    return UploadRecord(**{**given, **changes})  # type: ignore[arg-type]


def span(start: int = 0, end: int = 10, partition: int = 0, at_ms: int = 5_000, **changes: object) -> RangeRecord:
    """A range of records that taught something."""
    known = LearnedSchema(b"\x00schema\xff", 12.5, 25.0)
    given = {"reason": "records", "topic_id": "id", "known": known, "recipe": "r", "version": "1"}
    return RangeRecord("orders", partition, start, end, at_ms=at_ms, **{**given, **changes})  # type: ignore[arg-type]
