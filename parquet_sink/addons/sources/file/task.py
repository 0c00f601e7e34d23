"""The task of the file source: new lines of one file, as text, with the place behind each in bytes.

Kafka Connect counts characters and skips bytes, which loses or repeats lines that are not ASCII; here both are bytes.
"""

import os
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa

from parquet_sink.addons.sources.file.finding import Opened, find, first, opened, sighted, unreadable, warn_of_skipped
from parquet_sink.addons.sources.file.lines import EDGE, Line, Lines
from parquet_sink.addons.sources.file.marks import Known, Mark, digest, edge, head
from parquet_sink.addons.sources.task import Memory, Place, Reached, SourceRecord
from parquet_sink.errors import SourceFailed

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
_SURROGATES: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Halves of a pair, each of which Java replaces as one, where Python replaces every byte of it."""
_BAD_BYTE: Final = b"\xff"


class FileTask:
    """Follows one file through growth, truncation and rotation; `finding` says which file is which."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._file: Opened | None = None
        self._lines, self._head = Lines(), b""
        self._name = ""
        self._memory: Memory = {}
        self._known = self._noticed = Known()

    def start(self, settings: Mapping[str, str], reached: Reached) -> None:
        self._path, self._topic = settings[FILE], settings[TOPIC]
        self._most, self._longest = int(settings[BATCH]), int(settings[LONGEST])
        self._name = settings.get(NAME, self._path)
        self._partition: Place = {FILENAME: self._name}
        self._position = _position(reached.offset(self._partition), self._path)
        self._memory = reached.memory
        self._known = self._noticed = Known.of_memory(reached.memory, self._name)

    def poll(self) -> Sequence[SourceRecord]:
        """Raises SourceFailed when the file cannot be read, or a line is too long."""
        try:
            return self._records(self._next_lines())
        except OSError as error:
            raise unreadable(self._path, error) from None

    def look(self) -> object:
        """Which file has the name, its size and when it was written to; and those before it that are to be read."""
        with suppress(OSError):  # which the task will say
            self._noticed = sighted(self._path, self._position, self._known)
        now = _stat(self._path)
        marks = [] if self._known.mark is None else [self._known.mark.inode]
        before = {*marks, *(one.inode for one in self._known.waiting)} - ({now[0]} if now else set())
        return now, _sizes(self._path, before) if before else ()

    def noticed(self) -> Memory | None:
        """A file that took the name, so that it is found when it is called otherwise before anything of it is sent."""
        return None if self._noticed == self._known else self._noticed.to_memory(self._name, self._memory)

    def remember(self) -> Memory:
        """By what the file is known again."""
        return self._known.to_memory(self._name, self._memory)

    def remember_at(self, partition: Place, offset: Place) -> Memory:
        """The same, of a place within the last poll."""
        assert self._file is not None
        mark = self._mark(self._file, int(str(offset[POSITION])))
        return Known(mark, self._file.waiting).to_memory(self._name, self._memory)

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
        while True:
            if self._file is None:
                self._file = find(self._path, self._position, self._known)
                if self._file is None:
                    return []
                self._begin(self._file)
            if found := self._lines.take(self._most):
                return found
            data = self._read(self._file)
            if data is None:
                self.stop()  # and find what it was
            elif not data:
                return self._at_end(self._file)

    def _begin(self, file: Opened) -> None:
        """At its position."""
        self._file = file
        self._lines = Lines(file.position, edge(file.descriptor, file.position))
        self._head = head(file.descriptor, file.position)

    def _read(self, file: Opened) -> bytes | None:
        """What comes next; None: what was read last stands there no more, so the file was emptied or rewritten."""
        last = self._lines.latest
        data = os.pread(file.descriptor, _CHUNK + len(last), self._lines.read - len(last))
        if not data.startswith(last):
            return None
        data = data[len(last) :]
        self._lines.feed(data)
        self._head += data[: max(EDGE - len(self._head), 0)]
        self._check_length()
        return data

    def _check_length(self) -> None:
        """A line that is too long is reported before all of it is in memory. Held is one line at most, and a chunk."""
        if self._lines.held > self._longest + _CHUNK:
            raise too_long(self._path, self._lines.position, self._lines.held - _CHUNK, self._longest)

    def _at_end(self, file: Opened) -> list[Line]:
        """Nothing, unless another file has or had the name since and was written to: then the last line ends here."""
        now = _stat(self._path)
        if now is not None and now[0] == file.inode:
            return []
        if not file.waiting and (now is None or now[1] == 0):
            return []
        if file.size > self._lines.read:  # written to since it was read
            return []
        if file.is_unlinked and (copy := self._copy()) is not None:
            copy.waiting = file.waiting
            file.close()
            self._file = copy
            return self._next_lines()
        if last := self._lines.rest():
            return last
        return self._move_on(file)

    def _copy(self) -> Opened | None:
        """The file of that name, if it has all that was read: it took the place of one that is nowhere any more."""
        new, read = opened(self._path), self._lines.read
        if new is None:
            return None
        if Mark(new.inode, digest(self._head[:read]), digest(self._lines.latest)).holds(new.descriptor, read):
            return new
        new.close()
        return None

    def _move_on(self, file: Opened) -> list[Line]:
        new = first(self._path, file.waiting)
        if new is None:
            return []
        if new.inode == file.inode or new.size == 0:
            new.close()
            return []
        warn_of_skipped(self._path, file, new)
        file.close()
        self._begin(new)
        return self._next_lines()

    def _records(self, lines: Sequence[Line]) -> Sequence[SourceRecord]:
        if not lines or self._file is None:
            return ()
        self._position = self._lines.position
        self._known = Known(self._mark(self._file, self._position), self._file.waiting)
        now_ms = int(self._clock() * 1000)
        return [self._record(line, now_ms) for line in lines]

    def _mark(self, file: Opened, position: int) -> Mark:
        """Of a place within the last poll, by what was read, whatever stands there now."""
        return Mark(file.inode, digest(self._head[: min(position, EDGE)]), digest(self._lines.edge_at(position)))

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
            f"The stored position of file {path} is {found!r}, which is not a number of bytes; set it again by PATCH "
            "/connectors/NAME/offsets, or remove it by DELETE."
        )
    return found


def _stat(path: str) -> tuple[int, int, int] | None:
    """Inode, size and time of the last change of the file of that name; None: there is none that may be looked at."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _sizes(path: str, inodes: Collection[int]) -> tuple[tuple[int, int], ...]:
    """Of those files of the folder that have these inodes."""
    try:
        with os.scandir(os.path.dirname(os.path.abspath(path))) as found:
            return tuple(sorted((one.inode(), one.stat().st_size) for one in found if one.inode() in inodes))
    except OSError:
        return ()


def too_long(path: str, position: int, length: int, longest: int) -> SourceFailed:
    """What an operator is told of a line that no broker would be sent."""
    return SourceFailed(
        f"File {path}: the line at position {position} has {length:,} bytes or more, and a request may have "
        f"{longest:,}. Raise [producer.override.max.request.size], and max.message.bytes of the topic "
        "(message.max.bytes of the brokers); then start again. Nothing from this line on is sent, and the position "
        "stays before it."
    )


def decoded(data: bytes) -> str:
    """The text of these bytes, one U+FFFD in place of each sequence that is no UTF-8, as Java's `REPLACE` does it."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATES.sub(_BAD_BYTE, data).decode(errors="replace")
