"""Which of many values are UTF-8, where some are not: those that are ASCII alone are told at once."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def are_utf8(values: pa.BinaryArray) -> np.ndarray:
    """For each value whether it is UTF-8. values: no nulls."""
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
