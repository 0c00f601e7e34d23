"""A line for each record: Java's text form of its value, in UTF-8."""

from typing import Final

from parquet_sink.targets.file import java_text
from parquet_sink.targets.file.appender import Appender
from parquet_sink.targets.record_sink import SinkRecords

MOST_BYTES: Final = 8 << 20
"""Of lines that wait to be appended, about."""


class FileSink:
    """A `RecordSink`. appender: is closed with it."""

    def __init__(self, appender: Appender) -> None:
        self._appender = appender
        self._waiting: list[bytes] = []
        self._bytes = 0

    def put(self, records: SinkRecords) -> None:
        """Lines of records; they are appended when there are many, else at the flush."""
        found = records.in_order(java_text.texts)
        lines = "".join(f"{java_text.NULL if text is None else text}\n" for _, text in found).encode()
        self._waiting.append(lines)
        self._bytes += len(lines)
        if self._bytes >= MOST_BYTES:
            self._append()

    def flush(self) -> None:
        """All lines are in the file, and on the disk."""
        self._append()
        self._appender.sync()

    def close(self) -> None:
        """What waits is dropped: it comes again."""
        self._appender.close()

    def _append(self) -> None:
        lines, self._waiting, self._bytes = b"".join(self._waiting), [], 0
        if lines:
            self._appender.append(lines)
