"""The state store in one SQLite file, and how a run begins with it."""

import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, TypeVar

from parquet_sink.errors import StorageFailed
from parquet_sink.model.events import Event
from parquet_sink.model.ranges import Known
from parquet_sink.state.sqlite.database import LEARNED_TABLES, remove_files
from parquet_sink.state.sqlite.events import SqliteEvents
from parquet_sink.state.sqlite.learned import SqliteLearned
from parquet_sink.state.sqlite.run import SqliteRun

log = logging.getLogger(__name__)

T = TypeVar("T")
KEPT_TABLES: Final = (*LEARNED_TABLES, "progress")
"""What goes on when a file that is in use is lost."""


class SqliteStore(SqliteRun, SqliteLearned, SqliteEvents):
    """All that the processes of one connector tell each other. Opens the file at `path`; each process its own.

    A run has one file from its beginning to its end, which the program makes (`for_new_run`) and has open all the time.
    Its other processes open that file and no other: `SqliteStore(path, expected=ids)`, with the `ids` of the program's.
    """

    @classmethod
    def for_new_run(cls, path: Path) -> "SqliteStore":
        """The store of a run that begins. A file that cannot be read is made anew. Raises StorageFailed."""
        try:
            store = cls(path)
            store.begin_run()
        except sqlite3.DatabaseError as error:
            log.warning("state file %s cannot be used (%s); it is made anew", path, error)
            remove_files(path)
            return cls._created(path)
        return store

    def again(self) -> "SqliteStore":
        """A new file in place of this one, of which something was removed or replaced; this store is closed.

        What topics taught, and how topic-partitions stand, is in the new one: this process can read what it has open.
        Raises StorageFailed, OSError.
        """
        try:
            kept = {table: self._db.execute(f"select * from {table}").fetchall() for table in KEPT_TABLES}  # noqa: S608 - names of ours
        except sqlite3.DatabaseError as error:
            log.warning("state file %s cannot be read (%s); what it had learned is forgotten", self._path, error)
            kept = {}
        fresh = self._path.with_name(f"{self._path.name}.new")
        remove_files(fresh)
        with closing(self._created(fresh)) as store:
            store.take_over(kept)
        self.close()  # before there is a new file: SQLite removes, by its name, what was beside the old one
        remove_files(self._path)
        fresh.replace(self._path)
        return self._created(self._path)

    def take_over(self, kept: Mapping[str, Sequence[Sequence[object]]]) -> None:
        """Rows of another store, by table."""
        with self._transaction() as db:
            for table, rows in kept.items():
                for row in rows:
                    db.execute(f"insert into {table} values ({', '.join('?' * len(row))})", row)  # noqa: S608 - names of ours

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
        with closing(SqliteStore(path, expected=())) as store:
            return ask(store)
    except (sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:
        log.warning("state file %s cannot be read (%s); it is left as it is, and nothing is taken from it", path, error)
        return None
