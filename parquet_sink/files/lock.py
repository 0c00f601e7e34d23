"""Locks on a machine: one instance of a connector, and one attempt at a topic-partition at a time.

They are lock files in the connector's folder below `tmp.dir`. The operating system releases a lock when the process
ends, however it ends. They guard the local files; instances on different machines are told apart by the offset commits.

An attempt whose Spark task was given up may go on for a while (a worker that Spark lost sight of), and its successor
must not send newer files while an older one may still be under way. So the newest attempt writes its name into the
file of the topic-partition, which ends the older one before its next request; then it waits for the lock, which the
older one, or its death, lets go. On a cluster each machine has its own files: there Spark's killing of the lost task's
worker is what ends it.
"""

import errno
import fcntl
import json
import os
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from parquet_sink.errors import AnotherInstance, StorageFailed
from parquet_sink.files import naming
from parquet_sink.files.storage import is_file_of, prepare_connector, storage_trouble

LOCKS = Path("/proc/locks")
LOOKS: Final = 4
"""How often Linux's list is read before a lock is not in it: where others come and go meanwhile, it leaves some out."""


def is_locked(path: str, locks: Path = LOCKS) -> bool:
    """Whether any process of this machine holds an flock of the file; False where that cannot be known."""
    try:
        inode = os.stat(path).st_ino
        return any(_is_listed(inode, locks) for _ in range(LOOKS))
    except OSError:
        return False


def _is_listed(inode: int, locks: Path) -> bool:
    lines = locks.read_text(encoding="ascii", errors="replace").splitlines()
    held = (line.split() for line in lines if "->" not in line)
    return any(len(one) > 5 and one[1] == "FLOCK" and one[5].rpartition(":")[2] == str(inode) for one in held)


class ConnectorLock:
    """Holds `<tmp.dir>/<connector>/.lock`; use as a context manager, or `acquire` and `release`."""

    def __init__(self, tmp_dir: str, connector: str, clock: Callable[[], float] = time.time) -> None:
        self._tmp_dir, self._connector, self._clock = tmp_dir, connector, clock
        self._descriptor: int | None = None

    @property
    def path(self) -> Path:
        """Of the lock file."""
        return Path(naming.connector_folder(self._tmp_dir, self._connector), naming.LOCK_FILE)

    def lost(self) -> bool:
        """Whether the file that it holds was removed or replaced: another process could lock one of that name."""
        return self._descriptor is not None and not is_file_of(self.path, self._descriptor)

    def acquire(self) -> None:
        """Raises AnotherInstance when a living process holds it, StorageFailed when the folder cannot be used.

        That is also so where locks do not work.
        """
        folder, path = prepare_connector(self._tmp_dir, self._connector), self.path
        require_locks(folder, self._tmp_dir)
        with storage_trouble(folder, "open the lock file"):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(descriptor)
            os.close(descriptor)
            raise AnotherInstance(
                f"Connector {self._connector} is already running on this machine ({holder}; lock file {path}). "
                f"Stop that one first, or give this one another name."
            ) from None
        with storage_trouble(folder, "write the lock file"):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "started_at": self._clock()}).encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Gives the lock up. The file stays: removing it would let two processes lock two files of one name."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def require_locks(folder: str, tmp_dir: str) -> None:
    """Takes both kinds of locks that we depend on, `flock` and SQLite's, and asks for each a second time.

    Raises StorageFailed where one cannot be taken, or is given twice: some network file systems have none.
    """
    probe = os.path.join(folder, f"{naming.LOCK_FILE}-probe-{os.getpid()}-{os.urandom(4).hex()}")
    with storage_trouble(folder, "write a file"):
        first = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        second = os.open(probe, os.O_RDWR | os.O_CLOEXEC)
        try:
            cause = _broken_lock(_flock, first, second) or _broken_lock(_record_lock, first, second)
        finally:
            os.close(second)
    finally:
        os.close(first)
        with suppress(OSError):
            os.unlink(probe)
    if cause:
        raise StorageFailed(
            f"File locks do not work in folder {folder} (connect.ems.tmp.dir={tmp_dir}): {cause}. Without them two "
            f"attempts at the same offsets could run at the same time. Set connect.ems.tmp.dir to a folder on a local "
            f"disk, or mount its file system with locks."
        )


def _broken_lock(lock: Callable[[int], object], first: int, second: int) -> str:
    """What is wrong with a kind of locks; empty when nothing is. first, second: two descriptors of one file."""
    try:
        lock(first)
    except OSError as error:
        return "" if error.errno == errno.EINVAL else os.strerror(error.errno or 0)  # EINVAL: not known to this kernel
    try:
        lock(second)
    except OSError as error:
        return "" if error.errno in (errno.EAGAIN, errno.EACCES) else os.strerror(error.errno or 0)
    return "a lock that was held was given a second time"


def _flock(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _record_lock(descriptor: int) -> None:
    """Of the open file, because SQLite's, which are of the process, would be given to this process twice."""
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))


def _read_holder(descriptor: int) -> str:
    """Who holds the lock, as far as its file tells."""
    try:
        holder = json.loads(os.pread(descriptor, 1024, 0))
        started = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(float(holder["started_at"])))
        return f"process {int(holder['pid'])}, started {started}"
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "process unknown"


PATIENCE_S: Final = 2.0
"""How long an attempt waits for its predecessor before it gives its Spark slot back."""
POLL_S: Final = 0.05


class PartitionClaim:
    """What one attempt holds of one topic-partition.

    path: the lock file, `naming.claim_file`. attempt: 32 hexadecimal digits, fresh for each attempt.
    """

    def __init__(
        self,
        path: str,
        attempt: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path, self._attempt = path, attempt.encode()
        self._monotonic, self._sleep = monotonic, sleep
        self._descriptor: int | None = None

    def acquire(self, patience_s: float = PATIENCE_S) -> bool:
        """Whether the topic-partition is ours now; False when the one before did not end in time, or a newer one came.

        Raises StorageFailed.
        """
        with storage_trouble(os.path.dirname(self._path), "claim a topic-partition"):
            self._descriptor = self._opened(0)
            deadline = self._monotonic() + patience_s
            while not (locked := self._locked()) and not self.superseded() and self._monotonic() < deadline:
                self._sleep(POLL_S)
        if not locked or self.superseded():
            self.release()
            return False
        return True

    def _opened(self, flags: int) -> int:
        """The file with our name in it. Raises OSError."""
        flags |= os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            descriptor = os.open(self._path, flags, 0o600)
        os.pwrite(descriptor, self._attempt, 0)
        return descriptor

    def _locked(self) -> bool:
        assert self._descriptor is not None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def superseded(self) -> bool:
        """Whether a newer attempt wants the topic-partition, or ours was let go.

        A file that somebody removed is made again, so that a newer attempt finds us there; if one was quicker, it won.
        """
        if self._descriptor is None or not (is_file_of(self._path, self._descriptor) or self._made_again()):
            return True
        return os.pread(self._descriptor, len(self._attempt), 0) != self._attempt

    def _made_again(self) -> bool:
        """Whether the file is ours again after it was removed."""
        try:
            descriptor = self._opened(os.O_EXCL)
        except FileExistsError:
            return False
        except OSError:  # nor can a newer attempt begin there
            return True
        self.release()
        self._descriptor = descriptor
        return self._locked()

    def release(self) -> None:
        """Lets go. The file stays: removing it would let two attempts lock two files of one name."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
