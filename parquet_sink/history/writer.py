"""Writing the history, best effort: whatever goes wrong here is told, and stops nobody.

A file that is torn, or that another version made, is put aside as `<name>.damaged` in place of the last such one, and
made anew. What cannot be written otherwise (no space, no right, another writer for too long) is missing from the
history; that is told once until a write goes well again.
"""

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from parquet_sink.errors import HistoryUnusable
from parquet_sink.history.records import RangeRecord, UploadRecord
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import SqliteHistory, write_history
from parquet_sink.model.receipts import Archiving

log = logging.getLogger(__name__)

PRUNE_FILES: Final = 1_000
PRUNE_S: Final = 60.0
"""It is pruned after so many uploads, or so many seconds, whichever comes first."""


class HistoryWriter:
    """Of one process, which keeps the file open. now: epoch seconds. No method raises anything."""

    def __init__(
        self, connector: str, path: Path, settings: HistorySettings, now: Callable[[], float] = time.time
    ) -> None:
        self._connector, self._path, self._settings, self._now = connector, path, settings, now
        self._opened: SqliteHistory | None = None
        self._inode = 0
        self._unpruned, self._pruned_s = 0, 0.0
        self._told = False

    def add(self, files: Sequence[UploadRecord], ranges: Sequence[RangeRecord] = ()) -> None:
        """Adds uploads, and the ranges that they were cut from."""
        if self._settings.enabled and (files or ranges):
            self._act(lambda history: self._append(history, files, ranges))

    def note_archived(self, file_name: str, archiving: Archiving) -> None:
        """What became of a file at an archive."""
        if self._settings.enabled:
            self._act(lambda history: history.note_archived(file_name, archiving))

    def check(self) -> None:
        """Looks at all of the file, if there is one, and forgets what is too old or too much."""
        if self._settings.enabled and self._path.exists():
            self._act(self._checked)

    def close(self) -> None:
        """Lets go of the file."""
        opened, self._opened = self._opened, None
        if opened is not None:
            with suppress(Exception):
                opened.close()

    def _append(self, history: SqliteHistory, files: Sequence[UploadRecord], ranges: Sequence[RangeRecord]) -> None:
        if files:
            history.append_files(files)
        if ranges:
            history.append_ranges(ranges)
        self._unpruned += len(files)
        if self._unpruned >= PRUNE_FILES or not 0 <= self._now() - self._pruned_s < PRUNE_S:
            self._prune(history)

    def _checked(self, history: SqliteHistory) -> None:
        history.check()
        self._prune(history)

    def _prune(self, history: SqliteHistory) -> None:
        self._unpruned, self._pruned_s = 0, self._now()
        history.prune(round(self._now() * 1000))

    def _act(self, act: Callable[[SqliteHistory], None]) -> None:
        """Does it; once more with a new file where the one that is there is damaged."""
        try:
            try:
                act(self._history())
            except HistoryUnusable as error:
                if not error.damaged:
                    raise
                self._put_aside(error)
                act(self._history())
            self._told = False
        except Exception as error:  # noqa: BLE001 - see above: the history stops nobody
            self._tell(error)

    def _history(self) -> SqliteHistory:
        """The file, opened anew where it was removed or replaced."""
        if self._opened is not None and _inode(self._path) != self._inode:
            self.close()
        if self._opened is None:
            self._opened = write_history(self._path, self._settings)
            self._inode = _inode(self._path)
        return self._opened

    def _put_aside(self, error: HistoryUnusable) -> None:
        self.close()
        aside = self._path.with_name(f"{self._path.name}.damaged")
        log.warning(
            "connector %s: %s It is created again; only what it held is lost. The damaged file is kept as %s.",
            self._connector,
            error,
            aside,
        )
        os.replace(self._path, aside)
        for suffix in ("-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def _tell(self, error: Exception) -> None:
        self.close()
        if not self._told:
            log.warning(
                "connector %s: uploads are missing from the history: %s Files and offsets are not concerned.",
                self._connector,
                error,
            )
        self._told = True


_writers: dict[str, HistoryWriter] = {}


def writer_for(connector: str, path: Path, settings: HistorySettings) -> HistoryWriter:
    """The writer of this process for a file: opening it costs more than a micro-batch's rows."""
    return _writers.setdefault(str(path), HistoryWriter(connector, path, settings))


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
