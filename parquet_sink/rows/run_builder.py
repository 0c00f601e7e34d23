"""Through the records of a block in offset order: the topic's columns take each in, and rows that share them are runs.

What happens to a record depends on the records before it, never on how these were cut into blocks. The order of steps
for one record: `column_builder` has the first ones (to columns of the record's own schema), then here

  6. the topic's columns take in the record's: added, widened, or started again
  7. primary keys are checked; a record that has no row leaves no trace in the columns
  8. the row is brought to the topic's columns; Kafka metadata and the order column are appended
"""

from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.arrays import either
from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.rows import added_columns
from parquet_sink.rows.added_columns import PrimaryKeys
from parquet_sink.rows.flatten.trees import NOT_SHARED, PendingRows, rows_of, value_types_of
from parquet_sink.rows.run import (
    ColumnBatch,
    InferredBatch,
    Interleaving,
    Records,
    RejectedBatch,
    Run,
    TombstoneBatch,
    TreeBatch,
    join,
    rejection_of,
    to_run,
)
from parquet_sink.rows.schema.evolution import Change, first_inexact, takes, widens
from parquet_sink.rows.schema.topic_columns import CUTS, Row, Step, TopicColumns, ValueTypes, fits
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.rows.tombstones import TombstoneFit, as_number

_NO_COLUMN: Final = "every field is null or left out, and no column is known"


MOST_LOOKS: Final = 64
"""Looks at the rows of one batch because the topic's columns changed; after these all are taken as trees."""

_EXACT: Final = pa.scalar(2**53, pa.int64())
_EXACT_NEGATIVE: Final = pa.scalar(-(2**53), pa.int64())


@dataclass(frozen=True)
class _Fit:
    """How far the rows of a batch fit: up to which position, after which step. version: of the topic's columns."""

    version: int
    step: Step
    until: float


@dataclass(frozen=True)
class _Keys:
    """The columns of a batch that are keys, and the names of all keys that there are with it. version: as in `_Fit`."""

    batch: ColumnBatch
    version: int
    names: dict[str, None]
    arrays: dict[str, pa.Array]


class FallbackRows:
    """Rows of a batch that was read as columns, and change the topic's columns or may not be taken as they are.

    Such a row is taken as a tree, for which `RunBuilder` has the rules; all others fit the topic's columns.
    """

    def __init__(self, part: InferredBatch, topic: TopicColumns, keys: PrimaryKeys, needs_column: bool) -> None:
        """needs_column: while the topic has no column, all rows are taken as trees."""
        self._part, self._topic, self._keys, self._needs_column = part, topic, keys, needs_column
        self._version, self._looks = -1, 0
        self._rows = np.array([], np.int64)

    def next(self, row: int) -> int:
        """The first such row from here on, with the topic's columns as they are now; the batch's length for none."""
        if self._version != self._topic.version:
            self._version = self._topic.version
            self._looks += 1
            self._rows = self._found()
        at = int(np.searchsorted(self._rows, row))
        return int(self._rows[at]) if at < len(self._rows) else len(self._part.batch)

    def _found(self) -> np.ndarray:
        batch, mask = self._part.batch, self._part.fallback
        no_column = self._needs_column and not self._topic
        if self._looks > MOST_LOOKS or no_column or self._keys.missing(self._topic):
            return np.arange(len(batch))
        arrays = {column.name: array for column, array in zip(batch.columns, batch.arrays, strict=True)}
        for name, array in arrays.items():
            mask = either(mask, self._unfit(name, array))
        mask = either(mask, self._keys.nulls_in(arrays, len(batch)))
        return np.array([], np.int64) if mask is None else np.flatnonzero(mask.to_numpy(zero_copy_only=False))

    def _unfit(self, name: str, array: pa.Array) -> pa.BooleanArray | None:
        """Rows whose value the topic's column may not hold as it is."""
        if name not in self._topic:
            return array.is_valid()
        column = self._topic.field(name).type
        if column.equals(array.type):
            return None
        widened = widens(pa.field(name, array.type), pa.field(name, column)) if takes(column, array.type) else None
        if widened is False:
            return None
        if widened is None or pa.types.is_struct(column):
            return array.is_valid()
        return pc.fill_null(pc.or_(pc.greater(array, _EXACT), pc.less(array, _EXACT_NEGATIVE)), fill_value=False)


