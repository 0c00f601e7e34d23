"""The task of the file source: new lines of one file, as text, with the place behind each in bytes.

Kafka Connect counts characters and skips bytes, which loses or repeats lines that are not ASCII; here both are bytes.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from parquet_sink.errors import SourceFailed
from parquet_sink.sources.file.finding import Opened, find, opened, renamed, unreadable
from parquet_sink.sources.file.java_text import decoded
from parquet_sink.sources.file.lines import EDGE, Line, Lines
from parquet_sink.sources.file.marks import Mark, digest, edge, head
from parquet_sink.sources.task import Memory, Place, Reached, SourceRecord

FILE: Final = "file"
NAME: Final = "name"
"""What the file is called in places: as it was written, where `file` is its whole path."""
TOPIC: Final = "topic"
BATCH: Final = "batch.size"
LONGEST: Final = "longest.line"
"""Settings of a task. The longest line is in bytes."""
FILENAME: Final = "filename"
POSITION: Final = "position"
"""Fields of places, as Kafka Connect has them."""
_CHUNK: Final = 1 << 20
_TEXT: Final = pa.string()


class FileTask:
    """Follows one file through growth, truncation and rotation; `finding` says which file is which."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._file: Opened | None = None
        self._lines, self._head = Lines(), b""
        self._mark: Mark | None = None

    def start(self, settings: Mapping[str, str], reached: Reached) -> None:
        self._path, self._topic = settings[FILE], settings[TOPIC]
        self._most, self._longest = int(settings[BATCH]), int(settings[LONGEST])
        self._partition: Place = {FILENAME: settings.get(NAME, self._path)}
        self._position = _position(reached.offset(self._partition), self._path)
        self._mark = Mark.of_memory(reached.memory)

    def poll(self) -> Sequence[SourceRecord]:
        """Raises SourceFailed when the file cannot be read, or a line is too long."""
        try:
            return self._records(self._next_lines())
        except OSError as error:
            raise unreadable(self._path, error) from None

    def look(self) -> object:
        """Which file has the name, and its size; and those of the one before, while that is not read to its end."""
        now = _stat(self._path)
        if self._mark is None or (now is not None and now[0] == self._mark.inode):
            return now
        before = renamed(self._path, self._position, self._mark)
        if before is None:
            return now
        try:
            return now, before.inode, before.size
        finally:
            before.close()

    def remember(self) -> Memory:
        """By what the file is known again."""
        return {} if self._mark is None else self._mark.to_memory()

    def wrong_place(self, partition: Place, offset: Place) -> str | None:
        """In the words of Kafka Connect's class."""
        if POSITION not in offset:
            return f"Offset objects should either be null or contain the key '{POSITION}'"
        position = offset[POSITION]
        if isinstance(position, bool) or not isinstance(position, int):
            return f"The value for the '{POSITION}' key in the offset is expected to be a Long value"
        if position < 0:
            return f"The value for the '{POSITION}' key in the offset should be a non-negative value"
        return None if FILENAME in partition else f"Partition objects should contain the key '{FILENAME}'"

    def stop(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _next_lines(self) -> list[Line]:
        if self._file is None:
            self._file = find(self._path, self._position, self._mark)
            if self._file is None:
                return []
            self._begin(self._file)
        while not (found := self._lines.take(self._most)):
            if not self._read(self._file):
                return self._at_end(self._file)
        return found

    def _begin(self, file: Opened) -> None:
        """At its position."""
        self._file = file
        self._lines = Lines(file.position, edge(file.descriptor, file.position))
        self._head = head(file.descriptor, file.position)

    def _read(self, file: Opened) -> bool:
        """Whether there was more. A file that is shorter than what was read of it is read from its beginning."""
        if file.size < self._lines.read:
            file.position = 0
            self._begin(file)
        data = os.pread(file.descriptor, _CHUNK, self._lines.read)
        self._lines.feed(data)
        self._head += data[: max(EDGE - len(self._head), 0)]
        self._check_length()
        return bool(data)

    def _check_length(self) -> None:
        """A line that is too long is told before all of it is in memory. Held is one line at most, and a chunk."""
        if self._lines.held > self._longest + _CHUNK:
            raise too_long(self._path, self._lines.position, self._lines.held - _CHUNK, self._longest)

    def _at_end(self, file: Opened) -> list[Line]:
        """Nothing, unless another file has the name by now and is written to: then the last line has its end here."""
        now = _stat(self._path)
        if now is None or now[0] == file.inode or now[1] == 0:
            return []
        if file.size > self._lines.read:  # written to since it was read
            return []
        if last := self._lines.rest():
            return last
        return self._move_on(file)

    def _move_on(self, file: Opened) -> list[Line]:
        new = opened(self._path)
        if new is None:
            return []
        file.close()
        self._begin(new)
        return self._next_lines()

    def _records(self, lines: Sequence[Line]) -> Sequence[SourceRecord]:
        if not lines or self._file is None:
            return ()
        self._position = self._lines.position
        start = self._head[: min(self._position, EDGE)]
        self._mark = Mark(self._file.inode, digest(start), digest(self._lines.edge))
        now_ms = int(self._clock() * 1000)
        return [self._record(line, now_ms) for line in lines]

    def _record(self, line: Line, now_ms: int) -> SourceRecord:
        return SourceRecord(
            self._topic,
            decoded(line.content),
            _TEXT,
            timestamp_ms=now_ms,
            source_partition=self._partition,
            source_offset={POSITION: line.end},
        )


def _position(offset: Place | None, path: str) -> int:
    found = 0 if offset is None else offset.get(POSITION)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise SourceFailed(
            f"The stored position of file {path} is {found!r}, which is no number of bytes; set it anew by PATCH "
            "/connectors/NAME/offsets, or remove it by DELETE."
        )
    return found


def _stat(path: str) -> tuple[int, int] | None:
    """Inode and size of the file of that name; None: there is none that may be looked at."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size


def too_long(path: str, position: int, length: int, longest: int) -> SourceFailed:
    """What an operator is told of a line that no broker would be sent."""
    return SourceFailed(
        f"File {path}: the line at position {position} has {length:,} bytes or more, and a request may have "
        f"{longest:,}. Raise [producer.override.max.request.size], and max.message.bytes of the topic "
        "(message.max.bytes of the brokers); then start again. Nothing from this line on is sent, and the position "
        "stays before it."
    )
