"""Whole lines at the end of a file that several processes append to, so that a crash leaves no half of them.

Who appends holds a lock, and first writes down where its lines begin and end, in a small file beside the other:
`.<name>.parquet-sink`. If it dies, whoever comes next finds that note, and cuts what is there of those lines: none of
them was committed, so all of them come again. A file that ends without a newline and has no such note is somebody
else's doing: it gets the newline, and nothing is cut.

What is not a regular file (a pipe, a terminal) has no note, and what was written to it stays.

The sink that appends them, `FileSink`, has a line for each record: Java's text form of its value, in UTF-8.
"""

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from parquet_sink.addons.file_sink import java_text
from parquet_sink.errors import RetryLater
from parquet_sink.files.storage import Purpose, storage_failed, sync_folder
from parquet_sink.targets.record_sink import SinkRecords

_PIECE_BYTES: Final = 1 << 20
_NOTE: Final = struct.Struct("<8sQQQQ")
_MAGIC: Final = b"psnote1\n"
_PURPOSE: Final = Purpose(
    "file", "what is in the file, by rotating it", "Nothing is lost: what is not in the file is still in Kafka."
)
_PASSES: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.ENOENT, errno.ESTALE, errno.EIO, errno.ENXIO})
"""Trouble that may pass: a disk that is full, or away."""


class Appender:
    """path: absolute. noted: whether a note is kept; not for what other programs write to, too.

    Made when the file can be opened; it is made when it is not there. Raises RetryLater where waiting may help,
    StorageFailed elsewhere, as `append` does, and what is done within `trouble`.
    """

    def __init__(self, path: str, *, noted: bool = True) -> None:
        self._path, self._folder = path, os.path.dirname(path) or "/"
        self._note: int | None = None
        with self.trouble("open the file"):
            self._file = _opened(path)
            self._regular = stat.S_ISREG(os.fstat(self._file).st_mode)
            if noted and self._regular:
                self._note = os.open(note_of(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def held(self, most_in_memory: int) -> IO[bytes]:
        """Takes lines that are to be appended: in memory, and what is more in a nameless file on the same disk."""
        return SpooledTemporaryFile(most_in_memory, dir=self._folder if self._note is not None else None)

    def append(self, lines: IO[bytes]) -> None:
        """Writes whole lines, all of them or none, durably: they survive a crash of the machine, and will not be cut.

        lines: all that is in this file.
        """
        lines.seek(0, os.SEEK_END)
        size_bytes = lines.tell()
        lines.seek(0)
        with self.trouble("append lines"), self._locked():
            start = self._mended()
            self._remember(start, start + size_bytes)
            try:
                while piece := lines.read(_PIECE_BYTES):
                    _write(self._file, piece)
                self._sync()  # here some file systems say that they are full
            except OSError:
                self._cut(start)
                raise
            self._forget()
            if self._note is not None:
                os.fsync(self._note)

    def _sync(self) -> None:
        if self._regular:
            os.fsync(self._file)

    def close(self) -> None:
        """May be called twice. Raises nothing."""
        for descriptor in (self._file, self._note):
            with suppress(OSError):
                if descriptor is not None:
                    os.close(descriptor)
        self._file, self._note = -1, None

    def _mended(self) -> int:
        """Where the next line begins, after half lines of a dead writer are cut."""
        if not self._regular:
            return 0
        found = os.fstat(self._file)
        note = None if self._note is None else os.pread(self._note, _NOTE.size, 0)
        if note is not None and len(note) == _NOTE.size:
            magic, device, inode, start, end = _NOTE.unpack(note)
            if (magic, device, inode) == (_MAGIC, found.st_dev, found.st_ino) and start < found.st_size <= end:
                self._cut(start)
        size = os.fstat(self._file).st_size
        if self._note is not None and size and os.pread(self._file, 1, size - 1) != b"\n":
            _write(self._file, b"\n")
            size += 1
        return size

    def _remember(self, start: int, end: int) -> None:
        if self._note is not None:
            found = os.fstat(self._file)
            os.pwrite(self._note, _NOTE.pack(_MAGIC, found.st_dev, found.st_ino, start, end), 0)
            os.fsync(self._note)

    def _forget(self) -> None:
        if self._note is not None:
            os.ftruncate(self._note, 0)

    def _cut(self, start: int) -> None:
        """Nothing from here on is committed. What is not a regular file, or is not ours alone, stays as it is."""
        if self._note is not None:
            os.ftruncate(self._file, start)
            os.fsync(self._file)
            self._forget()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        held = self._file if self._note is None else self._note
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(held, fcntl.LOCK_UN)

    @contextmanager
    def trouble(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            failed = storage_failed(self._folder, f"{doing} ({self._path})", error, _PURPOSE)
            raise (RetryLater(str(failed)) if error.errno in _PASSES else failed) from error


def note_of(path: str) -> str:
    """The file beside another in which it is noted what is being appended."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.parquet-sink")


def _opened(path: str) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return os.open(path, _flags_of(path, flags))
    sync_folder(os.path.dirname(path) or "/")
    return descriptor


def _flags_of(path: str, flags: int) -> int:
    """A pipe would be its own reader, if it were opened for reading, too."""
    return flags if stat.S_ISREG(os.stat(path).st_mode) else flags & ~os.O_RDWR | os.O_WRONLY


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


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
