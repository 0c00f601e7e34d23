"""Upserting behind the answers: one thread puts accepted files into their tables, in order of acceptance.

Several waiting files of one target and one schema go in as one statement. What went in is noted in the same DuckDB
transaction, so that a crash between that commit and the journal's state repeats nothing.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Final

from parquet_sink.addons.devkit.target.contract import StoredFile
from parquet_sink.addons.devkit.target.store import FileStore
from parquet_sink.addons.devkit.target.tables import Tables, UpsertFailed, one_line

MAX_FILES_AT_ONCE: Final = 32
GATHER_S: Final = 0.5
"""Files that come within it go in together: a statement for each takes most of the CPU that small files cost here."""
_IDLE_CHECK_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0

logger = logging.getLogger(__name__)


class Upserter:
    """Owns the background thread. A file that cannot be upserted is recorded as failed; the thread goes on."""

    def __init__(self, store: FileStore, tables: Tables) -> None:
        self._store, self._tables = store, tables
        self._busy = threading.Lock()
        self._news, self._hurried = threading.Event(), threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="upsert", daemon=True)

    def start(self) -> None:
        """Settle what a crash left undecided, then begin."""
        self._settle_applied()
        self._thread.start()

    def notify(self) -> None:
        """A file was accepted."""
        self._news.set()

    def hurry(self) -> None:
        """Somebody waits for what was accepted so far."""
        self._hurried.set()
        self._news.set()

    def stop(self) -> None:
        """Finish the statement in progress; what still waits goes on at the next start with the same folder."""
        self._stopping = True
        self.hurry()
        self._thread.join()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """No upsert runs inside this block."""
        with self._busy:
            yield

    def work(self) -> bool:
        """Upsert the files whose turn it is. False when none waits."""
        with self._busy:
            waiting = self._store.journal.waiting(MAX_FILES_AT_ONCE)
            if not waiting:
                return False
            self._upsert_first_of(waiting)
            return True

    def _run(self) -> None:
        pause_s = _IDLE_CHECK_S
        while not self._stopping:
            self._news.clear()
            self._hurried.clear()
            try:
                while not self._stopping and self.work():
                    pause_s = _IDLE_CHECK_S
            except Exception:  # the thread must outlive a defect or a full disk; the files still wait in the journal
                logger.exception("upserting stopped for now; it is tried again when the next file comes or in a moment")
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            if self._news.wait(pause_s):
                self._hurried.wait(GATHER_S)

    def _settle_applied(self) -> None:
        undecided = sorted(self._tables.applied() & self._store.journal.waiting_sequences())
        for start in range(0, len(undecided), MAX_FILES_AT_ONCE):
            self._store.journal.settle(undecided[start : start + MAX_FILES_AT_ONCE], "upserted")

    def _upsert_first_of(self, waiting: Sequence[StoredFile]) -> None:
        first = waiting[0]
        try:
            columns = self._tables.columns_of_file(self._store.path(first))
            group = [first, *takewhile(lambda file: self._fits(file, first, columns), waiting[1:])]
            try:
                self._apply(group, columns)
            except UpsertFailed:
                if len(group) == 1:
                    raise
                group = [first]  # one bad file must not take the others with it
                self._apply(group, columns)
        except UpsertFailed as reason:
            logger.warning("file %s for target %s is not upserted: %s", first.name, first.parameters.target, reason)
            self._store.journal.settle([first.sequence], "failed", one_line(reason))
        else:
            self._store.journal.settle([file.sequence for file in group], "upserted")

    def _fits(self, file: StoredFile, first: StoredFile, columns: dict[str, str]) -> bool:
        asked, other = file.parameters, first.parameters
        if (asked.primary_keys, asked.order_column) != (other.primary_keys, other.order_column):
            return False
        try:
            found = self._tables.columns_of_file(self._store.path(file))
        except UpsertFailed:
            return False  # its own turn comes, and tells the reason
        return list(found.items()) == list(columns.items())

    def _apply(self, group: Sequence[StoredFile], columns: dict[str, str]) -> None:
        paths: dict[int, Path] = {file.sequence: self._store.path(file) for file in group}
        asked = group[0].parameters
        self._tables.apply(asked.target, paths, asked.primary_keys, asked.order_column, columns)
