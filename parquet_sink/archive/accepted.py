"""Files that a target accepted and an archive does not have yet, remembered by one process."""

import threading
import time
from collections.abc import Callable
from typing import Final

from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.targets.outcome import Outcome
from parquet_sink.targets.target import Target

MOST: Final = 1_000
FOR_S: Final = 900.0
_Key = tuple[str, str | None, str, str | None]


class AcceptedFiles:
    """At most MOST, for FOR_S each, so that whoever resets offsets has files sent again. monotonic: seconds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._files: dict[_Key, tuple[float, Outcome]] = {}
        self._lock = threading.Lock()

    def get(self, target: Target, file: FinishedFile) -> Outcome | None:
        """What the target said when it accepted the file; None when that is not known."""
        with self._lock:
            at_s, outcome = self._files.get(_key(target, file), (0.0, None))
        return outcome if self._monotonic() - at_s < FOR_S else None

    def add(self, target: Target, file: FinishedFile, outcome: Outcome) -> None:
        """The target accepted the file."""
        with self._lock:
            self._files[_key(target, file)] = self._monotonic(), outcome
            if len(self._files) > MOST:
                del self._files[next(iter(self._files))]

    def remove(self, target: Target, file: FinishedFile) -> None:
        """The archive has it, too."""
        with self._lock:
            self._files.pop(_key(target, file), None)


def _key(target: Target, file: FinishedFile) -> _Key:
    return target.name, file.table, file.name, file.digest
