"""Rows of which the fast reading saw less than there is, so that each must be read by itself.

An object without values may be `{}`, a fraction may have been an integer beyond 2**53 or not finite, a zero with a sign
the integer `-0`, which has none.
"""

from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.json.fast import has_empty_object, has_signed_integer_zero
from parquet_sink.convert.masks import all_null, anywhere, either

# Scalars have their types told: PyArrow takes 0.1 ms each time to find out by itself.
_EXACT_LIMIT = pa.scalar(float(2**53), pa.float64())
_NEGATIVE_ZERO_BITS = pa.scalar(-(2**63), pa.int64())
_Mask: TypeAlias = pa.BooleanArray | None


def doubtful(batch: pa.RecordBatch, values: pa.BinaryArray, discard_empty: bool) -> pa.BooleanArray | None:
    """For each row whether it may be another than it looks; None when none is.

    batch: what `fast.read` made of `values`. discard_empty: whether an object below is `{}` or has nulls alone makes
    no difference.
    """
    found = _Doubts(discard_empty)
    found.hollow = all_null(batch.columns)
    for array in batch.columns:
        found.look(array)
    if found.hollow is not None and pc.any(found.hollow).as_py():
        found.doubt(pc.and_(found.hollow, has_empty_object(values)))
    if found.signed is not None:
        found.doubt(pc.and_(found.signed, has_signed_integer_zero(values)))
    return found.rows if found.rows is not None and pc.any(found.rows).as_py() else None


class _Doubts:
    """hollow: rows with an object whose fields are all null. signed: rows with a zero that has a sign."""

    def __init__(self, discard_empty: bool) -> None:
        self._discard_empty = discard_empty
        self.rows: _Mask = None
        self.hollow: _Mask = None
        self.signed: _Mask = None

    def doubt(self, mask: _Mask) -> None:
        self.rows = either(self.rows, mask)

    def look(self, array: pa.Array) -> None:
        """One column, and what is below it."""
        if pa.types.is_float64(array.type):
            self.doubt(anywhere(pc.invert(pc.less(pc.abs(array), _EXACT_LIMIT))))
            self.signed = either(self.signed, anywhere(pc.equal(array.view(pa.int64()), _NEGATIVE_ZERO_BITS)))
        elif pa.types.is_struct(array.type) and array.type.num_fields:
            children = array.flatten()
            nothing = None if self._discard_empty else all_null(children)
            if nothing is not None:
                self.hollow = either(self.hollow, pc.and_(nothing, array.is_valid()))
            for child in children:
                self.look(child)