class RunBuilder:
    """One for each block; what it learns stays in `topic`."""

    def __init__(
        self,
        settings: ShapeSettings,
        topic: TopicColumns,
        records: Records,
        across_rejected: bool = False,
    ) -> None:
        """across_rejected: a run does not end before a rejected record."""
        self._settings, self._topic, self._records = settings, topic, records
        self._interleaving = Interleaving((), 0)
        self._across_rejected = across_rejected
        self._reserved = added_columns.names(settings)
        self._keys = PrimaryKeys(settings)
        self._key_names = tuple(name for name in settings.primary_keys if name not in self._reserved)
        self._pending = PendingRows()
        self._fitting: dict[int, float] = {}
        """Batches that the run under way has rows of, and the position up to which their rows fit its columns."""
        self._fits: dict[int, _Fit] = {}
        self._keys_of: _Keys | None = None
        self._settled: dict[int, float] = {}
        self._settled_version = -1
        self._fallback: dict[int, FallbackRows] = {}
        self._deleted: dict[int, TombstoneFit] = {}
        self._rejected: list[Rejected] = []
        self._incompatible = False
        self.inferred_as_trees = 0
        """Rows that a decoder gave as columns and that had to be taken as trees."""

    def build(self, interleaving: Interleaving) -> Iterator[Run | Rejected]:
        """All runs and all rejected records, in the order of their last offsets. Call it once."""
        self._interleaving = interleaving
        for number, start, end in self._interleaving.stretches():
            if self._is_settled(number, end):
                continue
            part = self._interleaving.parts[number]
            if isinstance(part, ColumnBatch):
                yield from self._columns(part, number, start, end)
                continue
            first, beyond = (self._interleaving.row(number, position) for position in (start, end))
            if isinstance(part, InferredBatch):
                yield from self._inferred(part, number, first, beyond)
            elif isinstance(part, TombstoneBatch):
                yield from self._tombstones(part, number, first, beyond)
            elif isinstance(part, TreeBatch):
                for at in range(first, beyond):
                    yield from self._trees(part.positions[at], part.trees[at])
            else:
                yield from self._rejections(part, range(first, beyond))
        yield from self._cut(self._interleaving.stop, Change.NONE)

    def _is_settled(self, number: int, end: int) -> bool:
        """Whether all rows of a part before a position are known to fit, so that each of its stretches costs little."""
        if self._settled_version != self._topic.version:
            self._settled_version = self._topic.version
            self._settled = {}
        return number in self._fitting and self._settled.get(number, -1) >= end

    def _settle(self, number: int, batch: ColumnBatch, row: int) -> None:
        """The rows of a part before this one fit the columns as they are."""
        self._settled[number] = batch.positions[row].as_py() if row < len(batch) else inf

    def why_no_key(self, batch: ColumnBatch, row: int) -> str:
        """What is wrong with a record whose key is null in this row of a batch."""
        if self._keys_of is None or self._keys_of.batch is not batch or self._keys_of.version != self._topic.version:
            self._keys_of = self._keys_in(batch)
        names, arrays = self._keys_of.names, self._keys_of.arrays
        # Whether there is a value is all that counts: Python has no dates beyond the year 9999.
        found = {name: array[row].is_valid or None for name, array in arrays.items()}
        try:
            self._keys.check(names, found)
        except InvalidValue as error:
            return str(error)
        raise AssertionError("a null key that is none")

    def _keys_in(self, batch: ColumnBatch) -> "_Keys":
        mine = {column.name: array for column, array in zip(batch.columns, batch.arrays, strict=True)}
        names = self._names(mine.keys(), self._topic.step(batch.columns).change)
        arrays = {name: mine[name] for name in self._key_names if name in mine}
        return _Keys(batch, self._topic.version, names, arrays)

    def _columns(self, batch: ColumnBatch, number: int, start: int, end: int) -> Iterator[Run | Rejected]:
        """Records with a schema, from one position to another."""
        position: float = max(self._fitting.get(number, start), start)
        while position < end:
            here = int(position)
            fit = self._fit(batch, number, here)
            step, until = fit.step, fit.until
            reason = self._why_no_key_column([column.name for column in batch.columns], step.change)
            if reason is None and not self._reserved and not batch.columns and not self._topic:
                reason = _NO_COLUMN
            if reason is not None:
                position = yield from self._leave_out(batch, number, here, end, reason)
                continue
            if step.change in CUTS:
                yield from self._cut(here, step.change)
            self._topic.make(step)
            self._fitting[number] = position = until

    def _fit(self, batch: ColumnBatch, number: int, position: int) -> _Fit:
        """What the rows from a position on ask of the topic's columns."""
        known = self._fits.get(number)
        if known is not None and known.version == self._topic.version and position < known.until:
            return known
        step = self._topic.step(batch.columns)
        until = inf if step.change is Change.INCOMPATIBLE else self._fit_until(batch, number, position, step)
        if until <= position:
            step, until = Step(Change.INCOMPATIBLE, {field.name: field for field in batch.columns}), inf
        else:
            self._fits[number] = _Fit(self._topic.version, step, until)
        return _Fit(self._topic.version, step, until)

    def _fit_until(self, batch: ColumnBatch, number: int, position: int, step: Step) -> float:
        """The first position from here on where a value is not borne by the columns after the step."""
        row = self._interleaving.row(number, position)
        inexact = []
        for column, array in zip(batch.columns, batch.arrays, strict=True):
            to = step.fields.get(column.name) or self._topic.field(column.name)
            if not to.type.equals(column.type) and widens(column, to):
                inexact.append(first_inexact(array.slice(row), to.type))
        found = [row + at for at in inexact if at is not None]
        return float(batch.positions[min(found)].as_py()) if found else inf

    def _leave_out(
        self, batch: ColumnBatch, number: int, position: int, end: int, reason: str
    ) -> Generator[Run | Rejected, None, int]:
        """Reject the record at a position of a batch; returns the next one's, or `end`."""
        yield from self._reject(position, Stage.SHAPE, reason)
        row, beyond = (self._interleaving.row(number, at) for at in (position, position + 1))
        self._interleaving.leave_out(number, row, beyond)
        return min(end, batch.positions[beyond].as_py()) if beyond < len(batch) else end

    def _inferred(self, part: InferredBatch, number: int, row: int, end: int) -> Iterator[Run | Rejected]:
        """Records without a schema that were read as columns, from one row to another."""
        if number not in self._fallback:
            self._fallback[number] = FallbackRows(part, self._topic, self._keys, needs_column=not self._reserved)
        while row < end:
            until = min(self._fallback[number].next(row), end)
            if until > row:
                self._fitting[number] = row = until
                continue
            self._interleaving.leave_out(number, row, row + 1)
            position, accepted = part.batch.positions[row].as_py(), len(self._pending)
            try:
                trees = part.trees(row)
            except InvalidValue as error:
                yield from self._reject(position, rejection_of(error).stage, str(error))
            else:
                yield from self._trees(position, trees)
            self.inferred_as_trees += len(self._pending) != accepted
            row += 1
        if self._settled_version == self._topic.version:
            self._settle(number, part.batch, self._fallback[number].next(end))

    def _tombstones(self, part: TombstoneBatch, number: int, row: int, end: int) -> Iterator[Run | Rejected]:
        """Rows of primary keys, from one row to another: the topic's columns stay as they are, but for null."""
        if number not in self._deleted:
            self._deleted[number] = TombstoneFit(part.batch, self._topic, self._key_names)
        fit = self._deleted[number]
        while row < end:
            position, until = part.batch.positions[row].as_py(), min(fit.next(row), end)
            if until > row:
                step = fit.step()
                if step.change in CUTS:
                    yield from self._cut(position, step.change)
                self._topic.make(step)
                self._fitting[number] = row = until
                continue
            self._interleaving.leave_out(number, row, row + 1)
            yield from self._reject(position, Stage.SHAPE, fit.why_not(row))
            row += 1
        if self._settled_version == self._topic.version:
            self._settle(number, part.batch, fit.next(end))

    def _trees(self, position: int, trees: Sequence[Tree]) -> Iterator[Run | Rejected]:
        """One record without a schema."""
        try:
            rows, own, change = self._validated(trees)
        except InvalidValue as error:
            yield from self._reject(position, Stage.SHAPE, str(error))
            return
        if change in CUTS:
            yield from self._cut(position, change)
        self._topic.take(own, change)
        self._pending.add(position, rows)

    def _validated(self, trees: Sequence[Tree]) -> tuple[list[Row], ValueTypes, Change]:
        """The rows, fit for the columns after the change; own: their types, when there is one. Raises InvalidValue."""
        rows, own, change = rows_of(trees, self._settings), {}, Change.NONE
        if not all(fits(self._topic.value_types, row) for row in rows):
            rows = rows_of(trees, self._settings)
            own = value_types_of(rows, self._reserved)
            change = self._topic.change_for(own, rows)
            if change is Change.INCOMPATIBLE:
                rows = rows_of(trees, self._settings)
                if not all(fits(own, row) for row in rows):
                    raise InvalidValue(NOT_SHARED)
        if self._key_names:
            if (reason := self._why_no_key_column(own, change)) is not None:
                raise InvalidValue(reason)
            names = self._names(own, change)
            for row in rows:
                self._keys.check(names, row)
        if not self._reserved and not own and not self._topic:
            raise InvalidValue(_NO_COLUMN)
        return rows, own, change

    def _names(self, own: Collection[str], change: Change) -> dict[str, None]:
        """The key columns that are there after the change. own: names of the record's columns."""
        known = () if change is Change.INCOMPATIBLE else self._topic
        return {name: None for name in self._key_names if name in own or name in known}

    def _why_no_key_column(self, own: Collection[str], change: Change) -> str | None:
        """Why there are not all key columns after the change; None: they are."""
        if not self._keys.missing(self._names(own, change)):
            return None
        known = () if change is Change.INCOMPATIBLE else self._topic.columns
        return self._keys.why_missing([*(column.name for column in known), *own])

    def _taken(self, number: int, end: int) -> ColumnBatch:
        """The rows of a part that the run under way has; if read without a schema, only columns that have a value."""
        batch, part = self._interleaving.taken(number, end), self._interleaving.parts[number]
        both = zip(batch.columns, batch.arrays, strict=True)
        if isinstance(part, TombstoneBatch):
            arrays = tuple(as_number(array, self._topic.field(column.name).type) for column, array in both)
            return replace(batch, arrays=arrays)
        if not isinstance(part, InferredBatch):
            return batch
        kept = [(column, array) for column, array in both if array.null_count < len(array)]
        return ColumnBatch(batch.positions, tuple(one for one, _ in kept), tuple(array for _, array in kept))

    def _rejections(self, part: RejectedBatch, which: range) -> Iterator[Run | Rejected]:
        for at in which:
            rejection = part.rejections[at]
            yield from self._reject(part.positions[at], rejection.stage, str(rejection), rejection.by)

    def _reject(self, position: int, stage: Stage, reason: str, by: str = "") -> Iterator[Run | Rejected]:
        self._rejected.append(self._records.rejected(position, stage, reason, by))
        if not self._across_rejected:
            yield from self._cut(position, Change.NONE)

    def _cut(self, end: int, change: Change) -> Iterator[Run | Rejected]:
        """The rows of records before `end`, if there are any, and the rejected records that wait.

        The next run begins with the change.
        """
        columns = self._topic.columns
        batches = [self._taken(number, end) for number in sorted(self._fitting)]
        if len(self._pending):
            batches.append(self._pending.batch(columns))
        if (joined := join(batches, columns)) is not None:
            positions, arrays = joined
            run = to_run(self._settings, self._records, positions, columns, arrays, self._incompatible)
            yield from (one for one in self._rejected if one.offset < run.last_offset)
            yield run
            self._rejected = [one for one in self._rejected if one.offset > run.last_offset]
        yield from self._rejected
        self._rejected = []
        self._incompatible = change is Change.INCOMPATIBLE
        self._fitting, self._pending = {}, PendingRows()
