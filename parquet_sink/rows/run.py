"""Batches of rows that share columns, brought into offset order, and the runs that they are joined to.

Records of several schemas may alternate in a topic: each schema's records are one batch, decoded at once, and here they
are put back into their order. All rows of a record are in one part.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue, NotObfuscated
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.rows import added_columns
from parquet_sink.rows.schema.arrow_types import nulls
from parquet_sink.rows.schema.evolution import Columns, aligned
from parquet_sink.rows.settings import ShapeSettings


@dataclass(frozen=True)
class Rejection:
    """Why a record has no row. reason: given where it depends on the columns that the topic has by then.

    by: as in `Rejected`.
    """

    stage: Stage
    reason: str | Callable[[], str]
    by: str = ""

    def __str__(self) -> str:
        return self.reason if isinstance(self.reason, str) else self.reason()


def rejection_of(error: InvalidValue) -> Rejection:
    """What an error on the way into columns makes of a record."""
    return Rejection(Stage.OBFUSCATION if isinstance(error, NotObfuscated) else Stage.SHAPE, str(error))


@dataclass(frozen=True)
class ColumnBatch:
    """Payload columns of records that share one record schema: decoded, exploded, obfuscated, flattened or chunked.

    positions: int64, not decreasing, for each row the position of its record in the input; an exploded record may have
    several rows, or none. columns: name, type and optionality of each column, names distinct; arrays: one for each
    column, one entry for each row. invalid: by position, why a record has no row; such records have none here.
    """

    positions: pa.Int64Array
    columns: tuple[pa.Field, ...]
    arrays: tuple[pa.Array, ...]
    invalid: Mapping[int, Rejection] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True)
class TreeBatch:
    """Records without a schema: exploded and obfuscated, not yet rows, because those depend on the topic's columns.

    positions: increasing, where each record stands in the input; trees: for each the record itself or its elements, at
    least one. invalid: as in `ColumnBatch`.
    """

    positions: Sequence[int]
    trees: Sequence[Sequence[Tree]]
    invalid: Mapping[int, Rejection] = field(default_factory=dict)


@dataclass(frozen=True)
class InferredBatch:
    """Records without a schema as columns: rows for as long as the topic's columns have all their values.

    batch: one row for each record; a column that a record lacks is null. fallback: rows that must be taken as trees,
    always; None for none. trees: the trees of a row, as in `TreeBatch`; raises InvalidValue.
    """

    batch: ColumnBatch
    fallback: pa.BooleanArray | None
    trees: Callable[[int], Sequence[Tree]]


@dataclass(frozen=True)
class TombstoneBatch:
    """Tombstones as rows of their primary keys: they take the columns that the topic has, and change none of these.

    batch: one row for each record, with the primary keys' columns alone, at least one of them not null in each row.
    """

    batch: ColumnBatch


@dataclass(frozen=True)
class RejectedBatch:
    """Records without a row. positions: increasing; rejections: one for each."""

    positions: Sequence[int]
    rejections: Sequence[Rejection]


Part: TypeAlias = ColumnBatch | TreeBatch | InferredBatch | TombstoneBatch | RejectedBatch


class Interleaving:
    """The parts of a block, records at `stop` and beyond left out."""

    def __init__(self, parts: Sequence[Part], stop: int) -> None:
        self.parts, self.stop = parts, stop
        self._positions = [_positions(part) for part in parts]
        self._taken = [0] * len(parts)
        self._left_out: dict[int, list[tuple[int, int]]] = {}

    def stretches(self) -> Iterator[tuple[int, int, int]]:
        """Records that stand together in one part: its number, the first's position, and that where the next begin."""
        if not self._positions:
            return
        if len(self._positions) == 1 and len(only := self._positions[0]) and only[-1] < self.stop:
            yield 0, int(only[0]), self.stop
            return
        counts = [len(found) for found in self._positions]
        numbers = np.repeat(np.arange(len(counts)), counts)
        positions = np.concatenate(self._positions)
        if len(counts) > 1:
            order = np.argsort(positions, kind="stable")
            numbers, positions = numbers[order], positions[order]
        count = int(np.searchsorted(positions, self.stop))
        numbers, positions = numbers[:count], positions[:count]
        if count:
            begins = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()]
            starts = positions[begins].tolist()
            yield from zip(numbers[begins].tolist(), starts, [*starts[1:], self.stop], strict=True)

    def row(self, number: int, position: int) -> int:
        """The first row of a part, or its first record, that is at this position or beyond."""
        return int(np.searchsorted(self._positions[number], position))

    def leave_out(self, number: int, start: int, end: int) -> None:
        """These rows of a part are not to be among those that `taken` gives."""
        self._left_out.setdefault(number, []).append((start, end))

    def taken(self, number: int, end: int) -> ColumnBatch:
        """The rows of a part of records before `end` that were not taken yet; now they are."""
        part, start, beyond = self.parts[number], self._taken[number], self.row(number, end)
        batch = part.batch if isinstance(part, InferredBatch | TombstoneBatch) else part
        assert isinstance(batch, ColumnBatch)
        self._taken[number] = beyond
        left_out = self._left_out.pop(number, [])
        self._left_out[number] = [one for one in left_out if one[0] >= beyond]
        return _without(_slice(batch, start, beyond - start), start, [one for one in left_out if one[0] < beyond])


