"""The history of uploads in one SQLite file: its rows, queries, and figures for each hour."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from hashlib import sha256
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import Any, Final

from parquet_sink.history.records import (
    Origin,
    RangeRecord,
    UploadOutcome,
    UploadRecord,
    known_from_json,
    known_to_dict,
)
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite.database import (
    ARCHIVED,
    WRITTEN,
    history_trouble,
    knows_archives,
    opened_to_read,
    opened_to_write,
    transaction,
)
from parquet_sink.history.store import ALL, HistoryExtent, HistoryQuery, HourSummary, Percentiles
from parquet_sink.model.receipts import Archiving

HOUR_MS: Final = 3_600_000
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


def summarised(records: Iterable[UploadRecord]) -> list[HourSummary]:
    """One for each hour in which something happened, in order of time. records: in that order."""
    hours = groupby(records, lambda one: one.at_ms - one.at_ms % HOUR_MS)
    return [_summary(hour_ms, list(found)) for hour_ms, found in hours]


def _summary(hour_ms: int, records: Sequence[UploadRecord]) -> HourSummary:
    accepted = [one for one in records if one.outcome is UploadOutcome.ACCEPTED]
    fresh = [one.freshness_ms for one in accepted if one.origin is Origin.RUN and not one.repeat]
    return HourSummary(
        hour_ms=hour_ms,
        files=len(accepted),
        repeated=sum(one.repeat > 0 for one in accepted),
        rows=sum(one.rows for one in accepted),
        records=sum(one.records for one in accepted),
        size_bytes=sum(one.size_bytes for one in accepted),
        attempts=sum(one.attempts for one in records),
        reasons=dict(Counter(one.reason for one in accepted)),
        others=dict(Counter(str(one.outcome) for one in records if one.outcome is not UploadOutcome.ACCEPTED)),
        freshness_ms=percentiles([ms for ms in fresh if ms is not None]),
        upload_s=percentiles([one.upload_s for one in accepted]),
    )


def percentiles(values: Sequence[float]) -> Percentiles | None:
    """By nearest rank: each is one of the values. None without values."""
    if not values:
        return None
    ordered = sorted(values)

    def at(share: int) -> float:
        return ordered[max(ceil(share * len(ordered) / 100), 1) - 1]

    return Percentiles(at(50), at(95), at(99), ordered[-1])


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
        condition, values = files_where(query)
        with history_trouble(self.path, "read"):
            archives, joined = self._archives()
        asked = f"select {_OF_FILES}, {archives} from (select * from file where {condition}) as file {joined}"
        yield from map(file_of, self._asked(asked, "file", values, query.newest))

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
