"""Which tombstones the topic's columns take: their keys must be values that a row of the topic can have there.

A number may be written in another type than the column's as long as it is the same number. Nothing is widened for a
tombstone: a key that no row has deletes nothing, and one that only looks alike would delete another row.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import ems
from parquet_sink.convert.arrays import either
from parquet_sink.convert.invalid import show
from parquet_sink.rows.column_batch import ColumnBatch
from parquet_sink.rows.schema import arrow_types
from parquet_sink.rows.schema.evolution import Columns, Incompatible, aligned, nullable, unified
from parquet_sink.rows.schema.topic_columns import Step, TopicColumns

_NUMBERS: Final = (pa.int32(), pa.int64(), pa.float32(), pa.float64())
_BEYOND: Final = 2.0**63


class TombstoneFit:
    """Of one batch, with the topic's columns as they are when asked. names: the primary keys from the payload."""

    def __init__(self, batch: ColumnBatch, topic: TopicColumns, names: Sequence[str]) -> None:
        self._batch, self._topic, self._names = batch, topic, names
        self._own = {column.name: array for column, array in zip(batch.columns, batch.arrays, strict=True)}
        self._version = -1
        self._misfits = np.array([], np.int64)

    def next(self, row: int) -> int:
        """The first row from here on that the columns do not take; the batch's length for none."""
        if self._version != self._topic.version:
            self._version = self._topic.version
            self._misfits = self._found()
        at = int(np.searchsorted(self._misfits, row))
        return int(self._misfits[at]) if at < len(self._misfits) else len(self._batch)

    def step(self) -> Step:
        """What the rows ask of the topic's columns: those that it lacks, and null where another column is required."""
        return self._topic.step(self._columns())

    def why_not(self, row: int) -> str:
        """What is wrong with a row that does not fit."""
        if missing := [name for name in self._names if name not in self._topic and name not in self._own]:
            why = "which no record of the topic had before; let keys have it, or a record with a value come first"
            return (
                f"{ems('tombstones')}=row: it is a tombstone, and its key has no value for column {missing[0]}, {why}"
            )
        for name, array in self._own.items():
            if array[row].is_valid and name in self._topic:
                column = self._topic.field(name).type
                mask = misfits(array.slice(row, 1), column)
                if mask is not None and mask[0].as_py():
                    return _why(name, array.type, column)
        raise AssertionError("a tombstone that fits")

    def _columns(self) -> Columns:
        """The primary keys' columns, those that are there as they are."""
        own = {column.name: column for column in self._batch.columns}
        return tuple(nullable(self._topic.field(name) if name in self._topic else own[name]) for name in own)

    def _found(self) -> np.ndarray:
        if any(name not in self._topic and name not in self._own for name in self._names):
            return np.arange(len(self._batch))
        mask: pa.BooleanArray | None = None
        for name, array in self._own.items():
            if name in self._topic:
                mask = either(mask, misfits(array, self._topic.field(name).type))
        return np.array([], np.int64) if mask is None else np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def misfits(array: pa.Array, to: pa.DataType) -> pa.BooleanArray | None:
    """Values that are not the same in a column of another type; None when all are."""
    if array.type.equals(to) or array.null_count == len(array):
        return None
    if array.type in _NUMBERS and to in _NUMBERS:
        found = _other_numbers(array, to)
        return pa.array(found) if found.any() else None
    try:
        if unified(to, array.type).equals(to):
            return _not_borne(array, to)
    except Incompatible:
        pass
    return array.is_valid()


def brought(array: pa.Array, to: pa.DataType) -> pa.Array:
    """Numbers, none of them a misfit, as another type; other arrays as they are."""
    are_numbers = array.type in _NUMBERS and to in _NUMBERS
    return array.cast(to, safe=False) if are_numbers else array


def _other_numbers(array: pa.Array, to: pa.DataType) -> np.ndarray:
    """Which numbers another type of number does not hold."""
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    given = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    wanted = to.to_pandas_dtype()
    with np.errstate(all="ignore"):
        if np.issubdtype(given.dtype, np.floating) and np.issubdtype(wanted, np.integer):
            given = np.where((given >= -_BEYOND) & (given < _BEYOND), given, 0.5)
        changed = given.astype(wanted)
        if np.issubdtype(given.dtype, np.integer) and np.issubdtype(wanted, np.floating):
            changed = np.where(changed < _BEYOND, changed, -0.5)
        same = changed.astype(given.dtype) == given
    misfit: np.ndarray = valid & ~same
    return misfit


def _not_borne(array: pa.Array, to: pa.DataType) -> pa.BooleanArray | None:
    """Which values, of types that can share a column, a column cannot hold."""
    if _holds(array, to):
        return None
    return pa.array([not _holds(array.slice(row, 1), to) for row in range(len(array))], pa.bool_())


def _holds(array: pa.Array, to: pa.DataType) -> bool:
    try:
        aligned(array, to)
    except pa.ArrowInvalid:
        return False
    return True


def _why(name: str, own: pa.DataType, column: pa.DataType) -> str:
    given = f"{arrow_types.name(own)} that no row can have in that column ({column}), so it would delete nothing"
    cure = "let key.converter or a transform give the key the type that the value has"
    return f"{ems('tombstones')}=row: it is a tombstone, and its key's {show((name,))} is {given}; {cure}"
