"""The history in one SQLite file."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from parquet_sink.history.records import RangeRecord, UploadOutcome, UploadRecord, known_to_dict
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import rows
from parquet_sink.history.sqlite.database import (
    ARCHIVED,
    WRITTEN,
    history_trouble,
    knows_archives,
    opened_to_read,
    opened_to_write,
    transaction,
)
from parquet_sink.history.store import ALL, HistoryExtent, HistoryQuery, HourSummary
from parquet_sink.history.summary import summarised
from parquet_sink.model.archiving import Archiving

_FILES: Final = ", ".join(rows.FILE_COLUMNS)
_OF_FILES: Final = ", ".join(f"file.{one}" for one in rows.FILE_COLUMNS)
_RANGES: Final = ", ".join(f"range.{one}" for one in rows.RANGE_COLUMNS)
_ADD_FILE: Final = (
    f"insert into file (key, {_FILES}) values ({','.join('?' * (len(rows.FILE_COLUMNS) + 1))}) "
    "on conflict (key) do nothing"
)
_SHARE_TO_FREE: Final = 20
"""Of what takes too much room, one part in so many goes at a time."""


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
        row = rows.file_row(record)
        key = rows.file_key(row)
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
            for one in records:
                known = json.dumps(known_to_dict(one.known), sort_keys=True, separators=(",", ":"))
                db.execute("insert into knowledge (body) values (?) on conflict do nothing", (known,))
                db.execute(
                    "insert into range (topic, partition, start, end, reason, topic_id, recipe, version, at_ms, "
                    "done_until, knowledge) "
                    "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (select id from knowledge where body = ?)) "
                    "on conflict do update set done_until = max(done_until, excluded.done_until)",
                    (
                        *(one.topic, one.partition, one.start, one.end, one.reason, one.topic_id),
                        *(one.recipe, one.version, one.at_ms, one.done_until, known),
                    ),
                )

    def files(self, query: HistoryQuery = ALL) -> Iterator[UploadRecord]:
        """The uploads that are meant, in order of time. Reading may be left at any place."""
        condition, values = rows.files_where(query)
        with history_trouble(self.path, "read"):
            archives, joined = self._archives()
        asked = f"select {_OF_FILES}, {archives} from (select * from file where {condition}) as file {joined}"
        yield from map(rows.file_of, self._asked(asked, "file", values, query.newest))

    def _archives(self) -> tuple[str, str]:
        """Columns of what is known of archives, and how they are joined."""
        if not knows_archives(self._connection):
            return ", ".join("null" for _ in rows.ARCHIVE_COLUMNS), ""
        on = f"{ARCHIVED}.file_name = file.file_name and file.outcome = '{UploadOutcome.ACCEPTED}'"
        return ", ".join(f"{ARCHIVED}.{one}" for one in rows.ARCHIVE_COLUMNS), f"left join {ARCHIVED} on {on}"

    def ranges(self, query: HistoryQuery = ALL) -> Iterator[RangeRecord]:
        """The ranges that are meant, in order of time."""
        condition, values = rows.ranges_where(query)
        asked = f"select {_RANGES}, body from range join knowledge on knowledge.id = range.knowledge where {condition}"
        yield from map(rows.range_of, self._asked(asked, "range", values, query.newest))

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
