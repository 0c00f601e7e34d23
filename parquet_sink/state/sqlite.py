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
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from parquet_sink.errors import StorageFailed
from parquet_sink.model.failure import Failure
from parquet_sink.model.progress import Accepted, PartitionProgress
from parquet_sink.model.ranges import Again, Known, PlannedRange, Tries
from parquet_sink.model.receipts import Receipt

log = logging.getLogger(__name__)

KEPT_RECEIPTS: Final = 2_000
"""Receipts kept for the live view and for percentiles; older ones go."""

SCHEMA: Final = """
create table if not exists receipt (id integer primary key, body text not null unique);
create table if not exists accepted (
  topic text, partition int, next_offset int, start int, end int, reason text, again text,
  primary key (topic, partition)
);
create table if not exists knowledge (
  id integer primary key, topic text, schema blob, bytes_per_row real, bytes_per_record real
);
create table if not exists planned (
  topic text, partition int, start int, end int, reason text, recipe text, knowledge int,
  primary key (topic, partition)
);
create table if not exists watch (topic text, partition int, body text, primary key (topic, partition));
create table if not exists word (name text primary key, body text not null);
"""


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
        for table in ("receipt", "accepted", "watch", "word"):
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
                "insert or replace into accepted values (?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        r.topic,
                        r.partition,
                        r.next_offset,
                        r.start,
                        r.end,
                        r.reason,
                        _written(r.again),
                    )
                    for r in ranges
                ],
            )

    def accepted(self) -> list[Accepted]:
        rows = self._connection.execute("select topic, partition, next_offset, start, end, reason, again from accepted")
        return [
            Accepted(t, p, offset, start, end, reason, _again(again))
            for t, p, offset, start, end, reason, again in rows
        ]

    def forget(self, topic: str, partition: int) -> None:
        """Forgets how far a topic-partition is accepted, and how it stands: it was deleted."""
        self._connection.execute("delete from accepted where topic = ? and partition = ?", (topic, partition))
        self._connection.execute("delete from watch where topic = ? and partition = ?", (topic, partition))

    def learn(self, topic: str, known: Known) -> None:
        """Notes what a range taught of a topic. What is known already stays where nothing new was learned."""
        with self._transaction() as db:
            before = self.known().get(topic)
            merged = known if before is None else _merged(before, known)
            if merged != before:
                row = (topic, merged.schema, merged.bytes_per_row, merged.bytes_per_record)
                db.execute(
                    "insert into knowledge (topic, schema, bytes_per_row, bytes_per_record) values (?, ?, ?, ?)", row
                )
                db.execute(
                    "delete from knowledge where topic = ? "
                    "and id not in (select max(id) from knowledge group by topic) "
                    "and id not in (select knowledge from planned where knowledge is not null)",
                    (topic,),
                )

    def known(self) -> dict[str, Known]:
        """What was learned of each topic so far."""
        rows = self._connection.execute(
            "select topic, schema, bytes_per_row, bytes_per_record from knowledge "
            "where id in (select max(id) from knowledge group by topic)"
        )
        return {topic: Known(*learned) for topic, *learned in rows}

    def bytes_per_record(self) -> dict[str, float | None]:
        """Parquet bytes that a record of each topic became lately."""
        return dict(
            self._connection.execute(
                "select topic, bytes_per_record from knowledge "
                "where id in (select max(id) from knowledge group by topic)"
            )
        )

    def plan(self, ranges: Sequence[PlannedRange], recipe: str) -> None:
        """Notes ranges that are taken for the first time, with what is known of their topics now.

        recipe: stands for all else that files depend on.
        """
        with self._transaction() as db:
            db.executemany(
                "insert or replace into planned values (?1, ?2, ?3, ?4, ?5, ?6, "
                "(select max(id) from knowledge where topic = ?1))",
                [(r.topic, r.partition, r.start, r.end, r.reason, recipe) for r in ranges],
            )

    def planned(self, recipe: str) -> dict[tuple[str, int], PlannedRange]:
        """The last range of each topic-partition, with what was known when it was taken first; of this recipe only."""
        rows = self._connection.execute(
            "select p.topic, partition, start, end, reason, schema, bytes_per_row, bytes_per_record "
            "from planned p left join knowledge k on k.id = p.knowledge where recipe = ?",
            (recipe,),
        )
        return {
            (topic, partition): PlannedRange(topic, partition, start, end, reason, known=Known(*known))
            for topic, partition, start, end, reason, *known in rows
        }

    def watch(self, watches: Sequence[PartitionProgress]) -> None:
        with self._transaction() as db:
            db.executemany(
                "insert or replace into watch values (?, ?, ?)",
                [(w.topic, w.partition, json.dumps(asdict(w))) for w in watches],
            )

    def watches(self) -> list[PartitionProgress]:
        rows = self._connection.execute("select body from watch order by topic, partition")
        return [PartitionProgress(**json.loads(body)) for (body,) in rows]

    def fail(self, failure: Failure) -> None:
        """The first failure stays: later ones follow from it."""
        self._connection.execute("insert or ignore into word values ('failure', ?)", (failure.to_json(),))

    def failure(self) -> Failure | None:
        found = self._word("failure")
        return None if found is None else Failure.from_dict(found)

    def forgive(self) -> None:
        """Forgets the failure for another try, and what the last micro-batch left: the group's offsets count."""
        with self._transaction() as db:
            db.execute("delete from word where name = 'failure'")
            db.execute("delete from accepted")

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


def _written(again: Again | None) -> str | None:
    return None if again is None else json.dumps(asdict(again))


def _again(body: str | None) -> Again | None:
    if body is None:
        return None
    found = json.loads(body)
    return Again(Tries(**found["tries"]), found["wait_s"])


def _merged(before: Known, learned: Known) -> Known:
    return Known(
        before.schema if learned.schema is None else learned.schema,
        before.bytes_per_row if learned.bytes_per_row is None else learned.bytes_per_row,
        before.bytes_per_record if learned.bytes_per_record is None else learned.bytes_per_record,
    )
