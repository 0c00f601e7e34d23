"""The state store of a connector: fields of a run, progress, events, and what topics taught."""

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from parquet_sink.errors import StorageFailed
from parquet_sink.model.events import Event, event_from_json
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import Accepted, Again, LearnedSchema, PartitionProgress, PlannedRange, ValueSizes
from parquet_sink.model.receipts import Failure
from parquet_sink.state.database import LEARNED_TABLES, Database, remove_files
from parquet_sink.state.store import REPORTED, REPORTED_MS, EventBatch, Field, T

log = logging.getLogger(__name__)

LEARNED_KEYS: Final = {
    "knowledge": ("id",),
    "planned": ("topic", "partition"),
    "sizes": ("topic",),
    "delivered": ("topic", "partition"),
}
"""The columns by which a row is known; ids are never given twice."""
LearnedRow = dict[str, Any]
"""A row, by the names of its columns."""
LearnedRows = dict[str, dict[tuple[Any, ...], LearnedRow]]
"""Rows of the learned tables, by table and key."""
FAILURE: Final = "failure"
"""The one name in the table of fields that is no `Field`."""
KEPT_EVENTS: Final = 10_000
"""About 7 MB. The program reads them several times a second."""
KEPT_TABLES: Final = (*LEARNED_TABLES, "progress")
"""What goes on when a file that is in use is lost."""

BEGUN_ROW: Final = ("", -1)
"""In the place of a topic-partition in `delivered`: the connector has begun, be there topic-partitions or not."""

Answer = TypeVar("Answer")


class SqliteRun(Database):
    """What belongs to one run."""

    _progress: Mapping[str, PartitionProgress] = MappingProxyType({})
    _accepted: Mapping[str, Accepted] = MappingProxyType({})
    """As read last, all of them: of thousands of topic-partitions most stand as they did."""

    def get(self, field: Field[T]) -> T:
        """The value last set, else the field's default."""
        row = self._db.execute("select body from field where name = ?", (field.name,)).fetchone()
        if row is None:
            return field.default
        value: T = json.loads(row[0])
        return value

    def set(self, field: Field[T], value: T) -> None:
        self._db.execute("insert or replace into field values (?, ?)", (field.name, json.dumps(value)))

    def record_progress(self, progress: Sequence[PartitionProgress]) -> None:
        """How topic-partitions stand now; those that are not named stay as they were."""
        rows = [(one.topic, one.partition, json.dumps(one, default=vars)) for one in progress]
        with self._transaction() as db:
            db.executemany("insert or replace into progress values (?, ?, ?)", rows)

    def progress(self) -> list[PartitionProgress]:
        """Of every topic-partition, in order of topic and number."""
        rows = self._db.execute("select body from progress order by topic, partition")
        known = self._progress
        self._progress = {body: known.get(body) or PartitionProgress(**json.loads(body)) for (body,) in rows}
        return list(self._progress.values())

    def begin_batch(self, keys: Sequence[PartitionKey]) -> None:
        """A micro-batch begins with a range of each of these topic-partitions: nothing is reported of them yet."""
        with self._transaction() as db:
            db.executemany("delete from accepted where topic = ? and partition = ?", keys)
            db.execute("delete from field where name = ?", (REPORTED.name,))

    def record_accepted(self, ranges: Sequence[Accepted], now_s: float | None = None) -> None:
        """How far the last range of each topic-partition is accepted, which reports the micro-batch.

        All of it is there, or nothing; topic-partitions that are not named stay as they were. now_s: by
        `time.monotonic`, which is asked where None is given.
        """
        rows = [(one.topic, one.partition, json.dumps(one, default=vars)) for one in ranges]
        now_ms = int(1_000 * (time.monotonic() if now_s is None else now_s))
        fields = [(REPORTED.name, json.dumps(True)), (REPORTED_MS.name, json.dumps(now_ms))]
        with self._transaction() as db:
            db.executemany("insert or replace into accepted values (?, ?, ?)", rows)
            db.executemany("insert or replace into field values (?, ?)", fields)

    def accepted(self, of: Iterable[PartitionKey] | None = None) -> list[Accepted]:
        """of: these topic-partitions; None: all."""
        if of is None:
            rows = self._db.execute("select body from accepted order by topic, partition")
            known = self._accepted
            self._accepted = {body: known.get(body) or _accepted(body) for (body,) in rows}
            return list(self._accepted.values())
        one = "select body from accepted where topic = ? and partition = ?"
        with self._transaction() as db:  # without it each locks the file anew
            return [_accepted(body) for key in of for (body,) in db.execute(one, key)]

    def forget_partition(self, topic: str, partition: int) -> None:
        """Forgets how far a topic-partition is accepted, and how it stands: it was deleted."""
        with self._transaction() as db:
            db.execute("delete from accepted where topic = ? and partition = ?", (topic, partition))
            db.execute("delete from progress where topic = ? and partition = ?", (topic, partition))
            db.execute("delete from delivered where topic = ? and partition = ?", (topic, partition))

    def record_failure(self, failure: Failure) -> None:
        """The first failure stays: later ones follow from it."""
        self._db.execute("insert or ignore into field values (?, ?)", (FAILURE, failure.to_json()))

    def failure(self) -> Failure | None:
        row = self._db.execute("select body from field where name = ?", (FAILURE,)).fetchone()
        return None if row is None else Failure.from_json(row[0])

    def clear_for_restart(self) -> None:
        """Before the query starts again: forgets the failure, and what was accepted. The group's offsets count."""
        with self._transaction() as db:
            db.execute("delete from field where name = ?", (FAILURE,))
            db.execute("delete from accepted")


