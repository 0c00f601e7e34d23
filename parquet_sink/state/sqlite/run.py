"""What belongs to one run, in SQLite: fields, progress, what is accepted, and the failure."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from parquet_sink.model.failure import Failure
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.progress import Accepted, PartitionProgress
from parquet_sink.model.ranges import Again
from parquet_sink.state.sqlite.database import Database
from parquet_sink.state.store import REPORTED, Field, T

FAILURE: Final = "failure"
"""The one name in the table of fields that is no `Field`."""


class SqliteRun(Database):
    """What belongs to one run."""

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
        rows = [(one.topic, one.partition, json.dumps(asdict(one))) for one in progress]
        with self._transaction() as db:
            db.executemany("insert or replace into progress values (?, ?, ?)", rows)

    def progress(self) -> list[PartitionProgress]:
        """Of every topic-partition, in order of topic and number."""
        rows = self._db.execute("select body from progress order by topic, partition")
        return [PartitionProgress(**json.loads(body)) for (body,) in rows]

    def begin_batch(self, keys: Sequence[PartitionKey]) -> None:
        """A micro-batch begins with a range of each of these topic-partitions: nothing is reported of them yet."""
        with self._transaction() as db:
            db.executemany("delete from accepted where topic = ? and partition = ?", keys)
            db.execute("delete from field where name = ?", (REPORTED.name,))

    def record_accepted(self, ranges: Sequence[Accepted]) -> None:
        """How far the last range of each topic-partition is accepted, which reports the micro-batch.

        All of it is there, or nothing; topic-partitions that are not named stay as they were.
        """
        rows = [(one.topic, one.partition, json.dumps(asdict(one))) for one in ranges]
        with self._transaction() as db:
            db.executemany("insert or replace into accepted values (?, ?, ?)", rows)
            db.execute("insert or replace into field values (?, ?)", (REPORTED.name, json.dumps(True)))

    def accepted(self) -> list[Accepted]:
        rows = self._db.execute("select body from accepted order by topic, partition")
        return [_accepted(body) for (body,) in rows]

    def forget_partition(self, topic: str, partition: int) -> None:
        """Forgets how far a topic-partition is accepted, and how it stands: it was deleted."""
        with self._transaction() as db:
            db.execute("delete from accepted where topic = ? and partition = ?", (topic, partition))
            db.execute("delete from progress where topic = ? and partition = ?", (topic, partition))

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
