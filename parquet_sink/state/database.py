"""The SQLite file of a connector's state: its tables, and which files it is.

SQLite keeps two files beside it, which belong to it as long as anybody has it open: a process that finds another one
under one of the three names writes what the others never read. So who opens the store of a run that goes on says by
device and inode which files these are, and each use compares them.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from parquet_sink.errors import RunFilesLost
from parquet_sink.process.private_file import make_private

RUN_TABLES: Final = {
    "event": "id integer primary key, digest blob not null unique, body text not null",
    "accepted": "topic text, partition int, body text not null, primary key (topic, partition)",
    "progress": "topic text, partition int, body text not null, primary key (topic, partition)",
    "field": "name text primary key, body text not null",
}
"""Forgotten when a run begins."""
LEARNED_TABLES: Final = {
    "knowledge": "id integer primary key, topic text, schema blob, bytes_per_row real, bytes_per_record real",
    "planned": (
        "topic text, partition int, start int, end int, reason text, recipe text, knowledge int, "
        "primary key (topic, partition)"
    ),
    "sizes": "topic text primary key, value_bytes real, file_bytes real",
    "delivered": "topic text, partition int, next_offset int, topic_id text, primary key (topic, partition)",
}
FORMER_TABLES: Final = ("receipt", "watch", "word")
"""Of earlier versions' runs."""
COMPANIONS: Final = ("", "-wal", "-shm")
"""Ends of the names of the file and of the two beside it."""
FileIds = Sequence[tuple[int, int] | None]
"""Device and inode of the file and of those beside it, in the order of COMPANIONS; None for one that is not there."""


class Database:
    """Opens the file at `path`. Each process opens its own.

    expected: the files of a run that goes on, which must be there, and are compared at each use; None: the file is made
    when it is absent, and nothing is compared. ids: which files these are. Raises RunFilesLost, sqlite3.DatabaseError.
    """

    def __init__(self, path: str | Path, expected: FileIds | None = None) -> None:
        self._path, self._expected = Path(path), expected
        self._own_files = _files(self._path)
        self._require_ours()
        mode = "rwc" if expected is None else "rw"
        if expected is None:
            make_private(self._path)
        where = f"{self._path.absolute().as_uri()}?mode={mode}"
        with self.losses_told():
            self._connection = sqlite3.connect(
                where, timeout=30.0, isolation_level=None, check_same_thread=False, uri=True
            )
        try:
            self._set_up(made=expected is None)
        except BaseException:
            self._connection.close()
            raise
        self.ids = tuple(_id(path) for path in self._own_files) if expected is None else expected

    def _set_up(self, *, made: bool) -> None:
        with self.losses_told():
            self._connection.execute("pragma synchronous=off")
        if made:
            self._connection.execute("pragma journal_mode=wal")
            self._create_tables()

    def removed(self) -> list[Path]:
        """Those of its files that were removed, or are others now."""
        return [path for path, was in zip(self._own_files, self.ids, strict=False) if was not in (None, _id(path))]

    @contextmanager
    def losses_told(self) -> Iterator[None]:
        """Raises RunFilesLost in place of the error that SQLite makes of a file that goes just now."""
        try:
            yield
        except sqlite3.DatabaseError:
            self._require_ours()
            raise

    @property
    def _db(self) -> sqlite3.Connection:
        self._require_ours()
        return self._connection

    def _require_ours(self) -> None:
        for path, was in zip(self._own_files, self._expected or (), strict=False):
            if was not in (None, _id(path)):
                raise RunFilesLost(removed_message(path))

    def _create_tables(self) -> None:
        for name, columns in {**RUN_TABLES, **LEARNED_TABLES}.items():
            self._db.execute(f"create table if not exists {name} ({columns})")

    def _drop_run_tables(self) -> None:
        for name in (*RUN_TABLES, *FORMER_TABLES):
            self._db.execute(f"drop table if exists {name}")
        self._create_tables()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("begin immediate")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")

    def close(self) -> None:
        self._connection.close()


def remove_files(path: Path) -> None:
    """Removes the file and those beside it, as far as they are there. Raises OSError."""
    for one in _files(path):
        one.unlink(missing_ok=True)


def removed_message(path: Path) -> str:
    """What is said of a file that is not there any more, or is another one now."""
    return (
        f"{path} was removed while it was in use, or replaced; it is made again. Keep others out of "
        f"connect.ems.tmp.dir. Nothing is lost: what is not committed is read again."
    )


def _files(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in COMPANIONS]


def _id(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
