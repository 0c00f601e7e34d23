"""Files of a history."""

from parquet_sink.history.records import UploadOutcome, UploadRecord


def uploaded(partition: int, at_ms: int, first: int, last: int, name: str = "") -> UploadRecord:
    """One that was accepted then."""
    count = last + 1 - first
    name = name or f"file-{partition}-{first}"
    about = (name, "t", "orders", partition, first, last, count, count, 10 * count, "d", "records", None)
    return UploadRecord(*about, UploadOutcome.ACCEPTED, at_ms)
