"""What the processes of one connector tell each other: a small SQLite file in the connector's folder below `tmp.dir`.

The program, the source's planner and the sink's planner and committer share no memory. What topics taught outlives a
run, so that files come out the same after a crash; losing it loses history and estimates, never a record. Offsets that
count are the consumer group's, not these.
"""

import json
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, Final

from parquet_sink.errors import StorageFailed
from parquet_sink.upload.receipts import Receipt

log = logging.getLogger(__name__)

KEPT_RECEIPTS: Final = 2_000
"""Receipts kept for the live view and for percentiles; older ones go."""

SCHEMA: Final = """
create table if not exists receipt (id integer primary key, body text not null unique);
create table if not exists accepted (
  topic text, partition int, next_offset int, range_end int, reason text, primary key (topic, partition)
);
create table if not exists known (topic text primary key, schema blob, bytes_per_row real, bytes_per_record real);
create table if not exists learned (topic text primary key, schema blob, bytes_per_row real, bytes_per_record real);
create table if not exists watch (topic text, partition int, body text, primary key (topic, partition));
create table if not exists word (name text primary key, body text not null);
"""


@dataclass(frozen=True)
class Watch:
    """How one topic-partition stands. Offsets; `oldest_ms` epoch milliseconds of the oldest unflushed arrival.

    away: it has no leader, or one that does not answer; the rest is as it was before.
    """

    topic: str
    partition: int
    start: int
    end: int
    oldest_ms: int | None
    away: bool = False

    @property
    def lag(self) -> int:
        """Records, at most, between what is delivered and what Kafka has."""
        return max(self.end - self.start, 0)


@dataclass(frozen=True)
class Accepted:
    """How far the last range of a topic-partition is accepted: everything below `next_offset`. `end`: the range's."""

    topic: str
    partition: int
    next_offset: int
    end: int
    reason: str


@dataclass(frozen=True)
class Failure:
    """Why the connector cannot go on: the error's class by name, and the words for the operator."""

    kind: str
    message: str


@dataclass(frozen=True)
class Known:
    """What earlier files of a topic taught. schema: as `Shaper` serialises it.

    Sizes are those of Parquet files; a record has several rows, or none, where lists are exploded.
    """

    schema: bytes | None = None
    bytes_per_row: float | None = None
    bytes_per_record: float | None = None


class State:
    """Opens the file at `path`, making it when absent. Each process opens its own."""

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)
        self._connection = sqlite3.connect(self._path, timeout=30.0, isolation_level=None, check_same_thread=False)
        self._connection.execute("pragma journal_mode=wal")
        self._connection.execute("pragma synchronous=off")
        self._connection.executescript(SCHEMA)

    @classmethod
    def for_new_run(cls, path: Path) -> "State":
        """The state of a run that begins. A file that cannot be read is made anew. Raises StorageFailed."""
        try:
            state = cls(path)
            state.begin_run()
        except sqlite3.DatabaseError as error:
            log.warning("state file %s cannot be used (%s); it is made anew", path, error)
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            return cls._anew(path)
        return state

    @classmethod
    def _anew(cls, path: Path) -> "State":
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
        self.known()
        for table in ("receipt", "accepted", "learned", "watch", "word"):
            self._connection.execute(f"drop table {table}")
        self._connection.executescript(SCHEMA)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("begin immediate")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")

    def add_receipts(self, receipts: Sequence[Receipt]) -> None:
        """Adds receipts that are not there yet, forgetting the oldest beyond KEPT_RECEIPTS."""
        with self._transaction() as db:
            bodies = [(receipt.to_json(),) for receipt in receipts]
            db.executemany("insert into receipt (body) values (?) on conflict (body) do nothing", bodies)
            db.execute("delete from receipt where id <= (select max(id) from receipt) - ?", (KEPT_RECEIPTS,))

    def receipts_after(self, last: int) -> list[tuple[int, Receipt]]:
        """Receipts with an id above `last`, oldest first."""
        rows = self._connection.execute("select id, body from receipt where id > ? order by id", (last,))
        return [(number, Receipt.from_json(body)) for number, body in rows]

    def accept(self, ranges: Sequence[Accepted]) -> None:
        """Notes how far topic-partitions are accepted."""
        with self._transaction() as db:
            db.executemany(
                "insert or replace into accepted values (?, ?, ?, ?, ?)",
                [astuple(one) for one in ranges],
            )

    def accepted(self) -> list[Accepted]:
        return [Accepted(*row) for row in self._connection.execute("select * from accepted")]

    def forget(self, topic: str, partition: int) -> None:
        """Forgets how far a topic-partition is accepted, and how it stands: it was deleted."""
        self._connection.execute("delete from accepted where topic = ? and partition = ?", (topic, partition))
        self._connection.execute("delete from watch where topic = ? and partition = ?", (topic, partition))

    def learn(self, topic: str, known: Known) -> None:
        """Notes what the last micro-batch taught of a topic; it counts from `settle` on."""
        row = (topic, known.schema, known.bytes_per_row, known.bytes_per_record)
        self._connection.execute("insert or replace into learned values (?, ?, ?, ?)", row)

    def settle(self) -> None:
        """What was learned is known from now on: its ranges are committed, so they are not cut again.

        Until then a crash repeats them with the older knowledge, and so as the same files.
        """
        if self._connection.execute("select 1 from learned limit 1").fetchone() is None:
            return
        with self._transaction() as db:
            db.execute(
                "insert into known select * from learned where true on conflict do update set "
                "schema = coalesce(excluded.schema, schema), "
                "bytes_per_row = coalesce(excluded.bytes_per_row, bytes_per_row), "
                "bytes_per_record = coalesce(excluded.bytes_per_record, bytes_per_record)"
            )
            db.execute("delete from learned")

    def known(self) -> dict[str, Known]:
        rows = self._connection.execute("select topic, schema, bytes_per_row, bytes_per_record from known")
        return {topic: Known(*learned) for topic, *learned in rows}

    def watch(self, watches: Sequence[Watch]) -> None:
        with self._transaction() as db:
            db.executemany(
                "insert or replace into watch values (?, ?, ?)",
                [(w.topic, w.partition, json.dumps(asdict(w))) for w in watches],
            )

    def watches(self) -> list[Watch]:
        rows = self._connection.execute("select body from watch order by topic, partition")
        return [Watch(**json.loads(body)) for (body,) in rows]

    def fail(self, failure: Failure) -> None:
        """The first failure stays: later ones follow from it."""
        self._connection.execute("insert or ignore into word values ('failure', ?)", (json.dumps(asdict(failure)),))

    def failure(self) -> Failure | None:
        found = self._word("failure")
        return None if found is None else Failure(**found)

    def forgive(self) -> None:
        """Forgets the failure for another try, and what the last micro-batch left: the group's offsets count."""
        with self._transaction() as db:
            db.execute("delete from word where name = 'failure'")
            db.execute("delete from accepted")
            db.execute("delete from learned")

    def stop(self) -> None:
        """Tells admission to admit nothing more."""
        self.say("stop", True)

    def stopping(self) -> bool:
        return self._word("stop") is not None

    def say(self, name: str, body: Any) -> None:
        """A word from one process to another."""
        self._connection.execute("insert or replace into word values (?, ?)", (name, json.dumps(body)))

    def said(self, name: str) -> Any:
        return self._word(name)

    def _word(self, name: str) -> Any:
        row = self._connection.execute("select body from word where name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def close(self) -> None:
        self._connection.close()
