"""Masks of rows, of which None stands for one that holds nowhere."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

# Scalars have their types told: PyArrow takes 0.1 ms each time to find out by itself.
_TRUE: Final = pa.scalar(True, pa.bool_())
_FALSE: Final = pa.scalar(False, pa.bool_())


def either(first: pa.BooleanArray | None, second: pa.BooleanArray | None) -> pa.BooleanArray | None:
    """Where one of two masks holds; None stands for nowhere."""
    if first is None or second is None:
        return second if first is None else first
    return pc.or_(first, second)


def all_null(arrays: Sequence[pa.Array]) -> pa.BooleanArray | None:
    """Rows that are null in all of the arrays, at least one; None when that is certainly nowhere."""
    if any(not array.null_count for array in arrays):
        return None
    nothing: pa.BooleanArray | None = None
    for array in arrays:
        if array.null_count == len(array):
            continue
        nothing = array.is_null() if nothing is None else pc.and_(nothing, array.is_null())
    return pa.repeat(_TRUE, len(arrays[0])) if nothing is None else nothing


def anywhere(mask: pa.BooleanArray) -> pa.BooleanArray | None:
    """A mask, null being false; None where it holds nowhere."""
    return pc.fill_null(mask, _FALSE) if mask.true_count else None
