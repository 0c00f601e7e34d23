"""The state store in one SQLite file, and how a run begins with it."""

import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from parquet_sink.errors import StorageFailed
from parquet_sink.model.events import Event
from parquet_sink.model.ranges import Known
from parquet_sink.state.sqlite.events import SqliteEvents
from parquet_sink.state.sqlite.learned import SqliteLearned
from parquet_sink.state.sqlite.run import SqliteRun

log = logging.getLogger(__name__)

T = TypeVar("T")


class SqliteStore(SqliteRun, SqliteLearned, SqliteEvents):
    """Implements `state.store.StateStore`. Opens the file at `path`, making it when absent; each process its own."""

    @classmethod
    def for_new_run(cls, path: Path) -> "SqliteStore":
        """The store of a run that begins. A file that cannot be read is made anew. Raises StorageFailed."""
        try:
            store = cls(path)
            store.begin_run()
        except sqlite3.DatabaseError as error:
            log.warning("state file %s cannot be used (%s); it is made anew", path, error)
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            return cls._created(path)
        return store

    @classmethod
    def _created(cls, path: Path) -> "SqliteStore":
        try:
            return cls(path)
        except sqlite3.DatabaseError as error:
            raise StorageFailed(
                f"State file {path} cannot be made: {error}. "
                f"Check the disk, or set connect.ems.tmp.dir to another folder."
            ) from None

    def begin_run(self) -> None:
        """Forgets what belonged to an earlier run; what topics taught stays.

        Raises sqlite3.DatabaseError for a file that another version of this program made.
        """
        self.learned()
        self._drop_run_tables()


def learned_of(path: Path) -> dict[str, Known]:
    """What a connector learned of its topics, for whoever is not it; nothing where the file is absent or torn."""
    return _read(path, SqliteStore.learned) or {}


def events_of(path: Path) -> Sequence[Event]:
    """The latest events of a connector's run, or of its last; likewise."""
    return _read(path, lambda store: store.events_after(0).events) or ()


def _read(path: Path, ask: Callable[[SqliteStore], T]) -> T | None:
    if not path.exists():
        return None
    try:
        with closing(SqliteStore(path)) as store:
            return ask(store)
    except (sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:
        log.warning("state file %s cannot be read (%s); it is left as it is, and nothing is taken from it", path, error)
        return None
