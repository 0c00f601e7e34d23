"""The history of uploads in one SQLite file: its tables, how it is opened, what errors mean, its rows and queries."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from parquet_sink.errors import HistoryUnusable
from parquet_sink.history.records import (
    RangeRecord,
    UploadOutcome,
    UploadRecord,
    known_from_json,
    known_to_dict,
)
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.store import ALL, HistoryExtent, HistoryQuery, HourSummary, UploadsPage, summarised
from parquet_sink.model.ranges import LearnedSchema
from parquet_sink.model.receipts import Archiving
from parquet_sink.process.private_file import make_private

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

_TABLE: Final = "target_table"
_FIELDS: Final = tuple(one.name for one in fields(UploadRecord) if one.name != "archive")
FILE_COLUMNS: Final = tuple(_TABLE if name == "table" else name for name in _FIELDS)
"""In the order of `UploadRecord`'s fields but what is known of its archive; `repeat` is the last."""
ARCHIVE_COLUMNS: Final = ("place", "at_ms", "cause")
RANGE_COLUMNS: Final = (
    "topic",
    "partition",
    "start",
    "end",
    "reason",
    "topic_id",
    "recipe",
    "version",
    "at_ms",
    "done_until",
)
"""Of a range, but what was known."""
Condition = tuple[str, list[Any]]
_FILES: Final = ", ".join(FILE_COLUMNS)
_OF_FILES: Final = ", ".join(f"file.{one}" for one in FILE_COLUMNS)
_RANGES: Final = ", ".join(f"range.{one}" for one in RANGE_COLUMNS)
_ADD_FILE: Final = (
    f"insert into file (key, {_FILES}) values ({','.join('?' * (len(FILE_COLUMNS) + 1))}) on conflict (key) do nothing"
)
_SHARE_TO_FREE: Final = 20
"""Of what takes too much room, one part in so many goes at a time."""


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
    make_private(path)
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
    with transaction(connection) as db:
        for name, columns in TABLES.items():
            db.execute(f"create table if not exists {name} ({columns})")
        for name, columns in INDEXES.items():
            db.execute(f"create index if not exists {name} on {columns}")
        db.execute(f"pragma user_version = {VERSION}")


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


def file_row(record: UploadRecord) -> tuple[Any, ...]:
    """One value for each of FILE_COLUMNS. `dataclasses.asdict` would be two thirds of what adding a file costs."""
    tried = json.dumps([vars(one) for one in record.tried], separators=(",", ":"), ensure_ascii=False)
    return tuple(tried if name == "tried" else getattr(record, name) for name in _FIELDS)


def file_key(row: tuple[Any, ...]) -> bytes:
    """Of the row of a file: the same for what is the same upload, and else another, but for how often it was sent."""
    return sha256(json.dumps(row[:-1]).encode()).digest()[:16]


def file_of(row: tuple[Any, ...]) -> UploadRecord:
    """Of the values of FILE_COLUMNS, then of ARCHIVE_COLUMNS. Raises ValueError, KeyError or TypeError."""
    values: dict[str, Any] = dict(zip(_FIELDS, row[: len(_FIELDS)], strict=True))
    archive = dict(zip(ARCHIVE_COLUMNS, row[len(_FIELDS) :], strict=True))
    known = archive if archive["place"] is not None else None
    return UploadRecord.from_dict({**values, "tried": json.loads(values["tried"]), "archive": known})


def range_of(row: tuple[Any, ...]) -> RangeRecord:
    """Of the values of RANGE_COLUMNS, then what was known as JSON. Raises ValueError, KeyError or TypeError."""
    values: dict[str, Any] = dict(zip(RANGE_COLUMNS, row[:-1], strict=True))
    return RangeRecord(**values, known=known_from_json(row[-1]))


def files_where(query: HistoryQuery) -> Condition:
    """The condition of a query for files."""
    text, values = _where(query, "first_offset", "last_offset")
    for column, wanted in (("outcome", query.outcomes), ("file_name", query.file_names)):
        if wanted:
            text += f" and {column} in ({','.join('?' * len(wanted))})"
            values += sorted(map(str, wanted))
    return text, values


def ranges_where(query: HistoryQuery) -> Condition:
    """The condition of a query for ranges; their ends are exclusive."""
    return _where(query, "start", "end - 1")


def _where(query: HistoryQuery, first: str, last: str) -> Condition:
    conditions = (
        ("topic = ?", query.topic),
        ("partition = ?", query.partition),
        (f"{last} >= ?", query.first_offset),
        (f"{first} <= ?", query.last_offset),
        ("at_ms >= ?", query.since_ms),
        ("at_ms < ?", query.until_ms),
    )
    given = [(text, value) for text, value in conditions if value is not None]
    return " and ".join(["1", *(text for text, _ in given)]), [value for _, value in given]


