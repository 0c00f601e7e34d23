"""JSON objects read in C, where that was built: what `fast.attempt` gives, or None for what Arrow's reader is to see.

The extension `_native_json` is strict: values that are not all plain objects with known fields of their types are left
to Arrow's reader, which says why, so that nothing depends on the extension but time: 0.27 µs of CPU for a record of 152
bytes and 7 fields in place of 1.4 (a busy machine).
"""

from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Final

import numpy as np
import pyarrow as pa

from parquet_sink.process.native import is_turned_off

_KINDS: Final = {pa.null(): 0, pa.int64(): 1, pa.float64(): 2, pa.bool_(): 3, pa.string(): 4}
_OBJECT: Final = 5
_NAMES_OTHERWISE: Final = frozenset(map(chr, (*range(0x20), ord('"'), ord("\\"))))
"""Characters that may, or must, stand in JSON in another form."""

Fields = tuple[tuple[bytes, int, Any], ...]


def read(values: pa.BinaryArray, schema: pa.Schema) -> pa.RecordBatch | None:
    """One row per value, one column per field of `schema`. values: no nulls."""
    module = None if is_turned_off() else extension()
    fields = None if module is None else _fields_of(schema)
    _, offsets, data = values.buffers()
    if module is None or fields is None or not pa.types.is_binary(values.type) or data is None:
        return None
    found = module.read(fields, data, offsets, values.offset, len(values))
    if found is None:
        return None
    columns = iter(found)
    batch = pa.record_batch([_array(field.type, columns, len(values)) for field in schema], schema=schema)
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        return None  # some text is not UTF-8
    return batch


@cache
def extension() -> Any | None:
    """The module in C, where it was built."""
    try:
        return import_module("parquet_sink.convert.json._native_json")
    except ImportError:
        return None


@lru_cache(64)
def _fields_of(schema: pa.Schema) -> Fields | None:
    """As the extension takes them; None for a schema that it does not know."""
    return _known([*schema])


def _known(fields: list[pa.Field]) -> Fields | None:
    found = []
    for field in fields:
        below: Fields | None = ()
        if pa.types.is_struct(field.type):
            below = _known([*field.type])
        kind = _OBJECT if pa.types.is_struct(field.type) else _KINDS.get(field.type)
        if kind is None or below is None or not _NAMES_OTHERWISE.isdisjoint(field.name):
            return None
        found.append((field.name.encode(), kind, below))
    return tuple(found)


def _array(type_: pa.DataType, columns: Iterator[tuple[bytes, bytes, bytes]], count: int) -> pa.Array:
    """The next column, and those of its fields."""
    present, values, text = next(columns)
    if pa.types.is_null(type_):
        return pa.nulls(count)
    valid = pa.py_buffer(_bits(present)) if b"\0" in present else None
    if pa.types.is_struct(type_):
        below = [_array(field.type, columns, count) for field in type_]
        return pa.Array.from_buffers(type_, count, [valid], children=below)
    if pa.types.is_string(type_):
        return pa.Array.from_buffers(type_, count, [valid, pa.py_buffer(values), pa.py_buffer(text)])
    if pa.types.is_boolean(type_):
        return pa.Array.from_buffers(type_, count, [valid, pa.py_buffer(_bits(values))])
    return pa.Array.from_buffers(type_, count, [valid, pa.py_buffer(values)])


def _bits(flags: bytes) -> np.ndarray:
    return np.packbits(np.frombuffer(flags, np.uint8), bitorder="little")
