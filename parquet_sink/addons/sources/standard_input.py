"""Standard input, copied to a file as it comes: the program reads it, and tasks in other processes read the file.

Lines that were read and not sent when the program ends are lost, as in Kafka Connect; nothing tells where they were.
"""

import logging
import os
import select
import threading
from typing import ClassVar, Final

from parquet_sink.errors import SourceFailed
from parquet_sink.files.storage import storage_trouble

CHUNK: Final = 1 << 16
LOOK_S: Final = 0.2
"""How soon a reader that is closed ends."""

log = logging.getLogger(__name__)


class StandardInput:
    """The file is made again at `start`, for this user alone. One connector of a process may read it."""

    _reader: ClassVar["StandardInput | None"] = None
    _taking: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: str, connector: str, descriptor: int = 0) -> None:
        self._path, self.connector, self._descriptor = path, connector, descriptor
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Raises SourceFailed when another connector reads it, StorageFailed when the file cannot be made."""
        with StandardInput._taking:
            other = StandardInput._reader
            if other is not None and other is not self:
                raise SourceFailed(
                    f"Connector {self.connector} reads standard input, and so does connector {other.connector}; name "
                    "a file in [file] of one of them."
                )
            StandardInput._reader = self
        with storage_trouble(os.path.dirname(self._path), "copy standard input to a file"):
            spool = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        self._thread = threading.Thread(target=self._copy, args=(spool,), name="standard-input", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until standard input has ended, or is read no more."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Somebody else may read it."""
        self._closing.set()
        self.wait()
        with StandardInput._taking:
            if StandardInput._reader is self:
                StandardInput._reader = None

    def _copy(self, spool: int) -> None:
        try:
            while not self._closing.is_set():
                ready, _, _ = select.select([self._descriptor], [], [], LOOK_S)
                if ready and not self._take(spool):
                    return
        except OSError as error:
            log.warning("connector %s: standard input is read no more: %s", self.connector, error.strerror)
        finally:
            os.close(spool)

    def _take(self, spool: int) -> bool:
        """Whether there may be more."""
        data = os.read(self._descriptor, CHUNK)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(spool, rest) :]
        return bool(data)
