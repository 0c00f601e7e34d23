"""Rows that were read as columns, and which of them change the topic's columns or may not be taken as they are.

Such a row is taken as a tree, for which `run_builder` has the rules; all others fit the topic's columns as these are.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.arrays import either
from parquet_sink.rows.column_batch import InferredBatch
from parquet_sink.rows.primary_keys import PrimaryKeys
from parquet_sink.rows.schema.evolution import Incompatible, unified, widens
from parquet_sink.rows.schema.topic_columns import TopicColumns

MOST_LOOKS: Final = 64
"""How many times the rows of one batch are looked at again because the topic's columns changed; then all are alone."""

_EXACT: Final = pa.scalar(2**53, pa.int64())
_EXACT_NEGATIVE: Final = pa.scalar(-(2**53), pa.int64())


class LoneRows:
    """Of one batch."""

    def __init__(self, part: InferredBatch, topic: TopicColumns, keys: PrimaryKeys, needs_column: bool) -> None:
        """needs_column: while the topic has no column, a row is judged as a tree."""
        self._part, self._topic, self._keys, self._needs_column = part, topic, keys, needs_column
        self._version, self._looks = -1, 0
        self._rows = np.array([], np.int64)

    def next(self, row: int) -> int:
        """The first such row from here on, with the topic's columns as they are now; the batch's length for none."""
        if self._version != self._topic.version:
            self._version = self._topic.version
            self._looks += 1
            self._rows = self._all() if self._looks > MOST_LOOKS else self._found()
        at = int(np.searchsorted(self._rows, row))
        return int(self._rows[at]) if at < len(self._rows) else len(self._part.batch)

    def _all(self) -> np.ndarray:
        return np.arange(len(self._part.batch))

    def _found(self) -> np.ndarray:
        batch, mask = self._part.batch, self._part.alone
        if (self._needs_column and not self._topic) or self._keys.missing(self._topic):
            return self._all()
        arrays = {column.name: array for column, array in zip(batch.columns, batch.arrays, strict=True)}
        for name, array in arrays.items():
            mask = either(mask, self._misfits(name, array))
        mask = either(mask, self._keys.nulls_in(arrays, len(batch)))
        return np.array([], np.int64) if mask is None else np.flatnonzero(mask.to_numpy(zero_copy_only=False))

    def _misfits(self, name: str, array: pa.Array) -> pa.BooleanArray | None:
        """Rows whose value the topic's column may not hold as it is."""
        if name not in self._topic:
            return array.is_valid()
        column = self._topic.field(name).type
        if column.equals(array.type):
            return None
        widened = widens(pa.field(name, array.type), pa.field(name, column)) if _holds(column, array.type) else None
        if widened is False:
            return None
        if widened is None or pa.types.is_struct(column):
            return array.is_valid()
        return pc.fill_null(pc.or_(pc.greater(array, _EXACT), pc.less(array, _EXACT_NEGATIVE)), fill_value=False)


def _holds(column: pa.DataType, own: pa.DataType) -> bool:
    """Whether a column of one type needs no change for another, leaving out whether all values are borne."""
    try:
        return bool(unified(column, own).equals(column))
    except Incompatible:
        return False
