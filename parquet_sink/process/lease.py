"""The lease of a worker of a cluster: until when what it runs is its own, in a file that its processes look at.

Membership in the workers' group renews it. Whoever sends anything looks at it right before: a process that was frozen
meanwhile, or a worker that brokers no longer reach, has lost what it ran to others by then. Times are of
CLOCK_BOOTTIME, which all processes of a machine share, which nobody sets, and which goes on while it sleeps.
"""

import fcntl
import hashlib
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from parquet_sink.errors import StorageFailed

PAUSE_S: Final = 1.0
"""After which it is looked again where the lease was over."""
OVER: Final = (
    "this worker's lease is over: it lost its session with the brokers, and another may have the connector by now"
)
LOCK: Final = "lock"
"""The file in the folder of leases that a worker locks as long as it lives."""
_FORM: Final = struct.Struct("<QQ")
_ALL_BITS: Final = (1 << 64) - 1


def clock_ns() -> int:
    """Nanoseconds since the machine was started."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class LeaseFile:
    """The worker's own. path: of a file in a folder that is there; it is made when it is written."""

    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, until_ns: int) -> None:
        """The lease ends then, by `clock_ns`; 0: it has ended, and the file is removed. Raises OSError."""
        if until_ns == 0:
            Path(self.path).unlink(missing_ok=True)
            return
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, _FORM.pack(until_ns, until_ns ^ _ALL_BITS), 0)
        finally:
            os.close(descriptor)

    def until_ns(self) -> int:
        """When the lease ends, or has ended; 0 where the file does not say."""
        return _until_ns(self.path)


class LeaseFolder:
    """A file for the lease of each member id, in a folder of this worker alone.

    What a worker runs looks at the one of the member id under which it began: while its worker has a lease again under
    another id, what the earlier stay began may still be at work, and another worker have its connector.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, member_id: str) -> str:
        return str(self._folder / f"lease-{hashlib.sha256(member_id.encode()).hexdigest()[:16]}")

    def write(self, member_id: str, until_ns: int) -> None:
        """The folder is there. Raises StorageFailed."""
        path = self.path(member_id)
        try:
            LeaseFile(path).write(until_ns)
        except OSError as error:
            raise StorageFailed(
                f"{path}: the worker's lease cannot be written ({error.strerror}). Make its folder writable."
            ) from None

    @contextmanager
    def prepared(self) -> Iterator[frozenset[str]]:
        """Removes leases of the worker's earlier lives; the paths of those that are known to have ended.

        A life holds the folder's lock as long as its program lives, and what that started sends nothing without a
        lease.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        alone = False
        try:
            with suppress(OSError):  # a living process has the lock, or there are no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                alone = True
            found = list(self._folder.glob("lease-*"))
            for old in found:
                old.unlink(missing_ok=True)
            yield frozenset(map(str, found if alone else ()))
        finally:
            os.close(descriptor)


def holds(path: str | None) -> bool:
    """Whether the lease in this file goes on; one that is gone has ended. None: of a worker that needs none."""
    return path is None or clock_ns() < _until_ns(path)


def _until_ns(path: str) -> int:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        found = os.pread(descriptor, _FORM.size, 0)
    except OSError:
        return 0
    finally:
        os.close(descriptor)
    if len(found) != _FORM.size:
        return 0
    until_ns, check = _FORM.unpack(found)
    return int(until_ns) if until_ns == check ^ _ALL_BITS else 0  # else it was read while it was written
