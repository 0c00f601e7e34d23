"""What a running connector owns on this machine: its lock, its run folder, and its state store."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from parquet_sink.files.lock import ConnectorLock
from parquet_sink.files.storage import prepare, prepare_connector, remove_leftovers
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.spark import handoff
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import Field


class RunFiles:
    """From `prepare` to `close`. handoff and state are None until then.

    make_ready: what the kind of connector needs beside them; raises ConnectorError.
    """

    def __init__(self, settings: ConnectorSettings, folder: Path, make_ready: Callable[[], None]) -> None:
        self._settings, self._folder, self._make_ready = settings, folder, make_ready
        self._lock = ConnectorLock(settings.tmp_dir, settings.name)
        self.handoff: handoff.Handoff[ConnectorSettings] | None = None
        self.state: SqliteStore | None = None

    def prepare(self) -> None:
        """Takes the lock, removes what an earlier run left, and makes folder and store. Raises ConnectorError."""
        tmp_dir = self._settings.tmp_dir
        prepare(tmp_dir)
        self._lock.acquire()
        remove_leftovers(tmp_dir, self._settings.name)
        self._make_ready()
        self.state = SqliteStore.for_new_run(handoff.state_path(self._settings))
        self.handoff = handoff.write(self._settings, self._folder, self.state.ids)

    def missing(self) -> list[Path]:
        """Of the files that the connector's processes share, those that somebody removed or replaced."""
        assert self.handoff is not None
        assert self.state is not None
        here = [path for path in self.handoff.files if not path.exists()]
        return [*here, *self.state.removed(), *([self._lock.path] if self._lock.lost() else [])]

    def restore(self, fields: Mapping[Field[Any], bool | int | str | None]) -> None:
        """Creates what is missing again, from what this process holds. fields: of a new store.

        Raises AnotherInstance where somebody else took the lock meanwhile, StorageFailed, OSError.
        """
        assert self.handoff is not None
        assert self.state is not None
        if not self.missing():
            return
        prepare_connector(self._settings.tmp_dir, self._settings.name)
        if self._lock.lost():
            self._lock.release()
            self._lock.acquire()
        if self.state.removed():
            self.state = self.state.again()
            for field, value in fields.items():
                self.state.set(field, value)
        self.handoff = handoff.write(self._settings, self._folder, self.state.ids, self.handoff.instance)

    def close(self, users: "Sequence[Future[Any]]" = ()) -> None:
        """Releases the lock and removes the run folder; the store's file stays.

        users: threads that may be using the store, which would not survive its end: the last of them to end closes it.
        """
        if self.state is not None:
            _after(users, self.state.close)
        self._lock.release()
        shutil.rmtree(self._folder, ignore_errors=True)


def _after(users: "Sequence[Future[Any]]", act: Callable[[], None]) -> None:
    if users:
        users[0].add_done_callback(lambda done: _after(users[1:], act))
    else:
        act()
