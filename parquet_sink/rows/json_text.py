"""Typed values as JSON text, as Kafka Connect's JsonConverter writes them without schemas, with numeric decimals.

Compact, fields in order, nulls kept, characters as they are. bytes are base64; a Decimal is a number of all its digits,
because no reader of the text knows the scale of an unscaled value; a Date is days, a Time and a Timestamp milliseconds;
a number that is none is the string `"NaN"`, `"Infinity"` or `"-Infinity"`; a map with string keys is an object, any
other a list of [key, value]. A fraction has a point or an exponent and as few digits as tell it from its neighbours,
for a float from those of a float; Java writes the same value, at times with another exponent (`1.0E20` for `1e+20`).

Texts are built column by column. Only strings with something to escape and bytes go one by one.
"""

import binascii

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.arrays import reinterpreted
from parquet_sink.rows.schema.arrow_types import entries, fields, spans, where_valid

_ESCAPED = r'["\\\x00-\x1f]'
_WHOLE = r"^-?[0-9]+$"
_NO_NUMBERS = (("nan", '"NaN"'), ("-nan", '"NaN"'), ("inf", '"Infinity"'), ("-inf", '"-Infinity"'))
_DATES = {pa.date32(): pa.int32(), pa.time32("ms"): pa.int32(), pa.timestamp("ms", "UTC"): pa.int64()}
_LONGEST_FIXED = 26
"""Bytes of the longest text of a value of fixed width, a comma included; decimals are longer."""
_LONGEST_DECIMAL = 80
_LONGEST_ESCAPE = 6


def texts(array: pa.Array) -> pa.StringArray:
    """One text for each entry, null where it is null. See `bound` for how long they may be altogether."""
    arrow = array.type
    if pa.types.is_struct(arrow):
        found = _structs(array)
    elif pa.types.is_list(arrow):
        found = _lists(array)
    elif pa.types.is_map(arrow):
        found = _maps(array)
    else:
        return _leaves(array)
    return where_valid(array, found)


def quoted(name: str) -> str:
    """A string as JSON text."""
    return orjson.dumps(name).decode()


def bound(array: pa.Array) -> int:
    """An upper bound of the bytes of all `texts`, without looking at each. Arrow holds less than 2 GiB of text."""
    arrow, count = array.type, len(array)
    if pa.types.is_struct(arrow):
        names = sum(len(quoted(field.name).encode()) + 2 for field in fields(arrow))
        return count * (names + 5) + sum(bound(array.field(index)) for index in range(arrow.num_fields))
    if pa.types.is_map(arrow):
        return bound(reinterpreted(array, entries(arrow)))
    if not count:
        return 0
    if pa.types.is_list(arrow):
        return count * 5 + bound(spans(array)[1])
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        size: int = _content(array).size
        return count * 5 + size * _LONGEST_ESCAPE
    return count * (_LONGEST_DECIMAL if pa.types.is_decimal(arrow) else _LONGEST_FIXED)


def _leaves(array: pa.Array) -> pa.StringArray:
    arrow = array.type
    if pa.types.is_string(arrow):
        return _strings(array)
    if pa.types.is_floating(arrow):
        return _fractions(array)
    if pa.types.is_binary(arrow):
        return pa.array([None if value is None else _base64(value) for value in array.to_pylist()], pa.string())
    if arrow in _DATES:
        array = array.view(_DATES[arrow])
    return array.cast(pa.string())


def _structs(array: pa.StructArray) -> pa.StringArray:
    parts: list[object] = []
    opening = "{"
    for index, field in enumerate(fields(array.type)):
        parts += [_text(f"{opening}{quoted(field.name)}:"), _filled(texts(array.field(index)))]
        opening = ","
    if not parts:
        return pa.repeat(_text("{}"), len(array))
    return _concatenated(*parts, _text("}"))


def _lists(array: pa.ListArray) -> pa.StringArray:
    offsets, values = spans(array)
    return _joined("[", offsets, _filled(texts(values)), "]")


def _maps(array: pa.MapArray) -> pa.StringArray:
    offsets, pairs = spans(reinterpreted(array, entries(array.type)))
    keys, items = texts(pairs.field(0)), _filled(texts(pairs.field(1)))
    if pa.types.is_string(array.type.key_type):
        return _joined("{", offsets, _concatenated(keys, _text(":"), items), "}")
    return _joined("[", offsets, _concatenated(_text("["), keys, _text(","), items, _text("]")), "]")


def _joined(opening: str, offsets: pa.Int32Array, found: pa.StringArray, closing: str) -> pa.StringArray:
    inner = pc.binary_join(pa.ListArray.from_arrays(offsets, found), _text(","))
    return _concatenated(_text(opening), inner, _text(closing))


def _concatenated(*parts: object) -> pa.StringArray:
    return pc.binary_join_element_wise(*parts, _text(""))


def _text(text: str) -> pa.StringScalar:
    """Its type being told, Arrow need not look for it, which takes many times as long as making it."""
    return pa.scalar(text, pa.string())


def _filled(found: pa.StringArray) -> pa.StringArray:
    return pc.fill_null(found, _text("null")) if found.null_count else found


def _strings(array: pa.StringArray) -> pa.StringArray:
    if _may_need_escapes(array):
        mask = pc.fill_null(pc.match_substring_regex(array, _ESCAPED), fill_value=False)
        escaped = [quoted(value)[1:-1] for value in array.filter(mask).to_pylist()]
        array = pc.replace_with_mask(array, mask, pa.array(escaped, pa.string()))
    return _concatenated(_text('"'), array, _text('"'))


def _may_need_escapes(array: pa.StringArray) -> bool:
    """Whether a quote, a backslash or a control character is anywhere in the text; nulls may hide one."""
    content = _content(array)
    if not content.size:
        return False
    codes = pa.Array.from_buffers(pa.uint8(), content.size, [None, content])
    if pc.min_max(codes)["min"].as_py() < ord(" "):
        return True
    text = content.to_pybytes()
    return b'"' in text or b"\\" in text


def _content(array: pa.Array) -> pa.Buffer:
    """The bytes of all strings together. array: not empty, or its content is empty too."""
    _, starts, content = array.buffers()
    if content is None or not len(array):
        return pa.py_buffer(b"")
    offsets = pa.Array.from_buffers(pa.int32(), len(array) + 1, [None, starts], offset=array.offset)
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return content.slice(first, last - first)


def _fractions(array: pa.Array) -> pa.StringArray:
    """Arrow's shortest digits, with `.0` where they look like an integer."""
    found = array.cast(pa.string())
    if pc.any(pc.equal(array, pc.trunc(array))).as_py():
        whole = pc.match_substring_regex(found, _WHOLE)
        found = pc.if_else(whole, _concatenated(found, _text(".0")), found)
    if pc.all(pc.is_finite(array)).as_py() is False:
        for written, text in _NO_NUMBERS:
            found = pc.if_else(pc.equal(found, _text(written)), _text(text), found)
    return found


def _base64(value: bytes) -> str:
    return f'"{binascii.b2a_base64(value, newline=False).decode()}"'
