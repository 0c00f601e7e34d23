"""A folder: files are put there whole, listed and read back; as a target each table has a folder within it.

A file gets its name whole or not at all, durably, and never over another one. The bytes go to a name of their own in
the folder `.partial` beside the final name, are synced, and then get the final name by a hard link, which fails when
the name is taken; where a file system has no links, by a rename. Whoever reads the folder, and whatever crashes, finds
whole files under final names. What a killed process leaves in `.partial` is removed by `sweep`: a file that is being
written is locked.
"""

import errno
import fcntl
import os
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from hashlib import file_digest, sha256
from typing import Final

from parquet_sink.errors import StorageFailed
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import component
from parquet_sink.files.storage import free_space, storage_trouble, sync_file, sync_folder
from parquet_sink.net.settings import ENDPOINT
from parquet_sink.targets.directory.settings import DirectorySettings, FolderStore
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict, of_another_content
from parquet_sink.targets.store import NO_METADATA, LocalFile, StoredFile, StoreUnusable

_OTHER: Final = f"connect.ems.target.table or {ENDPOINT} to another folder"
_CURES: Final = {
    errno.ENOSPC: "Free space on that file system",
    errno.EDQUOT: "Raise the disk quota of this user",
    errno.ENOENT: "Make the folder, mount what it is on, or correct {key}",
    errno.EACCES: "Give this user the right to write there, or set {key} to another folder",
    errno.EPERM: "Give this user the right to write there, or set {key} to another folder",
    errno.EROFS: "The file system is read-only: mount it writable, or set {key} to another folder",
    errno.ENOTDIR: "Set {key} to a folder",
    errno.ELOOP: "Set {key} to a folder",
    errno.EFBIG: "Raise the limit on the size of a file (ulimit -f), or lower connect.ems.commit.size.bytes",
    errno.ENAMETOOLONG: "The topic's name is too long for a file of this file system: choose another place for it",
}
_REFUSED: Final = frozenset(_CURES) - {errno.ENOSPC, errno.EDQUOT, errno.ENOENT}
"""Trouble that would be the same again; all other may pass."""

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


