"""A folder as a target: one attempt to put one file there, and whether it could be done."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import component
from parquet_sink.files.storage import sync_folder
from parquet_sink.targets.directory.outcomes import of_stored, of_trouble, probed
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.directory.storing import NotSynced, OutOfTime, Source, store, sweep
from parquet_sink.targets.outcome import Outcome, ProbeResult

ENDPOINT_KEY: Final = "connect.ems.endpoint"
_OTHER: Final = f"connect.ems.target.table or {ENDPOINT_KEY} to another folder"


class DirectoryTarget:
    """Puts files into `<folder>/<table>/`; threads and processes may do so side by side.

    The folder must be there: where it is a mount, files would else end up below an empty mount point. monotonic, now:
    seconds.
    """

    def __init__(
        self,
        settings: DirectorySettings,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._root = settings.folder
        self._table = settings.target_table
        self._monotonic, self._now = monotonic, now
        self._swept, self._synced = set[str](), set[str]()
        self._swept_folder(None)

    @property
    def name(self) -> str:
        """The folder with the scheme."""
        return f"directory:{self._root}"

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        """One attempt. A system call that does not return (a network mount that hangs) holds up the deadline."""
        end = self._monotonic() + seconds_left
        source, folder = Source(file.path, file.size_bytes, file.digest), self._swept_folder(file.table)
        try:
            self._make_folder(folder)
            stored = store(source, folder, file.name, lambda: self._monotonic() >= end)
        except (OutOfTime, NotSynced, OSError) as error:
            return of_trouble(error, folder, ENDPOINT_KEY)
        return of_stored(stored, file.path, os.path.join(folder, file.name), _OTHER)

    def probe(self, seconds_left: float) -> ProbeResult:
        """Writes a small file beside the others and removes it."""
        folder = self._swept_folder(None)
        return probed(folder if os.path.isdir(folder) else self._root, ENDPOINT_KEY)

    def close(self) -> None:
        """Nothing is open between files."""

    def _swept_folder(self, table: str | None) -> str:
        """The folder of a table, None for that of the settings; what was left there is removed at its first use."""
        folder = os.path.join(self._root, component(table or self._table))
        if folder not in self._swept:
            self._swept.add(folder)
            sweep(folder, self._now())
        return folder

    def _make_folder(self, folder: str) -> None:
        """Who made it may have died before its name was on the disk."""
        if folder not in self._synced or not os.path.isdir(folder):
            with suppress(FileExistsError):
                os.mkdir(folder)
            sync_folder(self._root)
            self._synced.add(folder)