def _accepted(body: str) -> Accepted:
    fields = json.loads(body)
    again = fields.pop("again")
    return Accepted(**fields, again=None if again is None else Again.from_dict(again))


class SqliteLearned(Database):
    """Outlives a run."""

    def learn(self, topic: str, known: LearnedSchema) -> None:
        """Adds what a range taught of a topic; a part of `known` that is None changes nothing."""
        with self._transaction() as db:
            before = self.learned().get(topic)
            after = known if before is None else before.updated(known)
            if after == before:
                return
            db.execute(
                "insert into knowledge (topic, schema, bytes_per_row, bytes_per_record) values (?, ?, ?, ?)",
                (topic, after.schema, after.bytes_per_row, after.bytes_per_record),
            )
            db.execute(
                "delete from knowledge where topic = ? "
                "and id not in (select max(id) from knowledge group by topic) "
                "and id not in (select knowledge from planned where knowledge is not null)",
                (topic,),
            )

    def learned(self) -> dict[str, LearnedSchema]:
        """What is known of each topic now."""
        rows = self._db.execute(
            "select topic, schema, bytes_per_row, bytes_per_record from knowledge "
            "where id in (select max(id) from knowledge group by topic)"
        )
        return {topic: LearnedSchema(*learned) for topic, *learned in rows}

    def bytes_per_record(self) -> dict[str, float | None]:
        """Parquet bytes that a record of each topic became lately."""
        return dict(
            self._db.execute(
                "select topic, bytes_per_record from knowledge "
                "where id in (select max(id) from knowledge group by topic)"
            )
        )

    def learn_sizes(self, sizes: Mapping[str, ValueSizes]) -> None:
        """What the values of records of these topics became lately; others stay."""
        rows = [(topic, one.value_bytes, one.file_bytes) for topic, one in sizes.items()]
        with self._transaction() as db:
            db.executemany("insert or replace into sizes values (?, ?, ?)", rows)

    def sizes(self) -> dict[str, ValueSizes]:
        """Of each topic of which that is known."""
        rows = self._db.execute("select topic, value_bytes, file_bytes from sizes")
        return {topic: ValueSizes(*sizes) for topic, *sizes in rows}

    def record_delivered(self, offsets: Mapping[PartitionKey, int], topic_ids: Mapping[str, str]) -> bool:
        """Record up to where topic-partitions are delivered, exclusive. Return whether one of them is new here."""
        rows = [(*key, at, topic_ids.get(key[0], "")) for key, at in offsets.items()] + [(*BEGUN_ROW, 0, "")]
        with self._transaction() as db:
            (before,) = db.execute("select count(*) from delivered").fetchone()
            db.executemany("insert or replace into delivered values (?, ?, ?, ?)", rows)
            (after,) = db.execute("select count(*) from delivered").fetchone()
        return bool(after > before)

    def advance_delivered(self, offsets: Mapping[PartitionKey, int]) -> None:
        """Record that topic-partitions that are known are delivered further."""
        update = "update delivered set next_offset = ? where topic = ? and partition = ? and next_offset < ?"
        with self._transaction() as db:
            db.executemany(update, [(at, *key, at) for key, at in offsets.items()])

    def delivered(self) -> dict[PartitionKey, tuple[int, str]]:
        """Return up to where each topic-partition is delivered, and the id of its topic; empty: it never began."""
        rows = self._db.execute("select topic, partition, next_offset, topic_id from delivered")
        return {(topic, partition): (at, topic_id) for topic, partition, at, topic_id in rows}

    def forget_delivered(self) -> None:
        """Forget what was delivered, and that the connector began: its next start is as its first."""
        self._db.execute("delete from delivered")

    def record_planned(self, ranges: Sequence[PlannedRange], recipe: str) -> None:
        """Ranges that are taken for the first time, together with what is known of their topics now.

        recipe: stands for all else that files depend on.
        """
        with self._transaction() as db:
            db.executemany(
                "insert or replace into planned values (?, ?, ?, ?, ?, ?, "
                "(select max(id) from knowledge where topic = ?))",  # Python 3.12.0 to 3.12.3 warn of `?1`
                [(r.topic, r.partition, r.start, r.end, r.reason, recipe, r.topic) for r in ranges],
            )

    def planned(self, recipe: str) -> dict[tuple[str, int], PlannedRange]:
        """The last range of each topic-partition, with what was known when it was recorded; of this recipe only."""
        rows = self._db.execute(
            "select p.topic, partition, start, end, reason, schema, bytes_per_row, bytes_per_record "
            "from planned p left join knowledge k on k.id = p.knowledge where recipe = ?",
            (recipe,),
        )
        return {
            (topic, partition): PlannedRange(topic, partition, start, end, reason, known=LearnedSchema(*known))
            for topic, partition, start, end, reason, *known in rows
        }

    def learned_rows(self) -> LearnedRows:
        """All that was learned, and which ranges were planned with what."""
        found: LearnedRows = {}
        for table, key in LEARNED_KEYS.items():
            rows = self._db.execute(f"select * from {table}")  # noqa: S608 - names of ours
            names = [column[0] for column in rows.description]
            of_table = [dict(zip(names, row, strict=True)) for row in rows]
            found[table] = {tuple(row[column] for column in key): row for row in of_table}
        return found

    def take_learned(self, rows: LearnedRows) -> None:
        """Takes what another store of the connector, or this one, had at some time; nothing where there is nothing.

        What this one knows beyond that stays, if it goes on from there: it has the last knowledge among these rows.
        """
        last = max(rows["knowledge"], default=None)
        with self._transaction() as db:
            own = self.learned_rows()
            if last is not None and own["knowledge"].get(last) != rows["knowledge"][last]:
                db.execute("delete from knowledge")
                db.execute("delete from sizes")
            if any(rows.values()):
                db.execute("delete from planned")
                db.execute("delete from delivered")
            for table, of_table in rows.items():
                names = [column[0] for column in db.execute(f"select * from {table} limit 0").description]  # noqa: S608
                insert = f"insert or replace into {table} values ({', '.join('?' * len(names))})"  # noqa: S608
                db.executemany(insert, [[row.get(name) for name in names] for row in of_table.values()])


