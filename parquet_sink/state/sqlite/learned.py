"""What topics taught, in SQLite. A row for each thing learned, so that planned ranges keep what was known then."""

from collections.abc import Mapping, Sequence

from parquet_sink.model.ranges import Known, PlannedRange, ValueSizes
from parquet_sink.state.sqlite.database import Database


class SqliteLearned(Database):
    """Outlives a run."""

    def learn(self, topic: str, known: Known) -> None:
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

    def learned(self) -> dict[str, Known]:
        """What is known of each topic now."""
        rows = self._db.execute(
            "select topic, schema, bytes_per_row, bytes_per_record from knowledge "
            "where id in (select max(id) from knowledge group by topic)"
        )
        return {topic: Known(*learned) for topic, *learned in rows}

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

    def record_planned(self, ranges: Sequence[PlannedRange], recipe: str) -> None:
        """Ranges that are taken for the first time, together with what is known of their topics now.

        recipe: stands for all else that files depend on.
        """
        with self._transaction() as db:
            db.executemany(
                "insert or replace into planned values (?1, ?2, ?3, ?4, ?5, ?6, "
                "(select max(id) from knowledge where topic = ?1))",
                [(r.topic, r.partition, r.start, r.end, r.reason, recipe) for r in ranges],
            )

    def planned(self, recipe: str) -> dict[tuple[str, int], PlannedRange]:
        """The last range of each topic-partition, with what was known when it was recorded; of this recipe only."""
        rows = self._db.execute(
            "select p.topic, partition, start, end, reason, schema, bytes_per_row, bytes_per_record "
            "from planned p left join knowledge k on k.id = p.knowledge where recipe = ?",
            (recipe,),
        )
        return {
            (topic, partition): PlannedRange(topic, partition, start, end, reason, known=Known(*known))
            for topic, partition, start, end, reason, *known in rows
        }
