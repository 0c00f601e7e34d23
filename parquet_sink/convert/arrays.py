"""Arrow arrays: under another type of the same layout, masks of rows, and which values are UTF-8."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class _Reinterpreted:
    """An array's data offered under another type, by the Arrow PyCapsule protocol."""

    def __init__(self, array: pa.Array, arrow: pa.DataType) -> None:
        self._array, self._arrow = array, arrow

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        _, data = self._array.__arrow_c_array__()
        return self._arrow.__arrow_c_schema__(), data


def reinterpreted(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """The same bytes under another type of the same layout: other names, or a map as its entries. Nothing is copied."""
    return pa.array(_Reinterpreted(array, arrow))


BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def without_byte_order_marks(texts: pa.BinaryArray) -> pa.BinaryArray:
    """Return the texts without the mark that some editors and libraries put before UTF-8.

    First bytes are looked at before Arrow compares, which takes longer.
    """
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None or not data.size:
        return texts
    starts = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts)]
    first = np.frombuffer(data, np.uint8)[np.minimum(starts, data.size - 1)]
    if not (first == BYTE_ORDER_MARK[0]).any():
        return texts
    marked = pc.starts_with(texts, BYTE_ORDER_MARK)
    if not pc.any(marked).as_py():
        return texts
    bare = [text.removeprefix(BYTE_ORDER_MARK) for text in texts.filter(marked).to_pylist()]
    return pc.replace_with_mask(texts, marked, pa.array(bare, texts.type))


# Scalars are made with their types: PyArrow takes 0.1 ms each time to infer one.
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


def are_utf8(values: pa.BinaryArray) -> np.ndarray:
    """For each value whether it is UTF-8. values: no nulls."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return _each_is_utf8(values)
    return np.ones(len(values), np.bool_)


def _each_is_utf8(values: pa.BinaryArray) -> np.ndarray:
    found: np.ndarray = _are_ascii(values).to_numpy(zero_copy_only=False).copy()
    others = np.flatnonzero(~found)
    found[others] = [_decodes(value) for value in values.take(pa.array(others)).to_pylist()]
    return found


def _are_ascii(values: pa.BinaryArray) -> pa.BooleanArray:
    unchecked = pa.StringArray.from_buffers(len(values), *values.buffers()[1:], offset=values.offset)
    return pc.string_is_ascii(unchecked)


def _decodes(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
