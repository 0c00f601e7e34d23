"""One instance of a connector on a machine: a lock file below `tmp.dir`, and whether one is held.

The operating system releases the lock when the process ends, however it ends. It guards the local files; instances on
different machines are told apart by the offset commits.
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
from typing import Self

from parquet_sink.errors import AnotherInstance, StorageFailed
from parquet_sink.files import naming
from parquet_sink.files.cleanup import prepare_connector
from parquet_sink.files.storage import storage_trouble

LOCKS = Path("/proc/locks")


def is_locked(path: str, locks: Path = LOCKS) -> bool:
    """Whether any process of this machine holds an flock of the file; False where that cannot be known."""
    try:
        inode = os.stat(path).st_ino
        lines = locks.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return False
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


def is_file_of(path: str | Path, descriptor: int) -> bool:
    """Whether the file of this name is the one that is open here."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except (FileNotFoundError, NotADirectoryError):
        return False


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