class DirectoryStore:
    """Implements `targets.store.FileStore`; threads and processes may put files side by side.

    The folder must be there: where it is a mount, files would else end up below an empty mount point. elsewhere: what
    to set where another file has a name. monotonic, now: seconds.
    """

    def __init__(
        self,
        settings: FolderStore,
        elsewhere: str = "",
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.name, self._root, self._key = settings.address, settings.folder, settings.key
        self._elsewhere = elsewhere or f"{self._key} to another folder"
        self._monotonic, self._now = monotonic, now
        self._swept, self._synced = set[str](), set[str]()

    def put(self, file: LocalFile, name: str, metadata: Mapping[str, str], seconds_left: float) -> Outcome:
        """A system call that does not return (a network mount that hangs) holds up the deadline."""
        end = self._monotonic() + seconds_left
        folder, last = os.path.split(self._path(name))
        try:
            self._make_folder(folder)
            self.sweep(folder)
            stored = store(file, folder, last, lambda: self._monotonic() >= end)
        except (OutOfTime, NotSynced, OSError) as error:
            return _of_trouble(error, folder, self._key)
        if stored is Stored.OTHER:
            return of_another_content(os.path.join(folder, last), file.path, self._elsewhere)
        return Outcome(Verdict.ACCEPTED, "stored" if stored is Stored.NEW else "was stored before")

    def probe(self, below: str, seconds_left: float) -> ProbeResult:
        """Writes a small file beside the others and removes it."""
        folder = self._path(below)
        return _probed(folder if os.path.isdir(folder) else self._root, self._key)

    def files(self, prefix: str = "") -> Iterator[StoredFile]:
        with self._readable():
            if not os.path.isdir(self._root):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            folder = self._path(prefix.rpartition("/")[0])
            if os.path.isdir(folder):
                yield from (one for one in self._below(folder) if one.name.startswith(prefix))

    def digest(self, name: str) -> str | None:
        with self._readable(), suppress(FileNotFoundError), open(self._path(name), "rb") as file:
            return file_digest(file, "sha256").hexdigest()
        return None

    def fetch(self, name: str, path: str) -> bool:
        with self._readable(), suppress(FileNotFoundError), open(self._path(name), "rb") as file:
            with storage_trouble(os.path.dirname(path), "write a stored file"), open(path, "xb") as local:
                shutil.copyfileobj(file, local, 1 << 20)
            return True
        return False

    def close(self) -> None:
        """Nothing is open between files."""

    def sweep(self, folder: str) -> None:
        """What a killed process left there is removed at its first use."""
        if folder not in self._swept:
            self._swept.add(folder)
            sweep(folder, self._now())

    def _path(self, name: str) -> str:
        return os.path.join(self._root, name) if name else self._root

    def _make_folder(self, folder: str) -> None:
        """Whoever made it may have died before its name was on the disk; the root must be there."""
        if folder == self._root or (folder in self._synced and os.path.isdir(folder)):
            return
        above = os.path.dirname(folder)
        self._make_folder(above)
        with suppress(FileExistsError):
            os.mkdir(folder)
        sync_folder(above)
        self._synced.add(folder)

    def _below(self, folder: str) -> Iterator[StoredFile]:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != PARTIAL_FOLDER:
                    yield from self._below(entry.path)
            else:
                size_bytes = entry.stat(follow_symlinks=False).st_size
                yield StoredFile(os.path.relpath(entry.path, self._root), size_bytes)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            cause = os.strerror(error.errno) if error.errno else str(error)
            raise StoreUnusable(f"{cause}. Check {self._key}, and the disk that it is on.") from None


class DirectoryTarget:
    """Puts files into `<folder>/<table>/`. Implements `targets.settings.Target`. monotonic, now: seconds."""

    def __init__(
        self,
        settings: DirectorySettings,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._table, place = settings.target_table, FolderStore(settings.folder)
        self._store = DirectoryStore(place, _OTHER, monotonic=monotonic, now=now)
        self._store.sweep(os.path.join(settings.folder, self._folder(None)))

    @property
    def name(self) -> str:
        """The folder with the scheme."""
        return self._store.name

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        local = LocalFile(file.path, file.size_bytes, file.digest)
        return self._store.put(local, f"{self._folder(file.table)}/{file.name}", NO_METADATA, seconds_left)

    def probe(self, seconds_left: float) -> ProbeResult:
        return self._store.probe(self._folder(None), seconds_left)

    def close(self) -> None:
        self._store.close()

    def _folder(self, table: str | None) -> str:
        return component(table or self._table)


def unusable(folder: str, key: str) -> str | None:
    """Why files cannot be put there, with the cure, as far as it can be told without writing; None when nothing is."""
    if not os.path.isdir(folder):
        number = errno.ENOTDIR if os.path.lexists(folder) else errno.ENOENT
    elif not os.access(folder, os.W_OK | os.X_OK):
        number = errno.EACCES
    else:
        return None
    return f"{folder}: {os.strerror(number)}. {_CURES[number].format(key=key)}."


def _probed(folder: str, key: str) -> ProbeResult:
    """Whether files can be put there: a small one is written and removed."""
    path = os.path.join(folder, f".parquet-sink-check-{uuid.uuid4().hex}")
    try:
        try:
            with open(path, "xb") as file:
                file.write(b"parquet-sink")
        finally:
            with suppress(OSError):
                os.unlink(path)
    except OSError as error:
        outcome = _of_trouble(error, folder, key)
        health = Health.WARNING if error.errno in (errno.ENOSPC, errno.EDQUOT) else Health.FAILED
        return ProbeResult(health, f"{outcome.cause}. {outcome.cure}.")
    return ProbeResult(Health.OK, f"{folder} can be written, {free_space(folder)}")


def _of_trouble(error: OutOfTime | NotSynced | OSError, folder: str, key: str) -> Outcome:
    """What an exception of `store` comes to."""
    if isinstance(error, OutOfTime):
        cause = f"{folder} did not take the whole file in time; no half of it is there"
        return Outcome(Verdict.RETRIABLE, cause, "Check the disk, or raise connect.ems.sink.put.timeout.ms")
    if isinstance(error, NotSynced):
        cause = f"{folder} has the file, but it may not survive a power failure: {_words(error.__cause__)}"
        return Outcome(Verdict.UNKNOWN, cause, "Check the disk")
    verdict = Verdict.REFUSED if error.errno in _REFUSED else Verdict.RETRIABLE
    cause = f"{folder} does not take the file: {_words(error)} ({free_space(folder)})"
    cure = _CURES.get(error.errno or 0, "Check the folder and the disk it is on").format(key=key)
    return Outcome(verdict, cause, cure)


def _words(error: BaseException | None) -> str:
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else str(error)
