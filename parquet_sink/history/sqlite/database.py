"""The SQLite file of a history: its tables, how it is opened to write or to read, and what its errors mean."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from parquet_sink.errors import HistoryUnusable

VERSION: Final = 1
"""Of the tables. A file of another version is no history of this program."""
BUSY_S: Final = 2.0
"""How long a writer waits for another one."""

TABLES: Final = {
    "file": (
        "id integer primary key, key blob not null unique, file_name text not null, target_table text, "
        "topic text not null, partition int not null, first_offset int not null, last_offset int not null, "
        "rows int, records int, size_bytes int, digest text, reason text, oldest_ms int, outcome text not null, "
        "at_ms int not null, attempts int, tried text, upload_s real, write_s real, status int, answer_id text, "
        "cause text, topic_id text, target text, origin text, repeat int"
    ),
    "knowledge": "id integer primary key, body text not null unique",
    "range": (
        "id integer primary key, topic text not null, partition int not null, start int not null, end int not null, "
        "reason text, topic_id text, knowledge int not null, recipe text, version text, at_ms int not null, "
        "done_until int not null, "
        "unique (topic, partition, start, end, topic_id, recipe, knowledge, reason)"
    ),
}
ARCHIVED: Final = "archived"
"""Files at archives. A history that was made before there were archives has no such table, and gets it when written."""
_ARCHIVED_COLUMNS: Final = "file_name text not null primary key, place text not null, at_ms int not null, cause text"
INDEXES: Final = {
    "file_by_offset": "file (topic, partition, last_offset)",
    "file_by_name": "file (file_name)",
    "file_by_time": "file (at_ms)",
    "range_by_time": "range (at_ms)",
    "range_by_knowledge": "range (knowledge)",
}
WRITTEN: Final = "written"
"""What is done to a history whose tables were found right."""
LOG_BYTES: Final = 4 << 20
"""What SQLite's log beside the file is cut to, once it has grown beyond."""
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
_CANTOPEN: Final = sqlite3.SQLITE_CANTOPEN


@contextmanager
def history_trouble(path: Path, doing: str) -> Iterator[None]:
    """Errors of the file become HistoryUnusable."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        damaged = code is not None and code & 0xFF in _DAMAGED
        raise HistoryUnusable(f"History {path} cannot be {doing}: {error}.", damaged) from None
    except (ValueError, KeyError, TypeError) as error:
        of_file = doing != WRITTEN  # else what was to be written is to blame
        raise HistoryUnusable(f"History {path} cannot be {doing}: {error}.", of_file) from None


def opened_to_write(path: Path) -> sqlite3.Connection:
    """The file, made when absent. Raises sqlite3.Error; ValueError for one of another version."""
    connection = sqlite3.connect(str(path), timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("pragma auto_vacuum = incremental")
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.execute(f"pragma journal_size_limit = {LOG_BYTES}")
        if _version(connection) == 0:
            _create(connection)
        connection.execute(f"create table if not exists {ARCHIVED} ({_ARCHIVED_COLUMNS}) without rowid")
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("begin immediate")
    try:
        for name, columns in TABLES.items():
            connection.execute(f"create table if not exists {name} ({columns})")
        for name, columns in INDEXES.items():
            connection.execute(f"create index if not exists {name} on {columns}")
        connection.execute(f"pragma user_version = {VERSION}")
    except BaseException:
        connection.execute("rollback")
        raise
    connection.execute("commit")


def knows_archives(connection: sqlite3.Connection) -> bool:
    """Whether it has the table of archived files."""
    asked = "select 1 from sqlite_master where type = 'table' and name = ?"
    return connection.execute(asked, (ARCHIVED,)).fetchone() is not None


def opened_to_read(path: Path) -> sqlite3.Connection:
    """The file, as it is, also where the folder may not be written. Raises sqlite3.Error, ValueError.

    Where nobody writes, and the log beside the file cannot be made, the file alone is all there is.
    """
    try:
        return _opened_read_only(path, "mode=ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != _CANTOPEN or path.with_name(f"{path.name}-wal").exists():
            raise
        return _opened_read_only(path, "mode=ro&immutable=1")


def _opened_read_only(path: Path, options: str) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}?{options}"
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        _version(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection) -> int:
    found = int(connection.execute("pragma user_version").fetchone()[0])
    if found not in (0, VERSION):
        raise ValueError(f"version {found} of its tables is not {VERSION}; another version of this program made it")
    return found


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All or nothing of what is done within."""
    connection.execute("begin immediate")
    try:
        yield connection
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("rollback")
        raise
    connection.execute("commit")
