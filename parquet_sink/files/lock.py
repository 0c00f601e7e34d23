"""One instance of a connector on a machine: a lock file below `tmp.dir`.

The operating system releases the lock when the process ends, however it ends. It guards the local files; instances on
different machines are told apart by the offset commits.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from parquet_sink.errors import AnotherInstance
from parquet_sink.files import naming
from parquet_sink.files.cleanup import prepare_connector
from parquet_sink.files.storage import storage_trouble


class ConnectorLock:
    """Holds `<tmp.dir>/<connector>/.lock`; use as a context manager, or `acquire` and `release`."""

    def __init__(self, tmp_dir: str, connector: str, clock: Callable[[], float] = time.time) -> None:
        self._tmp_dir, self._connector, self._clock = tmp_dir, connector, clock
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Raises AnotherInstance when a living process holds it, StorageFailed when the folder cannot be used."""
        folder = prepare_connector(self._tmp_dir, self._connector)
        path = os.path.join(folder, naming.LOCK_FILE)
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


def _read_holder(descriptor: int) -> str:
    """Who holds the lock, as far as its file tells."""
    try:
        holder = json.loads(os.pread(descriptor, 1024, 0))
        started = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(float(holder["started_at"])))
        return f"process {int(holder['pid'])}, started {started}"
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return "process unknown"
