"""Sheets of a block, row by row in offset order, into stretches that share columns.

Records of several schemas may alternate in a topic: each schema's records are one sheet, decoded at once, and here they
are put back into their order. A stretch is cut only where a column's type must change for rows to come. Pure.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.shape.evolve import Columns, aligned
from parquet_sink.shape.sheet import Sheet


@dataclass(frozen=True)
class Stretch:
    """Consecutive rows. positions: int64, for each row that of its record; arrays: one for each column."""

    positions: pa.Int64Array
    arrays: tuple[pa.Array, ...]


class Weave:
    """The rows of some sheets in the order of their positions, those at `stop` and beyond left out."""

    def __init__(self, sheets: Sequence[Sheet], stop: int) -> None:
        self._sheets = [sheet for sheet in (_before(sheet, stop) for sheet in sheets) if len(sheet)]
        self._taken = [0] * len(self._sheets)
        self._order, self._positions = _order(self._sheets)
        self._reached = 0

    def sheets(self) -> Iterator[tuple[int, int]]:
        """For each stretch of rows of one sheet: the number of its first row, and of its sheet."""
        if len(self._sheets) == 1:
            yield 0, 0
            return
        previous = -1
        for row, sheet in enumerate(self._order):
            if sheet != previous:
                yield row, sheet
            previous = sheet

    def sheet(self, number: int) -> Sheet:
        return self._sheets[number]

    def __len__(self) -> int:
        return len(self._order)

    def position(self, row: int) -> int:
        """The position of the record that a row is of."""
        found: int = self._positions[row].as_py()
        return found

    def begin(self, row: int) -> int:
        """The first row of the record that a row is of."""
        return bisect_left(range(len(self)), self.position(row), key=self.position)

    def rows_of(self, position: int) -> Iterator[Sheet]:
        """The rows of one record, by sheet, with the columns that hold something there."""
        first = bisect_left(range(len(self)), position, key=self.position)
        beyond = bisect_right(range(len(self)), position, key=self.position)
        for number in sorted(set(self._order[first:beyond])):
            sheet = self._sheets[number]
            start, end = _rows_before(sheet, position), _rows_before(sheet, position + 1)
            if end > start:
                yield _without_nulls(_slice(sheet, start, end - start))

    def take(self, end: int, columns: Columns) -> Stretch:
        """The rows from where the last stretch ended to `end`, as these columns. Raises pa.ArrowInvalid, see `aligned`.

        columns: those of all sheets in the stretch, merged.
        """
        parts = []
        for number, count in sorted(self._counts(end).items()):
            start = self._taken[number]
            self._taken[number] += count
            parts.append(_slice(self._sheets[number], start, count))
        self._reached = end
        return _join(parts, columns)

    def _counts(self, end: int) -> dict[int, int]:
        if len(self._sheets) == 1:
            return {0: end - self._reached}
        return Counter(self._order[self._reached : end])


def _order(sheets: Sequence[Sheet]) -> tuple[Sequence[int], pa.Int64Array]:
    """For each row in order the number of its sheet, and the position of its record."""
    if not sheets:
        return [], pa.array([], pa.int64())
    if len(sheets) == 1:
        return [0] * len(sheets[0]), sheets[0].positions
    numbers = pa.concat_arrays([pa.repeat(pa.scalar(n, pa.int32()), len(sheet)) for n, sheet in enumerate(sheets)])
    order = _sorted([sheet.positions for sheet in sheets])
    return numbers.take(order).to_pylist(), pa.concat_arrays([sheet.positions for sheet in sheets]).take(order)


def _sorted(positions: Sequence[pa.Int64Array]) -> pa.UInt64Array:
    """Which of all rows comes first, second, ...; of one record's rows the order is kept (the sort is stable)."""
    return pc.sort_indices(pa.concat_arrays(positions))


def _before(sheet: Sheet, stop: int) -> Sheet:
    """The rows of records before `stop`."""
    if not len(sheet) or sheet.positions[len(sheet) - 1].as_py() < stop:
        return sheet
    return _slice(sheet, 0, _rows_before(sheet, stop))


def _rows_before(sheet: Sheet, position: int) -> int:
    """How many rows of a sheet are of records before this one."""
    return int(pc.less(sheet.positions, pa.scalar(position, pa.int64())).true_count)


def _slice(sheet: Sheet, start: int, count: int) -> Sheet:
    if count == len(sheet):
        return sheet
    arrays = tuple(array.slice(start, count) for array in sheet.arrays)
    return Sheet(sheet.positions.slice(start, count), sheet.columns, arrays)


def _without_nulls(sheet: Sheet) -> Sheet:
    """The sheet without columns that are null throughout."""
    kept = [n for n, array in enumerate(sheet.arrays) if array.null_count < len(array)]
    return Sheet(sheet.positions, tuple(sheet.columns[n] for n in kept), tuple(sheet.arrays[n] for n in kept))


def _join(parts: Sequence[Sheet], columns: Columns) -> Stretch:
    counts = [len(part) for part in parts]
    mine = [dict(zip((field.name for field in part.columns), part.arrays, strict=True)) for part in parts]
    order = _sorted([part.positions for part in parts]) if len(parts) > 1 else None
    nulls: dict[pa.DataType, pa.Array] = {}
    arrays = []
    for column in columns:
        pieces = [found.get(column.name) for found in mine]
        if all(piece is None for piece in pieces):  # one array of nulls serves all such columns: they may be thousands
            if column.type not in nulls:
                nulls[column.type] = pa.nulls(sum(counts), column.type)
            arrays.append(nulls[column.type])
        else:
            array = _column(column, pieces, counts)
            arrays.append(array if order is None else array.take(order))
    positions = pa.concat_arrays([part.positions for part in parts])
    return Stretch(positions if order is None else positions.take(order), tuple(arrays))


def _column(column: pa.Field, pieces: Sequence[pa.Array | None], counts: Sequence[int]) -> pa.Array:
    """One column of several parts. Parts in a row that lack it are one array of nulls, for they may be thousands."""
    found: list[pa.Array] = []
    lacking = 0
    for piece, count in zip(pieces, counts, strict=True):
        if piece is None:
            lacking += count
            continue
        if lacking:
            found.append(pa.nulls(lacking, column.type))
            lacking = 0
        found.append(aligned(piece, column.type))
    if lacking:
        found.append(pa.nulls(lacking, column.type))
    return found[0] if len(found) == 1 else pa.concat_arrays(found)
