"""Decodes many JSON values at once, in C or by Arrow's reader, into columns of a known schema, or nothing.

`read` either gives exactly what `exact.parse` would give for each value, apart from the ambiguous values below, or
None. Why one row is one value: each value starts with `{` and ends with `}`, so between two values stands `}`,
newline, `{`. No JSON object can span that (a string holds no raw newline, and two objects need a comma between them),
so each value is made of whole objects; as many rows as values, then, means one object each.

What the reader alone does not see, and `read` therefore checks: UTF-8 (it copies any bytes). What only the caller can
decide, with the columns at hand: an empty object (all null; see `has_empty_object`), fractions that are not finite,
integers in a fraction column beyond 2**53, and the sign of a zero. Everything else that the exact path refuses
or treats otherwise fails to read: unknown fields, other types, equal keys, lists, integers beyond int64, lone
surrogates, NUL.
"""

from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pyarrow_json

from parquet_sink.process.native import JSON, is_turned_off

_MAX_BYTES = 2**30
_NEWLINE = pa.scalar(b"\n", pa.binary())  # made once: making it looks for modules that may not be there
JSON_SPACE = " \t\r\n"
_DEEP = pa.scalar(900, pa.int32())
ODD_NUMBER = r"NaN|Inf|[0-9.][eE]\+?[0-9]{3}|[0-9]{64}"
SIGNED_INTEGER_ZERO = r"-0[ \t\r\n,}\]]"
"""What is in a text that has the integer `-0`, whose sign does not count as that of the fraction `-0.0` does."""

UNEXPECTED = "unexpected field"
"""What the reader says of a field that is not in the schema, where that is an error; it names no row."""

_EMPTY_OBJECT = r"\{[ \t\r\n]*\}"
_KINDS: Final = {
    pa.null(): 0,
    pa.int64(): 1,
    pa.float64(): 2,
    pa.bool_(): 3,
    pa.string(): 4,
    pa.int32(): 7,
    pa.int16(): 8,
    pa.int8(): 9,
}
_OBJECT: Final = 5
_TEXT_OR_LIST: Final = 6
NEWEST: Final = "payloads"
"""What the extension has had last."""
MOST_LEVELS: Final = 16
"""Of a list that becomes text in C."""
_NAMES_OTHERWISE: Final = frozenset(map(chr, (*range(0x20), ord('"'), ord("\\"))))
"""Characters that may, or must, stand in JSON in another form."""
Fields = tuple[tuple[bytes, int, Any], ...]
Lists: TypeAlias = dict[str, "Lists"]
"""Fields that may be lists, or objects with such fields below."""


def read(
    values: pa.BinaryArray, schema: pa.Schema, unexpected: Literal["error", "ignore"] = "error"
) -> pa.RecordBatch | None:
    """One row per value, one column per field of `schema`, or None when any value does not fit.

    values: no nulls. schema: integers, float64, bool, string, null (a field that is always null), structs and lists of
    these. unexpected: what becomes of fields that are not in `schema`. Ignored ones are not looked at closely: see
    `may_be_odd`.
    """
    found = attempt(values, schema, unexpected)
    return found if isinstance(found, pa.RecordBatch) else None


def attempt(
    values: pa.BinaryArray, schema: pa.Schema, unexpected: Literal["error", "ignore"] = "error"
) -> pa.RecordBatch | str:
    """As `read`, or the reader's message in place of None; empty where it has none."""
    if unexpected == "error" and (found := read_in_c(values, schema)) is not None:
        return found
    trimmed = _trimmed(values)
    if trimmed is None or not len(schema):
        return ""
    joined = lines(trimmed)
    if not _is_utf8(joined):
        return ""
    try:
        table = parsed(joined, schema, unexpected)
    except pa.ArrowInvalid as error:
        return str(error)
    batches = table.to_batches()
    if len(batches) != 1 or table.num_rows != len(values):
        return ""
    return batches[0]


def parsed(joined: pa.Buffer, schema: pa.Schema, unexpected: Literal["error", "ignore"]) -> pa.Table:
    """What Arrow's reader makes of `lines`. Raises pa.ArrowInvalid, which may name the row that does not fit."""
    options = pyarrow_json.ReadOptions(use_threads=False, block_size=joined.size + 1)
    parsing = pyarrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected)
    return pyarrow_json.read_json(pa.BufferReader(joined), read_options=options, parse_options=parsing)


def may_be_odd(values: pa.BinaryArray) -> pa.BooleanArray:
    """For each value whether a field that `read` ignored may hold what is not JSON, or what is nested too deeply.

    The reader takes NaN, Infinity, numbers beyond a double and any depth there, which the exact path refuses.
    It may be wrong.
    """
    odd = pc.match_substring_regex(values, ODD_NUMBER)
    long = pc.greater(pc.binary_length(values), _DEEP)
    if not pc.any(long).as_py():
        return odd
    depth = pc.add(pc.count_substring(values, "["), pc.count_substring(values, "{"))
    return pc.or_(odd, pc.greater(depth, _DEEP))