class SqliteEvents(Database):
    """Implements `state.store.EventLog`. Positions have no gaps: writers take turns, and only the oldest rows go."""

    def append_events(self, events: Sequence[Event]) -> None:
        if not events:
            return
        rows = [(event.identity, event.to_json()) for event in events]
        with self._transaction() as db:
            db.executemany(
                "insert into event (digest, body) values (?, ?) on conflict (digest) do nothing",
                [(sha256((identity or body).encode()).digest()[:16], body) for identity, body in rows],
            )
            db.execute("delete from event where id <= (select max(id) from event) - ?", (KEPT_EVENTS,))

    def last_position(self) -> int:
        """Of the event that was appended last; 0: none yet."""
        (found,) = self._db.execute("select coalesce(max(id), 0) from event").fetchone()
        return int(found)

    def events_after(self, position: int) -> EventBatch:
        rows = self._db.execute("select id, body from event where id > ? order by id", (position,)).fetchall()
        if not rows:
            return EventBatch((), position)
        events = tuple(event_from_json(body) for _, body in rows)
        return EventBatch(events, rows[-1][0], rows[0][0] - position - 1)


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
            try:
                store.begin_run()
            except sqlite3.DatabaseError:
                store.close()
                raise
        except sqlite3.DatabaseError as error:
            log.warning("state file %s cannot be used (%s); it is created again", path, error)
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


def learned_of(path: Path) -> dict[str, LearnedSchema]:
    """What a connector learned of its topics, for whoever is not it; nothing where the file is absent or torn."""
    return _read(path, SqliteStore.learned) or {}


def forget_delivered(path: Path) -> None:
    """Forget what a connector that does not run has delivered; likewise."""
    _read(path, SqliteStore.forget_delivered)


def events_of(path: Path) -> Sequence[Event]:
    """The latest events of a connector's run, or of its last; likewise."""
    return _read(path, lambda store: store.events_after(0).events) or ()


def _read(path: Path, ask: Callable[[SqliteStore], Answer]) -> Answer | None:
    if not path.exists():
        return None
    try:
        with closing(SqliteStore(path, expected=())) as store:
            return ask(store)
    except (sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:
        log.warning("state file %s cannot be read (%s); it is left as it is, and nothing is taken from it", path, error)
        return None
