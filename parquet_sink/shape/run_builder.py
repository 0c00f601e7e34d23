"""Through the records of a block in offset order: the topic's columns take each in, and rows that share them are runs.

What happens to a record depends on the records before it, never on how these were cut into blocks.
"""

from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.shape import metadata
from parquet_sink.shape.column_batch import ColumnBatch, TreeBatch
from parquet_sink.shape.flatten.tree_rows import NOT_SHARED, PendingRows, kinds_of, rows_of
from parquet_sink.shape.interleave import Interleaving, join
from parquet_sink.shape.primary_keys import PrimaryKeys
from parquet_sink.shape.run import Records, Run, to_run
from parquet_sink.shape.schema.evolution import widens
from parquet_sink.shape.schema.topic_columns import CUTS, Step, TopicColumns
from parquet_sink.shape.schema.value_types import Change, Row, ValueTypes, fits
from parquet_sink.shape.schema.widening import first_misfit
from parquet_sink.shape.settings import ShapeSettings

_NO_COLUMN = "every field is null or left out, and no column is known"


@dataclass(frozen=True)
class Failure:
    """A record that has no row, and why."""

    position: int
    reason: str


class RunBuilder:
    """One for each block; what it learns stays in `topic`."""

    def __init__(
        self, settings: ShapeSettings, topic: TopicColumns, records: Records, interleaving: Interleaving
    ) -> None:
        self._settings, self._topic, self._records, self._interleaving = settings, topic, records, interleaving
        self._reserved = metadata.names(settings)
        self._keys = PrimaryKeys(settings)
        self._key_names = tuple(name for name in settings.primary_keys if name not in self._reserved)
        self._rows = PendingRows()
        self._fitting: dict[int, float] = {}
        """PieceShaper that the run under way has rows of, and the position up to which their rows fit its columns."""
        self._incompatible = False

    def runs(self) -> Generator[Run, None, Failure | None]:
        """All rows; returns what is wrong with the record where they had to end, if anything was."""
        for number, start, end in self._interleaving.stretches():
            part = self._interleaving.parts[number]
            if isinstance(part, ColumnBatch):
                failure = yield from self._batch(part, number, start, end)
            else:
                first, beyond = (self._interleaving.row(number, position) for position in (start, end))
                failure = yield from self._trees(part, range(first, beyond))
            if failure is not None:
                yield from self._cut(failure.position, Change.NONE)
                return failure
        yield from self._cut(self._interleaving.stop, Change.NONE)
        return None

    def why_no_key(self, position: int, batch: ColumnBatch, row: int) -> Failure:
        """What is wrong with a record whose key is null in this row of a batch."""
        own = [column.name for column in batch.columns]
        names = self._names(own, self._topic.step(batch.columns).change)
        mine = zip(batch.columns, batch.arrays, strict=True)
        # Whether there is a value is all that counts: Python has no dates beyond the year 9999.
        found = {column.name: array[row].is_valid or None for column, array in mine if column.name in self._key_names}
        try:
            self._keys.check(names, found)
        except InvalidValue as error:
            return Failure(position, str(error))
        raise AssertionError("a null key that is none")

    def _batch(self, batch: ColumnBatch, number: int, start: int, end: int) -> Generator[Run, None, Failure | None]:
        """Records with a schema, from one position to another."""
        position: float = max(self._fitting.get(number, start), start)
        while position < end:
            here = int(position)
            step = self._topic.step(batch.columns)
            until = inf if step.change is Change.INCOMPATIBLE else self._fit_until(batch, number, here, step)
            if until <= here:
                step, until = Step(Change.INCOMPATIBLE, {field.name: field for field in batch.columns}), inf
            reason = self._keys.why_missing(self._names([column.name for column in batch.columns], step.change))
            if not self._reserved and not batch.columns and not self._topic:
                reason = _NO_COLUMN
            if reason is not None:
                return Failure(here, reason)
            if step.change in CUTS:
                yield from self._cut(here, step.change)
            self._topic.make(step)
            self._fitting[number] = position = until
        return None

    def _fit_until(self, batch: ColumnBatch, number: int, position: int, step: Step) -> float:
        """The first position from here on where a value is not borne by the columns after the step."""
        row = self._interleaving.row(number, position)
        misfits = []
        for column, array in zip(batch.columns, batch.arrays, strict=True):
            to = step.fields.get(column.name) or self._topic.field(column.name)
            if not to.type.equals(column.type) and widens(column, to):
                misfits.append(first_misfit(array.slice(row), to.type))
        found = [row + misfit for misfit in misfits if misfit is not None]
        return float(batch.positions[min(found)].as_py()) if found else inf

    def _trees(self, part: TreeBatch, which: range) -> Generator[Run, None, Failure | None]:
        """Some records without a schema."""
        for at in which:
            position = part.positions[at]
            try:
                rows, own, change = self._judged(part.trees[at])
            except InvalidValue as error:
                return Failure(position, str(error))
            if change in CUTS:
                yield from self._cut(position, change)
            self._topic.take(own, change)
            self._rows.add(position, rows)
        return None

    def _judged(self, trees: Sequence[Tree]) -> tuple[list[Row], ValueTypes, Change]:
        """The rows, fit for the columns after the change; own: their types, when there is one. Raises InvalidValue."""
        rows, own, change = rows_of(trees, self._settings), {}, Change.NONE
        if not all(fits(self._topic.value_types, row) for row in rows):
            rows = rows_of(trees, self._settings)
            own = kinds_of(rows, self._reserved)
            change = self._topic.judge(own, rows)
            if change is Change.INCOMPATIBLE:
                rows = rows_of(trees, self._settings)
                if not all(fits(own, row) for row in rows):
                    raise InvalidValue(NOT_SHARED)
        if not self._reserved and not own and not self._topic:
            raise InvalidValue(_NO_COLUMN)
        if self._key_names:
            names = self._names(own, change)
            for row in rows:
                self._keys.check(names, row)
        return rows, own, change

    def _names(self, own: Collection[str], change: Change) -> dict[str, None]:
        """The key columns that are there after the change. own: names of the record's columns."""
        known = () if change is Change.INCOMPATIBLE else self._topic
        return {name: None for name in self._key_names if name in own or name in known}

    def _cut(self, end: int, change: Change) -> Iterator[Run]:
        """The rows of records before `end`, if there are any; the next run begins with the change."""
        columns = self._topic.columns
        batches = [self._interleaving.taken(number, end) for number in sorted(self._fitting)]
        if len(self._rows):
            batches.append(self._rows.batch(columns))
        stretch = join(batches, columns)
        if stretch is not None:
            positions, arrays = stretch.positions, stretch.arrays
            yield to_run(self._settings, self._records, positions, columns, arrays, self._incompatible)
        self._incompatible = change is Change.INCOMPATIBLE
        self._fitting, self._rows = {}, PendingRows()
