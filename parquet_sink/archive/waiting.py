"""Accepted files that wait for an archive, in a folder of the connector below `tmp.dir`: whoever ends loses none.

Workers put them there, by a second name for the same bytes, and the program archives them (`archive.archiver`):

    .archive/<topic>/<file name>/<SHA-256>-<bytes>

That name says what the file was when it was verified. It is given to bytes that are on the disk already, and is on the
disk itself, with the folders above it, before the file counts as waiting: so it survives a power failure. What does not
is known by it (`altered`).
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from parquet_sink.archive.archive import LocalFile
from parquet_sink.archive.settings import MAX_WAITING_BYTES
from parquet_sink.files.lock import is_locked
from parquet_sink.files.naming import LOCK_FILE

_AS_VERIFIED: Final = re.compile(r"([0-9a-f]{64})-(\d+)")
_TRIES: Final = 3
"""Whoever removes the same file that waits may remove its folder under our hands."""


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
        for tried in range(_TRIES):
            try:
                self._put(file)
                break
            except OSError as error:
                if tried + 1 == _TRIES or not isinstance(error, FileNotFoundError):
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
        with suppress(OSError):  # of an older version: it is the topic's
            os.rmdir(os.path.dirname(one.file.path))

    def clear(self) -> int:
        """Nothing waits any more. Gives how many files did."""
        count = len(self.files())
        shutil.rmtree(self._folder, ignore_errors=True)
        return count

    def _put(self, file: LocalFile) -> None:
        """One that waits already was verified by an earlier run; what was verified just now takes its place."""
        from parquet_sink.files.parquet import sha256_of  # loads Arrow, which workers have
        from parquet_sink.files.storage import sync_file, sync_folder

        folder = os.path.join(self._folder, file.where)
        place = os.path.join(folder, f"{file.digest or sha256_of(file.path)}-{file.size_bytes}")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        sync_file(file.path)
        try:
            os.link(file.path, place)
        except FileExistsError:
            if not os.path.samefile(file.path, place):
                os.unlink(place)
                os.link(file.path, place)
        for _ in range(file.where.count("/") + 3):  # up to the connector's folder
            sync_folder(folder)
            folder = os.path.dirname(folder)

    def _files(self) -> Iterator[Waiting]:
        for folder, _, names in os.walk(self._folder):
            for path in (os.path.join(folder, name) for name in names):
                with suppress(FileNotFoundError):
                    yield Waiting(self._local(path), os.lstat(path).st_ctime_ns)

    def _local(self, path: str) -> LocalFile:
        """Under a name of another form waits what an older version put there: of that nothing more is known."""
        folder, name = os.path.split(path)
        if (verified := _AS_VERIFIED.fullmatch(name)) is None:
            return LocalFile(path, os.path.relpath(path, self._folder), os.lstat(path).st_size)
        return LocalFile(path, os.path.relpath(folder, self._folder), int(verified[2]), verified[1])


def altered(file: LocalFile) -> str | None:
    """Why a file is not what began to wait; None when it is. Raises OSError."""
    from parquet_sink.files.parquet import sha256_of  # loads Arrow, which an open archive has

    size_bytes = os.lstat(file.path).st_size
    if size_bytes != file.size_bytes:
        how = f"it has {size_bytes:,} bytes, and had {file.size_bytes:,}"
    elif file.digest is not None and (digest := sha256_of(file.path)) != file.digest:
        how = f"its SHA-256 is {digest}, and was {file.digest}"
    else:
        return None
    return f"{file.path} is not what began to wait: {how}"
