"""A line for each record: Java's text form of its value, in UTF-8."""

from contextlib import suppress
from typing import Final

from parquet_sink.addons.file_sink import java_text
from parquet_sink.addons.file_sink.appender import Appender
from parquet_sink.targets.record_sink import SinkRecords

MOST_BYTES: Final = 8 << 20
"""Of lines that wait to be appended in memory, about."""


class FileSink:
    """A `RecordSink`. appender: is closed with it.

    Lines of a range are appended all at once, at its end: on a full disk all of them are taken back, not the last ones
    alone, so that they do not come twice.
    """

    def __init__(self, appender: Appender) -> None:
        self._appender = appender
        self._held = appender.held(MOST_BYTES)

    def put(self, records: SinkRecords) -> None:
        """Lines of records; they are appended at the flush."""
        found = records.in_order(java_text.texts)
        lines = "".join(f"{java_text.NULL if text is None else text}\n" for _, text in found).encode()
        with self._appender.trouble("hold lines for the end of their range"):
            self._held.write(lines)

    def flush(self) -> None:
        """All lines are in the file, and on the disk."""
        with self._appender.trouble("hold lines for the end of their range"):
            self._held.flush()
            if not self._held.tell():
                return
        self._appender.append(self._held)
        self._held.close()
        self._held = self._appender.held(MOST_BYTES)

    def close(self) -> None:
        """What waits is dropped: it comes again."""
        with suppress(OSError):
            self._held.close()
        self._appender.close()
