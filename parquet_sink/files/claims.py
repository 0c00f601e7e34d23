"""One attempt at a time owns a topic-partition on a machine: a lock file in the connector's folder below `tmp.dir`.

An attempt whose Spark task was given up may go on for a while (a worker that Spark lost sight of), and its successor
must not send newer files while an older one may still be under way. So the newest attempt writes its name into the
file, which ends the older one before its next request; then it waits for the lock, which the older one, or its death,
lets go. On a cluster each machine has its own files: there Spark's killing of the lost task's worker is what ends it.
"""

import fcntl
import os
import time
from collections.abc import Callable
from typing import Final

from parquet_sink.files.lock import is_file_of
from parquet_sink.files.storage import storage_trouble

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
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
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
