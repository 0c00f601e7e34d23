"""A folder as an archive."""

import errno
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from parquet_sink.archive.layout import connector_folder
from parquet_sink.archive.settings import URL, FolderPlace
from parquet_sink.archive.store import ArchivedFile, LocalFile
from parquet_sink.errors import ArchiveUnusable
from parquet_sink.files.storage import storage_trouble, sync_folder
from parquet_sink.targets.directory.outcomes import of_stored, of_trouble, probed
from parquet_sink.targets.directory.storing import (
    PARTIAL_FOLDER,
    NotSynced,
    OutOfTime,
    Source,
    Stored,
    store,
    sweep,
)
from parquet_sink.targets.outcome import Outcome, ProbeResult

_OTHER: Final = f"{URL} to another folder"


class DirectoryArchive:
    """Implements `archive.store.ArchiveStore`. The folder must be there: it may be where something is mounted.

    monotonic, now: seconds.
    """

    def __init__(
        self,
        place: FolderPlace,
        connector: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.name = place.address
        self._root = place.folder
        self._base = os.path.join(place.folder, connector_folder(connector))
        self._monotonic, self._now = monotonic, now
        self._swept, self._synced = set[str](), set[str]()

    def keep(self, file: LocalFile, seconds_left: float) -> Outcome:
        """A system call that does not return (a network mount that hangs) holds up the deadline."""
        end = self._monotonic() + seconds_left
        folder, name = os.path.split(os.path.join(self._base, file.where))
        try:
            for one in (self._base, folder):
                self._make_folder(one)
            self._sweep(folder)
            stored = self._store(file, folder, name, end)
        except (OutOfTime, NotSynced, OSError) as error:
            return of_trouble(error, folder, URL)
        return of_stored(stored, file.path, os.path.join(folder, name), _OTHER)

    def _store(self, file: LocalFile, folder: str, name: str, end: float) -> Stored:
        return store(Source(file.path, file.size_bytes, file.digest), folder, name, lambda: self._monotonic() >= end)

    def _make_folder(self, folder: str) -> None:
        """Within one that is there. Who made it may have died before its name was on the disk."""
        if folder not in self._synced or not os.path.isdir(folder):
            with suppress(FileExistsError):
                os.mkdir(folder)
            sync_folder(os.path.dirname(folder))
            self._synced.add(folder)

    def _sweep(self, folder: str) -> None:
        """What a killed process left there is removed at its first use."""
        if folder not in self._swept:
            self._swept.add(folder)
            sweep(folder, self._now())

    def probe(self, seconds_left: float) -> ProbeResult:
        return probed(self._base if os.path.isdir(self._base) else self._root, URL)

    def files(self) -> Iterator[ArchivedFile]:
        with self._readable():
            if not os.path.isdir(self._root):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            if os.path.isdir(self._base):
                yield from self._below(self._base)

    def _below(self, folder: str) -> Iterator[ArchivedFile]:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != PARTIAL_FOLDER:
                    yield from self._below(entry.path)
            else:
                size_bytes = entry.stat(follow_symlinks=False).st_size
                yield ArchivedFile(os.path.relpath(entry.path, self._base), size_bytes)

    def digest(self, where: str) -> str | None:
        with self._readable(), suppress(FileNotFoundError), open(os.path.join(self._base, where), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
        return None

    def fetch(self, where: str, path: str) -> bool:
        with self._readable(), suppress(FileNotFoundError), open(os.path.join(self._base, where), "rb") as file:
            with storage_trouble(os.path.dirname(path), "write a file of the archive"), open(path, "xb") as local:
                shutil.copyfileobj(file, local, 1 << 20)
            return True
        return False

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            cause = os.strerror(error.errno) if error.errno else str(error)
            raise ArchiveUnusable(
                f"Archive {self.name} cannot be read: {cause}. Check {URL}, and the disk that it is on."
            ) from None

    def close(self) -> None:
        """Nothing is open between files."""
