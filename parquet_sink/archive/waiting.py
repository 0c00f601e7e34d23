"""Accepted files that wait for an archive, in a folder of the connector below `tmp.dir`: whoever ends loses none.

Workers put them there, by a second name for the same bytes, and the program archives them (`archive.archiver`).
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from parquet_sink.archive.keys import MAX_WAITING_BYTES
from parquet_sink.archive.store import LocalFile
from parquet_sink.files.naming import LOCK_FILE
from parquet_sink.process.running import is_locked


@dataclass(frozen=True)
class Waiting:
    """A file that waits. since_ns: as the file system tells it."""

    file: LocalFile
    since_ns: int


class WaitingFolder:
    """folder: of one connector. max_bytes: about the most that may wait: processes look side by side."""

    def __init__(self, folder: str, max_bytes: int = 0) -> None:
        self._folder, self._max_bytes = folder, max_bytes

    @property
    def tended(self) -> bool:
        """Whether the connector's program runs on this machine, so that what is put here is archived."""
        return is_locked(os.path.join(os.path.dirname(self._folder), LOCK_FILE))

    def put(self, file: LocalFile) -> str | None:
        """Why a file cannot wait here, with the cure; None when it does. One that waits already does so once."""
        waiting = self.size_bytes
        if waiting + file.size_bytes > self._max_bytes:
            return f"{waiting:,} bytes wait for the archive already; see why, or raise {MAX_WAITING_BYTES}"
        place = os.path.join(self._folder, file.where)
        try:
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            with suppress(FileExistsError):
                os.link(file.path, place)
        except OSError as error:
            return f"it cannot wait in {self._folder}: {os.strerror(error.errno or 0)}"
        return None

    def files(self) -> list[Waiting]:
        """What waits, the longest first."""
        return sorted(self._files(), key=lambda one: one.since_ns)

    @property
    def size_bytes(self) -> int:
        """Of all that waits."""
        return sum(one.file.size_bytes for one in self._files())

    def remove(self, one: Waiting) -> None:
        """It waits no more. Raises OSError."""
        os.unlink(one.file.path)

    def clear(self) -> int:
        """Nothing waits any more. Gives how many files did."""
        count = len(self.files())
        shutil.rmtree(self._folder, ignore_errors=True)
        return count

    def _files(self) -> Iterator[Waiting]:
        for folder, _, names in os.walk(self._folder):
            for name in names:
                path = os.path.join(folder, name)
                with suppress(FileNotFoundError):
                    found = os.lstat(path)
                    local = LocalFile(path, os.path.relpath(path, self._folder), found.st_size)
                    yield Waiting(local, found.st_ctime_ns)