def has_empty_object(values: pa.BinaryArray) -> pa.BooleanArray:
    """For each value whether its text has `{}` anywhere (also inside a string, so it may be wrong)."""
    return pc.match_substring_regex(values, _EMPTY_OBJECT)


def has_signed_integer_zero(values: pa.BinaryArray) -> pa.BooleanArray:
    """For each value whether its text has the integer `-0` anywhere (also inside a string)."""
    return pc.match_substring_regex(values, SIGNED_INTEGER_ZERO)


def _trimmed(values: pa.BinaryArray) -> pa.Array | None:
    """The values when each starts with `{` and ends with `}`, trimmed if need be; None when that does not help."""
    if not len(values) or values.null_count or values.nbytes > _MAX_BYTES:
        return None
    if pc.all(framed(values)).as_py():
        return values
    try:
        trimmed = pc.ascii_trim(values.cast(pa.string()), JSON_SPACE)
    except pa.ArrowInvalid:
        return None
    return trimmed.cast(pa.binary()) if pc.all(framed(trimmed)).as_py() else None


def framed(values: pa.Array) -> pa.BooleanArray:
    """For each value whether it starts with `{` and ends with `}`."""
    return pc.and_(pc.starts_with(values, "{"), pc.ends_with(values, "}"))


def lines(values: pa.Array) -> pa.Buffer:
    """The bytes of all values, a newline between each two."""
    ends = pa.array([0, len(values)], pa.int32())
    return pc.binary_join(pa.ListArray.from_arrays(ends, values), _NEWLINE)[0].as_buffer()


def _is_utf8(lines: pa.Buffer) -> bool:
    """One check over the joined text is enough: a newline never continues a character."""
    ends = pa.array([0, lines.size], pa.int32()).buffers()[1]
    try:
        pa.StringArray.from_buffers(1, ends, lines).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def read_in_c(values: pa.BinaryArray, schema: pa.Schema, fields: Fields | None = None) -> pa.RecordBatch | None:
    """What `attempt` gives, where the extension `_native_json` was built; None for what Arrow's reader is to see.

    The extension is strict: values that are not all plain objects with known fields of their types are left to Arrow's
    reader, which says why, so that nothing depends on the extension but time: 0.27 µs of CPU for a record of 152 bytes
    and 7 fields in place of 1.4 (a busy machine). fields: `fields_in_c` of the schema, with lists.
    """
    module = None if is_turned_off() else extension()
    fields = _fields_of(schema) if module is not None and fields is None else fields
    _, offsets, data = values.buffers()
    if module is None or not fields or not _is_readable(values) or data is None:
        return None
    found = module.read(fields, data, offsets, values.offset, len(values), MOST_LEVELS)
    if found is None:
        return None
    columns = iter(found)
    batch = pa.record_batch([_array(field.type, columns, len(values)) for field in schema], schema=schema)
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        return None  # some text is not UTF-8
    return batch


def _is_readable(values: pa.BinaryArray) -> bool:
    return bool(
        pa.types.is_binary(values.type) and len(values) and not values.null_count and values.nbytes <= _MAX_BYTES
    )


@cache
def extension() -> Any | None:
    """The module in C, where it was built; None, too, where what was built is older than this module."""
    try:
        module = import_module(JSON)
    except ImportError:
        return None
    return module if hasattr(module, NEWEST) else None


def fields_in_c(schema: pa.Schema, lists: Lists) -> Fields | None:
    """As the extension takes them; None for a schema that it does not know. lists: text there may be a list."""
    return _known([*schema], lists)


@lru_cache(64)
def _fields_of(schema: pa.Schema) -> Fields | None:
    return fields_in_c(schema, {})


def _known(fields: list[pa.Field], lists: Lists) -> Fields | None:
    found = []
    for field in fields:
        below: Fields | None = ()
        if pa.types.is_struct(field.type):
            below = _known([*field.type], lists.get(field.name, {}))
        kind = _OBJECT if pa.types.is_struct(field.type) else _KINDS.get(field.type)
        if kind is None or below is None or not _NAMES_OTHERWISE.isdisjoint(field.name):
            return None
        is_list = field.name in lists and pa.types.is_string(field.type)
        found.append((field.name.encode(), _TEXT_OR_LIST if is_list else kind, below))
    return tuple(found)


def _array(type_: pa.DataType, columns: Iterator[tuple[Any, Any, Any]], count: int) -> pa.Array:
    """The next column, and those of its fields."""
    present, values, text = next(columns)
    if pa.types.is_null(type_):
        return pa.nulls(count)
    valid = None if present is None else pa.py_buffer(present)
    if pa.types.is_struct(type_):
        below = [_array(field.type, columns, count) for field in type_]
        return pa.Array.from_buffers(type_, count, [valid], children=below)
    texts = [pa.py_buffer(text)] if pa.types.is_string(type_) else []
    return pa.Array.from_buffers(type_, count, [valid, pa.py_buffer(values), *texts])