def join(parts: Iterable[ColumnBatch], columns: Columns) -> tuple[pa.Int64Array, list[pa.Array]] | None:
    """The rows of all parts in their order: for each the position of its record, and arrays, one for each column.

    None when there are no rows. columns: those of all parts, merged, all values borne by them.
    """
    parts = [part for part in parts if len(part)]
    if not parts:
        return None
    counts = [len(part) for part in parts]
    starts = [0, *np.cumsum(counts).tolist()]
    found: dict[str, list[tuple[int, pa.Array]]] = {column.name: [] for column in columns}
    for number, part in enumerate(parts):
        for column, array in zip(part.columns, part.arrays, strict=True):
            found[column.name].append((number, array))
    order = pc.sort_indices(pa.concat_arrays([part.positions for part in parts])) if len(parts) > 1 else None
    absent: dict[pa.DataType, pa.Array] = {}
    arrays = []
    for column in columns:
        pieces = found[column.name]
        if not pieces:  # one array of nulls serves all such columns: they may be thousands
            if column.type not in absent:
                absent[column.type] = nulls(starts[-1], column.type)
            arrays.append(absent[column.type])
        else:
            array = _column(column, pieces, starts)
            arrays.append(array if order is None else array.take(order))
    positions = pa.concat_arrays([part.positions for part in parts])
    return positions if order is None else positions.take(order), arrays


def _column(column: pa.Field, pieces: Sequence[tuple[int, pa.Array]], starts: Sequence[int]) -> pa.Array:
    """One column of several parts. Parts in a row that lack it are one array of nulls, for they may be thousands."""
    found: list[pa.Array] = []
    reached = 0
    for number, array in pieces:
        if starts[number] > reached:
            found.append(nulls(starts[number] - reached, column.type))
        found.append(aligned(array, column.type))
        reached = starts[number + 1]
    if starts[-1] > reached:
        found.append(nulls(starts[-1] - reached, column.type))
    return found[0] if len(found) == 1 else pa.concat_arrays(found)


def _positions(part: Part) -> np.ndarray:
    if isinstance(part, InferredBatch | TombstoneBatch):
        part = part.batch
    return part.positions.to_numpy() if isinstance(part, ColumnBatch) else np.asarray(part.positions, np.int64)


def _slice(batch: ColumnBatch, start: int, count: int) -> ColumnBatch:
    if count == len(batch):
        return batch
    arrays = tuple(array.slice(start, count) for array in batch.arrays)
    return ColumnBatch(batch.positions.slice(start, count), batch.columns, arrays)


def _without(batch: ColumnBatch, start: int, ranges: Sequence[tuple[int, int]]) -> ColumnBatch:
    """The batch, whose first row has the number `start`, without some ranges of rows."""
    if not ranges:
        return batch
    keep = np.ones(len(batch), np.bool_)
    for first, beyond in ranges:
        keep[first - start : beyond - start] = False
    kept = pa.array(keep)
    return ColumnBatch(batch.positions.filter(kept), batch.columns, tuple(array.filter(kept) for array in batch.arrays))