class SqliteHistory:
    """What was sent. settings: what it is bounded by, for writers.

    All methods raise HistoryUnusable when the file cannot be read, or written.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, settings: HistorySettings) -> None:
        self.path = path
        self._connection, self._settings = connection, settings

    def append_files(self, records: Sequence[UploadRecord]) -> None:
        """Adds uploads in this order; one that is equal to one within is the same, and is not added again.

        `repeat` is filled in. A record takes the place of a WAITING one of the same offsets, target and origin.
        """
        with history_trouble(self.path, WRITTEN), transaction(self._connection) as db:
            for record in records:
                self._add_file(db, record)

    def _add_file(self, db: sqlite3.Connection, record: UploadRecord) -> None:
        row = file_row(record)
        key = file_key(row)
        if db.execute("select 1 from file where key = ?", (key,)).fetchone():
            return
        db.execute(
            "delete from file where topic = ? and partition = ? and last_offset >= ? and first_offset <= ? "
            "and target = ? and origin = ? and outcome = ?",
            (
                *(record.topic, record.partition, record.first_offset, record.last_offset),
                *(record.target, record.origin, UploadOutcome.WAITING),
            ),
        )
        (repeat,) = db.execute(
            "select count(*) from file where file_name = ? and target = ? and target_table = ? and outcome = ?",
            (record.file_name, record.target, record.table, UploadOutcome.ACCEPTED),
        ).fetchone()
        db.execute(_ADD_FILE, (key, *row[:-1], repeat))
        if record.archive is not None:
            _note_archived(db, record.file_name, record.archive)

    def note_archived(self, file_name: str, archiving: Archiving) -> None:
        """What became of a file at an archive, in place of what was known of it there."""
        with history_trouble(self.path, WRITTEN), transaction(self._connection) as db:
            _note_archived(db, file_name, archiving)

    def append_ranges(self, records: Sequence[RangeRecord]) -> None:
        """Adds ranges; one that is there is not added again, and its `done_until` grows."""
        with history_trouble(self.path, WRITTEN), transaction(self._connection) as db:
            ids = {known: _knowledge(db, known) for known in {one.known for one in records}}
            for one in records:
                db.execute(
                    "insert into range (topic, partition, start, end, reason, topic_id, recipe, version, at_ms, "
                    "done_until, knowledge) "
                    "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                    "on conflict do update set done_until = max(done_until, excluded.done_until)",
                    (
                        *(one.topic, one.partition, one.start, one.end, one.reason, one.topic_id),
                        *(one.recipe, one.version, one.at_ms, one.done_until, ids[one.known]),
                    ),
                )

    def files(self, query: HistoryQuery = ALL) -> Iterator[UploadRecord]:
        """The uploads that are meant, in order of time. Reading may be left at any place."""
        condition, values = files_where(query)
        with history_trouble(self.path, "read"):
            archives, joined = self._archives()
        asked = f"select {_OF_FILES}, {archives} from (select * from file where {condition}) as file {joined}"
        yield from map(file_of, self._asked(asked, "file", values, query.newest))

    def page(self, query: HistoryQuery, most: int, after: str | None = None, *, oldest: bool = False) -> UploadsPage:
        """At most so many of what is meant, the latest first, or the oldest first. after: `more` of the page before.

        Raises ValueError for another `after`. What is added or removed meanwhile makes none come twice.
        """
        condition, values = files_where(query)
        if after is not None:
            at_ms, _, number = after.partition("-")
            condition += f" and (at_ms, id) {'>' if oldest else '<'} (?, ?)"
            values += [int(at_ms), int(number)]
        order = "file.at_ms, file.id" if oldest else "file.at_ms desc, file.id desc"
        with history_trouble(self.path, "read"):
            archives, joined = self._archives()
            asked = (
                f"select file.id, {_OF_FILES}, {archives} from (select * from file where {condition}) as file {joined} "
                f"order by {order} limit ?"
            )
            rows = self._connection.execute(asked, [*values, most + 1]).fetchall()
            found = tuple(file_of(row[1:]) for row in rows[:most])
        return UploadsPage(found, f"{found[-1].at_ms}-{rows[most - 1][0]}" if len(rows) > most else None)

    def _archives(self) -> tuple[str, str]:
        """Columns of what is known of archives, and how they are joined."""
        if not knows_archives(self._connection):
            return ", ".join("null" for _ in ARCHIVE_COLUMNS), ""
        on = f"{ARCHIVED}.file_name = file.file_name and file.outcome = '{UploadOutcome.ACCEPTED}'"
        return ", ".join(f"{ARCHIVED}.{one}" for one in ARCHIVE_COLUMNS), f"left join {ARCHIVED} on {on}"

    def ranges(self, query: HistoryQuery = ALL) -> Iterator[RangeRecord]:
        """The ranges that are meant, in order of time."""
        condition, values = ranges_where(query)
        asked = f"select {_RANGES}, body from range join knowledge on knowledge.id = range.knowledge where {condition}"
        yield from map(range_of, self._asked(asked, "range", values, query.newest))

    def _asked(self, text: str, table: str, values: list[object], newest: int | None) -> Iterator[tuple[object, ...]]:
        """Rows in order of time."""
        order = f"{table}.at_ms, {table}.id"
        with history_trouble(self.path, "read"):
            if newest is None:
                yield from self._connection.execute(f"{text} order by {order}", values)
                return
            latest = f"{text} order by {table}.at_ms desc, {table}.id desc limit ?"
            yield from reversed(self._connection.execute(latest, [*values, newest]).fetchall())

    def summary(self, query: HistoryQuery = ALL) -> list[HourSummary]:
        """Figures of each hour in which something that is meant happened, in order of time."""
        return summarised(self.files(query))

    def extent(self) -> HistoryExtent:
        """How much is kept."""
        with history_trouble(self.path, "read"):
            files, first, last = self._connection.execute(
                "select count(*), min(at_ms), max(at_ms) from file"
            ).fetchone()
            (ranges,) = self._connection.execute("select count(*) from range").fetchone()
            return HistoryExtent(files, ranges, first, last, self._bytes())

    def _bytes(self) -> int:
        """What is used of the file."""
        size, count, free = (
            self._connection.execute(f"pragma {one}").fetchone()[0]
            for one in ("page_size", "page_count", "freelist_count")
        )
        return int(size * (count - free))

    def prune(self, now_ms: int) -> int:
        """Forgets what is too old, too much, or takes too much room, the oldest first. Gives how many uploads went."""
        with history_trouble(self.path, WRITTEN), transaction(self._connection) as db:
            oldest_ms = now_ms - self._settings.retention_ms
            gone = db.execute("delete from file where at_ms < ?", (oldest_ms,)).rowcount
            ranges = db.execute("delete from range where at_ms < ?", (oldest_ms,)).rowcount
            for table in ("file", "range"):
                kept = f"(select id from {table} order by id desc limit 1 offset ?)"
                count = db.execute(f"delete from {table} where id <= {kept}", (self._settings.max_files,)).rowcount
                gone, ranges = (gone + count, ranges) if table == "file" else (gone, ranges + count)
            while self._bytes() > self._settings.max_bytes and (fewer := self._free(db)):
                gone, ranges = gone + fewer, ranges + 1
            if ranges:
                _forget_knowledge(db)
            if gone:
                db.execute(f"delete from {ARCHIVED} where file_name not in (select file_name from file)")
        with history_trouble(self.path, WRITTEN):
            self._connection.executescript("pragma incremental_vacuum")  # `execute` would free a single page
        return gone

    def _free(self, db: sqlite3.Connection) -> int:
        """Forgets the oldest part of files and ranges. Gives how many went, 0 when nothing is left."""
        gone = 0
        for table in ("file", "range"):
            (count,) = db.execute(f"select count(*) from {table}").fetchone()
            some = f"(select id from {table} order by id limit ?)"
            gone += db.execute(f"delete from {table} where id in {some}", (-(-count // _SHARE_TO_FREE),)).rowcount
        _forget_knowledge(db)
        return gone

    def check(self) -> None:
        """Looks at all of the file. Raises HistoryUnusable when it is damaged."""
        with history_trouble(self.path, "read"):
            (found,) = self._connection.execute("pragma quick_check(1)").fetchone()
            if found != "ok":
                raise ValueError(found)

    def close(self) -> None:
        self._connection.close()


def _knowledge(db: sqlite3.Connection, known: LearnedSchema) -> int:
    """The id of what was known; it is added where it is not there."""
    text = json.dumps(known_to_dict(known), sort_keys=True, separators=(",", ":"))
    db.execute("insert into knowledge (body) values (?) on conflict do nothing", (text,))
    (found,) = db.execute("select id from knowledge where body = ?", (text,)).fetchone()
    return int(found)


def _note_archived(db: sqlite3.Connection, file_name: str, one: Archiving) -> None:
    values = (file_name, one.place, one.at_ms, one.cause)
    db.execute(f"insert or replace into {ARCHIVED} (file_name, place, at_ms, cause) values (?, ?, ?, ?)", values)


def _forget_knowledge(db: sqlite3.Connection) -> None:
    db.execute("delete from knowledge where id not in (select knowledge from range)")


def read_history(path: Path) -> SqliteHistory:
    """A history to be asked; it may be written meanwhile. Raises HistoryUnusable; FileNotFoundError without one."""
    if not path.exists():
        raise FileNotFoundError(str(path))
    with history_trouble(path, "read"):
        return SqliteHistory(path, opened_to_read(path), HistorySettings())


def write_history(path: Path, settings: HistorySettings) -> SqliteHistory:
    """A history to be written, made when it is not there. Raises HistoryUnusable."""
    with history_trouble(path, "opened"):
        return SqliteHistory(path, opened_to_write(path), settings)
