"""What a running connector owns on this machine: its lock, its run folder, and its state store."""

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parquet_sink.archive.archiver import Archiver
from parquet_sink.archive.waiting import WaitingFolder
from parquet_sink.files import naming
from parquet_sink.files.cleanup import prepare, remove_leftovers
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.history.writer import HistoryWriter
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.runtime.archiving import archiver_of
from parquet_sink.spark import handoff
from parquet_sink.state.sqlite.store import SqliteStore
from parquet_sink.state.store import Field

log = logging.getLogger(__name__)


class RunFiles:
    """From `prepare` to `close`. handoff and state are None until then."""

    def __init__(self, settings: SinkSettings, folder: Path) -> None:
        self._settings, self._folder = settings, folder
        self._lock = ConnectorLock(settings.files.tmp_dir, settings.name)
        self.handoff: handoff.Handoff | None = None
        self.state: SqliteStore | None = None
        self._archiver: Archiver | None = None

    def prepare(self) -> None:
        """Takes the lock, removes what an earlier run left, and makes folder and store. Raises ConnectorError."""
        tmp_dir = self._settings.files.tmp_dir
        prepare(tmp_dir)
        self._lock.acquire()
        remove_leftovers(tmp_dir, self._settings.name)
        self._prepare_parked()
        self.handoff = handoff.write(self._settings, self._folder)
        self.state = SqliteStore.for_new_run(self.handoff.state_path)
        self._check_history()
        self._archive_what_waits()

    def _check_history(self) -> None:
        """A torn one is made anew before the first upload, and not when it is asked for."""
        history = HistoryWriter(self._settings.name, Path(self._settings.history_file), self._settings.history)
        history.check()
        history.close()

    def _archive_what_waits(self) -> None:
        """Also what waits of a time when the archive was not required; without an archive it waits for nothing."""
        name, archive = self._settings.name, self._settings.archive
        waiting = WaitingFolder(naming.waiting_folder(self._settings.files.tmp_dir, name))
        if archive is None:
            if count := waiting.clear():
                log.warning("connector %s: %d files waited for an archive, and there is none now", name, count)
        elif not archive.required or waiting.files():
            self._archiver = archiver_of(self._settings, archive)
            self._archiver.start()

    @property
    def archiver(self) -> Archiver | None:
        """What archives files behind the connector; None where nothing does."""
        return self._archiver

    def archived(self) -> bool:
        """Whether nothing more is archived, for a connector that has ended: it is waited for as long as for a stop."""
        return self._archiver is None or self._archiver.finished(self._settings.stop_timeout_ms / 1000)

    def _prepare_parked(self) -> None:
        if self._settings.errors.parks:
            from parquet_sink.parked.folder import ParkedFolder  # loads Arrow, for few connectors

            folder = self._settings.parked_folder
            ParkedFolder(folder, self._settings.name, self._settings.parked.max_bytes).prepare()

    def missing(self) -> list[Path]:
        """Of the files that the connector's processes share, those that somebody removed."""
        assert self.handoff is not None
        return [path for path in (*self.handoff.files, self.handoff.state_path) if not path.exists()]

    def restore(self, fields: Mapping[Field[Any], bool | int | None]) -> None:
        """Makes what is missing anew, from what this process holds. fields: of a new store.

        Raises StorageFailed, OSError.
        """
        assert self.handoff is not None
        assert self.state is not None
        if not self.missing():
            return
        self.handoff = handoff.write(self._settings, self._folder, self.handoff.instance)
        if self.handoff.state_path.exists():
            return
        self._lock.release()  # it may be of a file that is gone as well
        self._lock.acquire()
        self.state.close()
        self.state = SqliteStore.for_new_run(self.handoff.state_path)
        for field, value in fields.items():
            self.state.set(field, value)

    def close(self, *, in_use: bool = False) -> None:
        """Releases the lock and removes the run folder; the store's file stays.

        in_use: a thread may be using the store, which would not survive its end; that one's end closes it.
        """
        if self._archiver is not None:
            self._archiver.close()
        if self.state is not None and not in_use:
            self.state.close()
        self._lock.release()
        shutil.rmtree(self._folder, ignore_errors=True)