@dataclass(frozen=True)
class Run:
    """Consecutive rows of one topic-partition that share one Parquet schema.

    rows: payload columns in the order of first appearance, then the added columns (see `added_columns`). first_offset,
    last_offset: those of the first and the last row; offsets: those of each, not decreasing, because tombstones,
    transactions and compaction leave gaps, and the rows of an exploded record share theirs. records: how many
    different offsets; all rows of a record are in one run. incompatible: the topic's schema began again with this run,
    so its rows cannot share a file with those before. Without it, columns may have been added, or widened from int64 to
    float64, since the run before.
    """

    rows: pa.Table
    records: int
    first_offset: int
    last_offset: int
    incompatible: bool
    offsets: pa.Int64Array

    def parts(self, most: int) -> Iterator["Run"]:
        """The run in pieces of at most `most` Kafka records, in order, no record parted; nothing is copied."""
        if self.records <= most:
            yield self
            return
        cuts = self._cuts(most)
        for index, (start, end) in enumerate(pairwise(cuts)):
            offsets, rows = self.offsets.slice(start, end - start), self.rows.slice(start, end - start)
            first, last = offsets[0].as_py(), offsets[-1].as_py()
            records = min(most, self.records - index * most)
            yield Run(rows, records, first, last, self.incompatible and not start, offsets)

    def _cuts(self, most: int) -> list[int]:
        """The rows with which pieces of `most` records begin, and how many rows there are."""
        if self.records == len(self.offsets):
            return [*range(0, self.records, most), self.records]
        begins = pc.add(pc.indices_nonzero(pc.not_equal(self.offsets[1:], self.offsets[:-1])), 1)
        return [0, *begins[most - 1 :: most].to_pylist(), len(self.offsets)]


class Records:
    """The records of a batch that have a value, or all with tombstones=True. Positions count these.

    deleted: by position, which are tombstones that have rows; None where no tombstone has one.
    """

    def __init__(self, batch: RecordBatch, *, tombstones: bool = False, deleted: pa.BooleanArray | None = None) -> None:
        self._batch, self.partition, self.deleted = batch, batch.partition, deleted
        self._places: pa.UInt64Array | None = None
        """Where in the batch its records are; None: where they are here."""
        self.offsets, self.timestamps, self.values = batch.offsets, batch.timestamps, batch.values
        if not tombstones and batch.values.null_count:
            valid = batch.values.is_valid()
            self._places = pc.indices_nonzero(valid)
            self.offsets, self.timestamps, self.values = (one.filter(valid) for one in self._columns)

    def __len__(self) -> int:
        return len(self.offsets)

    def rejected(self, index: int, stage: Stage, reason: str, by: str = "") -> Rejected:
        """One record as a rejected one."""
        batch, place = self._batch, index if self._places is None else self._places[index].as_py()
        offset, timestamp_ms, value = (one[index].as_py() for one in self._columns)
        key, headers = batch.key_of(place), batch.headers_of(place)
        kind = batch.timestamp_type_of(place)
        return Rejected(
            topic=batch.topic,
            partition=batch.partition,
            offset=offset,
            stage=stage,
            reason=reason,
            key=key,
            value=value,
            headers=headers,
            timestamp_ms=timestamp_ms,
            timestamp_type=kind,
            by=by,
        )

    @property
    def _columns(self) -> tuple[pa.Int64Array, pa.Int64Array, pa.BinaryArray]:
        return self.offsets, self.timestamps, self.values


def to_run(
    settings: ShapeSettings,
    records: Records,
    positions: pa.Int64Array,
    payload: Sequence[pa.Field],
    arrays: Sequence[pa.Array],
    incompatible: bool,
) -> Run:
    """A run with the added columns. positions: for each row that of its record among `records`, not decreasing."""
    offsets, timestamps = _of(records.offsets, positions), _of(records.timestamps, positions)
    deleted = None if records.deleted is None else _of(records.deleted, positions)
    added = added_columns.arrays(settings, records.partition, offsets, timestamps, deleted)
    schema = pa.schema([*payload, *added_columns.fields(settings)])
    rows = pa.Table.from_arrays([*arrays, *added], schema=schema)
    first, last = offsets[0].as_py(), offsets[len(offsets) - 1].as_py()
    several = last - first < len(offsets) - 1 or pc.any(pc.equal(offsets[1:], offsets[:-1])).as_py()
    count = pc.count_distinct(offsets).as_py() if several else len(offsets)
    return Run(rows, count, first, last, incompatible, offsets)


def _of(values: pa.Array, positions: pa.Int64Array) -> pa.Array:
    """The values at these positions; a slice where those are contiguous."""
    first, last = positions[0].as_py(), positions[len(positions) - 1].as_py()
    if last - first == len(positions) - 1 and not pc.any(pc.equal(positions[1:], positions[:-1])).as_py():
        return values.slice(first, len(positions))
    return values.take(positions)
