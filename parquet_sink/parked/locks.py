"""Who may change a connector's parked files: one process at a time for each change, one replay at a time at all.

The operating system lets go of a lock when its process ends, however it ends. The files stay: removing them would let
two processes lock two files of one name.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from parquet_sink.errors import AnotherInstance, StorageFailed
from parquet_sink.files.storage import storage_trouble
from parquet_sink.parked.files import PARKING

CHANGES: Final = ".lock"
REPLAY: Final = ".replay.lock"
PATIENCE_S: Final = 60.0
"""How long one change waits for others, which take well below a second each."""
POLL_S: Final = 0.02


@contextmanager
def changing(
    folder: str,
    patience_s: float = PATIENCE_S,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """No other process changes the folder's files within the block. Raises StorageFailed."""
    descriptor = _opened(folder, CHANGES)
    try:
        deadline = monotonic() + patience_s
        while not _locked(folder, descriptor):
            if monotonic() >= deadline:
                raise StorageFailed(
                    f"Another process has been changing parked records in folder {folder} for {patience_s:.0f} s; end "
                    f"it if it hangs. {PARKING.kept}"
                )
            sleep(POLL_S)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def replaying(folder: str) -> Iterator[None]:
    """No other replay of the folder runs within the block. Raises AnotherInstance when one does, StorageFailed."""
    descriptor = _opened(folder, REPLAY)
    try:
        if not _locked(folder, descriptor):
            raise AnotherInstance(
                f"The parked records in folder {folder} are being replayed already; wait until that has ended."
            )
        yield
    finally:
        os.close(descriptor)


def _opened(folder: str, name: str) -> int:
    with storage_trouble(folder, "open the lock file of parked records", PARKING):
        return os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _locked(folder: str, descriptor: int) -> bool:
    with storage_trouble(folder, "lock parked records", PARKING):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
