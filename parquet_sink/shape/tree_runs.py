"""Records without a schema to sheets: rows whose kinds grow from record to record, cut where they do. Pure.

The rules are those of `json_shaper` for a topic of plain JSON, applied within one piece: `rows` makes the row, `kinds`
says what fits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from parquet_sink.config.settings import ShapeSettings
from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.shape import rows
from parquet_sink.shape.kinds import Change, Kinds, Row, evolve, fits, to_fields
from parquet_sink.shape.sheet import Sheet

_MOST_FOR_COLUMNS = 64
"""Runs of a piece up to which a new column begins one, too, so that it starts at the very row that has it first. Where
each record brings columns of its own, the columns of all runs together must not become too many."""


_FREE_CELLS = 1_000_000
_CELLS_A_VALUE = 64
"""Cells that the rows of one exploded record may have for each value in them."""


@dataclass
class _Run:
    """Rows of equal kinds under way."""

    kinds: Kinds = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)


class _Elements:
    """What the elements of one exploded record have so far, which become rows of one run."""

    def __init__(self) -> None:
        self._rows = self._values = self._afresh = 0
        self._columns: set[tuple[str, ...]] = set()

    def check(self, row: Row, change: Change) -> None:
        """Take in one more. Raises InvalidValue when they have too little in common.

        Columns that started anew twice did so for two of the elements.
        """
        columns = list(_columns(row, ()))
        self._columns.update(columns)
        self._rows += 1
        self._values += len(columns)
        self._afresh += change is Change.INCOMPATIBLE
        if self._afresh > 1:
            raise InvalidValue("its elements cannot share columns")
        if self._rows * len(self._columns) > _FREE_CELLS + _CELLS_A_VALUE * self._values:
            raise InvalidValue("its elements have too many columns that most of them lack")


def _columns(row: Row, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, value in row.items():
        if isinstance(value, dict) and value:
            yield from _columns(value, (*above, name))
        else:
            yield (*above, name)


class Runs:
    """Takes records in order; an invalid one leaves no trace."""

    def __init__(self, settings: ShapeSettings, reserved: frozenset[str]) -> None:
        self._settings, self._reserved = settings, reserved
        self._runs = [_Run()]

    def add(self, position: int, trees: Sequence[Tree]) -> None:
        """The rows of one record. Raises InvalidValue when one of them is none; then the record has no row at all."""
        count, last = len(self._runs), self._runs[-1]
        kinds, length = last.kinds, len(last.rows)
        elements = _Elements()
        try:
            for tree in trees:
                change = self._add(position, tree)
                if len(trees) > 1:
                    elements.check(self._runs[-1].rows[-1], change)
        except InvalidValue:
            del self._runs[count:], last.rows[length:], last.positions[length:]
            last.kinds = kinds
            raise

    def sheets(self, invalid: Mapping[int, str]) -> list[Sheet]:
        """One for each run, at least one. invalid: of all records of the piece, told by the first sheet."""
        sheets = [_sheet(run) for run in self._runs]
        return [replace(sheets[0], invalid=invalid), *sheets[1:]]

    def _add(self, position: int, tree: Tree) -> Change:
        if not tree:
            raise InvalidValue("the list of records holds an empty object")
        run, row, change = self._runs[-1], self._row(tree), Change.NONE
        if not fits(run.kinds, row):
            kinds, change = evolve(run.kinds, self._row(tree), self._reserved)
            row = self._row(tree)
            fits(kinds, row)
            if run.rows and (change is not Change.ADDED or len(self._runs) < _MOST_FOR_COLUMNS):
                run = _Run()
                self._runs.append(run)
            run.kinds = kinds
        run.rows.append(row)
        run.positions.append(position)
        return change

    def _row(self, tree: Tree) -> Row:
        build = rows.flatten if self._settings.flatten else rows.nest
        return build(tree, self._settings.discard_collections)


def _sheet(run: _Run) -> Sheet:
    """The columns that these rows have a value in: those of the rows before them are the topic's to remember."""
    columns = tuple(to_fields(_used(run.kinds, run.rows)))
    arrays = tuple(pa.array([row.get(column.name) for row in run.rows], column.type) for column in columns)
    return Sheet(pa.array(run.positions, pa.int64()), columns, arrays)


def _used(kinds: Kinds, found: Sequence[Row]) -> Kinds:
    seen: Row = {}
    for row in found:
        seen.update(row)
    used: Kinds = {}
    for name in seen:
        kind = kinds[name]
        if isinstance(kind, dict):
            below = [inner for row in found if isinstance(inner := row.get(name), dict)]
            if below:
                used[name] = _used(kind, below)
        else:
            used[name] = kind
    return used
