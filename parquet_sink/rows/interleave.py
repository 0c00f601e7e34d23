"""The parts of a block, record by record in offset order, into stretches that share columns.

Records of several schemas may alternate in a topic: each schema's records are one batch, decoded at once, and here they
are put back into their order. All rows of a record are in one part.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.rows.column_batch import ColumnBatch, InferredBatch, Part, TombstoneBatch
from parquet_sink.rows.schema.arrow_types import nulls
from parquet_sink.rows.schema.evolution import Columns, aligned


@dataclass(frozen=True)
class Stretch:
    """Consecutive rows. positions: int64, for each row that of its record; arrays: one for each column."""

    positions: pa.Int64Array
    arrays: tuple[pa.Array, ...]


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


def join(parts: Iterable[ColumnBatch], columns: Columns) -> Stretch | None:
    """The rows of all parts in their order, as these columns; None when there are none.

    columns: those of all parts, merged, all values borne by them.
    """
    parts = [part for part in parts if len(part)]
    if not parts:
        return None
    counts = [len(part) for part in parts]
    starts = [0, *np.cumsum(counts).tolist()]
    found: dict[str, list[tuple[int, pa.Array]]] = {column.name: [] for column in columns}
    for number, part in enumerate(parts):
        for field, array in zip(part.columns, part.arrays, strict=True):
            found[field.name].append((number, array))
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
    return Stretch(positions if order is None else positions.take(order), tuple(arrays))


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
