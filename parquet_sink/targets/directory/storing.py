"""A file into a folder under its name: whole or not at all, durably, and never over another one.

The bytes go to a name of their own in the folder `.partial` beside the final name, are synced, and then get the final
name by a hard link, which fails when the name is taken; where a file system has no links, by a rename. Whoever reads
the folder, and whatever crashes, finds whole files under final names. What a killed process leaves in `.partial` is
removed by `sweep`: a file that is being written is locked.
"""

import errno
import fcntl
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from hashlib import sha256
from typing import Final

from parquet_sink.errors import StorageFailed
from parquet_sink.files.storage import storage_trouble, sync_file, sync_folder
from parquet_sink.targets.store import LocalFile

PARTIAL_FOLDER: Final = ".partial"
PIECE_BYTES: Final = 1 << 20
ABANDONED_S: Final = 60.0
"""How old a partial file must be, in seconds, before it is taken for one that nobody writes any more."""
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.EINVAL})


class Stored(Enum):
    """How storing ended."""

    NEW = "new"
    SAME = "the same file was there"
    OTHER = "another file was there"


class OutOfTime(Exception):
    """The time for storing is over; nothing is under the final name."""


class NotSynced(Exception):
    """The file has its name, but the system could not say that it stays after a power failure; the cause is chained."""


def store(source: LocalFile, folder: str, name: str, out_of_time: Callable[[], bool]) -> Stored:
    """Puts a file into a folder that is there.

    Raises StorageFailed for trouble with the source, OSError for trouble with the folder before the file has its name,
    NotSynced for trouble after, OutOfTime.
    """
    final = os.path.join(folder, name)
    with _opened(source) as descriptor:
        if os.path.lexists(final):
            return _compared(source, descriptor, final, out_of_time)
        with _partial(folder) as (partial, target):
            for piece in _pieces(source, descriptor, out_of_time):
                _write(target, piece)
            os.fsync(target)
            if not _named(partial, final):
                return _compared(source, descriptor, final, out_of_time)
    _sync(folder)
    return Stored.NEW


def sweep(folder: str, now: float) -> None:
    """Removes what killed processes left below a folder. now: epoch seconds. Trouble is passed over."""
    with suppress(OSError), os.scandir(os.path.join(folder, PARTIAL_FOLDER)) as entries:
        for entry in entries:
            with suppress(OSError):
                if now - entry.stat(follow_symlinks=False).st_mtime > ABANDONED_S:
                    _remove_unless_locked(entry.path)


def _sync(folder: str, file: str | None = None) -> None:
    try:
        if file is not None:
            sync_file(file)
        sync_folder(folder)
    except OSError as error:
        raise NotSynced from error


@contextmanager
def _opened(source: LocalFile) -> Iterator[int]:
    with storage_trouble(os.path.dirname(source.path), "read a finished file"):
        descriptor = os.open(source.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _pieces(source: LocalFile, descriptor: int, out_of_time: Callable[[], bool]) -> Iterator[bytes]:
    """The bytes of the source, all of them, and those that were verified."""
    place, left, digest = 0, source.size_bytes, sha256()
    while left > 0:
        if out_of_time():
            raise OutOfTime
        with storage_trouble(os.path.dirname(source.path), "read a finished file"):
            piece = os.pread(descriptor, min(PIECE_BYTES, left), place)
        if not piece:
            raise StorageFailed(
                f"File {source.path} is {left:,} bytes shorter than when it was verified: something changed it. It is "
                f"not sent. Keep other programs out of connect.ems.tmp.dir."
            )
        place, left = place + len(piece), left - len(piece)
        digest.update(piece)
        yield piece
    if source.digest not in (None, digest.hexdigest()):
        raise StorageFailed(
            f"File {source.path} has other bytes than when it was verified: something changed it. It is not sent. Keep "
            f"other programs out of connect.ems.tmp.dir."
        )
    if out_of_time():
        raise OutOfTime


@contextmanager
def _partial(folder: str) -> Iterator[tuple[str, int]]:
    """A locked file of a name of its own, with its descriptor; gone at the end."""
    place = os.path.join(folder, PARTIAL_FOLDER)
    os.makedirs(place, exist_ok=True)
    path = os.path.join(place, uuid.uuid4().hex)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with suppress(OSError):  # without locks its age alone keeps it from being swept
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield path, descriptor
    finally:
        with suppress(OSError):
            os.unlink(path)
        os.close(descriptor)


def _write(descriptor: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _named(partial: str, final: str) -> bool:
    """Gives a file its final name; False when the name is taken."""
    try:
        os.link(partial, final, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(final):
            return False
        os.rename(partial, final)
    return True


def _compared(source: LocalFile, descriptor: int, final: str, out_of_time: Callable[[], bool]) -> Stored:
    """Whether what has the name already is the same file; then it is made durable, as if it were new."""
    found = os.lstat(final)
    if not stat.S_ISREG(found.st_mode) or found.st_size != source.size_bytes:
        return Stored.OTHER
    with open(final, "rb", buffering=0) as there:
        for piece in _pieces(source, descriptor, out_of_time):
            if _read(there.fileno(), len(piece)) != piece:
                return Stored.OTHER
    _sync(os.path.dirname(final), final)
    return Stored.SAME


def _read(descriptor: int, count: int) -> bytes:
    parts = b""
    while len(parts) < count and (piece := os.read(descriptor, count - len(parts))):
        parts += piece
    return parts


def _remove_unless_locked(path: str) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    finally:
        os.close(descriptor)
