"""Which of many JSON values keep the others from being read at once: found by the row that Arrow's reader fails at.

So a block with some bad values costs about two reads, and one small read for each bad value, not the exact way for all.
"""

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.json import fast

_ROW: Final = re.compile(r" in row (\d+)")
_WINDOW: Final = 1_024
"""Values that are tried at once: each bad one of them costs a copy of those behind it."""


def misfits(values: pa.BinaryArray, schema: pa.Schema, most: int) -> np.ndarray | None:
    """Positions of values without which `fast.read` may give rows, in order, unexpected fields ignored.

    values: that `objects` holds for. None when that cannot be told, or when they are more than `most`. It may name a
    value that is fine.
    """
    found: list[int] = []
    for start in range(0, len(values), _WINDOW):
        rows = _rows(values.slice(start, _WINDOW), schema, most - len(found))
        if rows is None:
            return None
        found += [start + row for row in rows]
    return np.array(found, np.int64)


def _rows(values: pa.BinaryArray, schema: pa.Schema, most: int) -> list[int] | None:
    """As `misfits`, of a window."""
    found: list[int] = []
    start = 0
    while start < len(values):
        try:
            fast.parsed(fast.lines(values.slice(start)), schema, "ignore")
        except pa.ArrowInvalid as error:
            row = _ROW.search(str(error))
            if row is None or len(found) == most or start + int(row[1]) >= len(values):
                return None
            found.append(start + int(row[1]))
            start = found[-1] + 1
        else:
            return found
    return found


def objects(values: pa.BinaryArray) -> np.ndarray:
    """For each value whether it is UTF-8 and looks like an object."""
    utf8 = _utf8(values)
    trimmed = pc.utf8_trim(pc.if_else(pa.array(utf8), values, b"").cast(pa.string()), fast.JSON_SPACE)
    framed = pc.and_(pc.starts_with(trimmed, "{"), pc.ends_with(trimmed, "}"))
    plain: np.ndarray = framed.to_numpy(zero_copy_only=False) & utf8
    return plain


def _utf8(values: pa.BinaryArray) -> np.ndarray:
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return np.array([_decodes(value) for value in values.to_pylist()], np.bool_)
    return np.ones(len(values), np.bool_)


def _decodes(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
