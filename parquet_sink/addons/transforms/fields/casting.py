"""Values cast to another type, as Kafka Connect's Cast does it: one by one, which is the definition, and columns."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.transforms.fields.errors import kind, tree_kind
from parquet_sink.addons.transforms.fields.java import numbers
from parquet_sink.convert.arrays import anywhere, either, reinterpreted
from parquet_sink.convert.calendars import DAY_MS, chosen_text
from parquet_sink.convert.decoded import Float32, Int32
from parquet_sink.transform.fields.base import Found
from parquet_sink.transform.fields.plain import from_plain, plain_type, to_plain
from parquet_sink.transform.protocol import RecordFault

CastTo: TypeAlias = Callable[[object], object]
"""A value that is not null to one of the target. Raises RecordFault."""

BITS: Final[Mapping[str, int]] = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TARGETS: Final[Mapping[str, pa.DataType]] = {
    "int8": pa.int32(),
    "int16": pa.int32(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
}
"""By Connect's names, the type of a column."""
_POINT_ZERO: Final = pa.scalar(".0", pa.string())
_NOTHING: Final = pa.scalar("", pa.string())
_PLAIN: Final = (1e-3, 1e7)
_PARTS: Final = r"^(?P<sign>-?)(?P<whole>[0-9]+)\.?(?P<part>[0-9]*)(?:e(?P<power>[-+]?[0-9]+))?$"
_WHOLE: Final = r"^-?[0-9]{1,18}$"
_FRACTION: Final = r"^-?[0-9]{1,17}(\.[0-9]{1,17})?$"
_DTYPES: Final = {"int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64}
_FLOATS: Final = {"float32": np.float32, "float64": np.float64}
_OF_JSON: Final = (
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string, pa.types.is_null),
)


def of_tree(value: object, target: str) -> object:
    """A value without a schema. Raises RecordFault."""
    if value is None:
        return None
    if type(value) not in _TREES:
        raise RecordFault(f"{tree_kind(value)} cannot be cast to {target}")
    found = _TREES[type(value)](value, target)
    return _SIZED[target](found) if target in _SIZED else found


def of_typed(arrow: pa.DataType, target: str) -> CastTo:
    """How plain values of a type are cast (see `fields.plain`)."""
    for matches, cast in _TYPED:
        if matches(arrow):
            return lambda value: cast(value, target)
    return lambda _: _refuse(arrow, target)


def _refuse(arrow: pa.DataType, target: str) -> object:
    raise RecordFault(f"{kind(arrow)} cannot be cast to {target}")


def _integer(value: object, target: str) -> object:
    assert isinstance(value, int)
    if target in BITS:
        return numbers.wrapped(value, BITS[target])
    if target == "float32":
        return numbers.to_float32(value)
    if target == "float64":
        return float(value)
    return value != 0 if target == "boolean" else str(value)


def _float(value: object, target: str) -> object:
    assert isinstance(value, float)
    return numbers.of_float(value) if target == "string" else _fraction(value, target)


def _float32(value: object, target: str) -> object:
    assert isinstance(value, float)
    return numbers.of_float32(value) if target == "string" else _fraction(value, target)


def _fraction(value: float, target: str) -> object:
    if target == "int64":
        return numbers.truncated(value, 64)
    if target in BITS:
        return numbers.wrapped(numbers.truncated(value, 32), BITS[target])
    if target == "boolean":
        return numbers.truncated(value, 64) != 0
    return numbers.to_float32(value) if target == "float32" else value


def _decimal(value: object, target: str) -> object:
    assert isinstance(value, Decimal)
    if target in BITS:
        return numbers.wrapped(numbers.decimal_as_int64(value), BITS[target])
    if target == "boolean":
        return numbers.decimal_as_int64(value) != 0
    if target == "float32":
        return numbers.parse_float32(str(value))
    return float(value) if target == "float64" else str(value)


def _boolean(value: object, target: str) -> object:
    if target == "string":
        return "true" if value else "false"
    if target == "boolean":
        return value
    return int(bool(value)) if target in BITS else float(bool(value))


def _string(value: object, target: str) -> object:
    assert isinstance(value, str)
    if target == "string":
        return value
    if target == "boolean":
        return value.lower() == "true"
    try:
        if target in BITS:
            return numbers.parse_integer(value, BITS[target])
        return numbers.parse_float32(value) if target == "float32" else numbers.parse_float(value)
    except numbers.NoNumber:
        raise RecordFault(f"its text is not a number that {target} can hold") from None


def _bytes(value: object, target: str) -> object:
    assert isinstance(value, bytes)
    if target != "string":
        raise RecordFault(f"bytes cannot be cast to {target}, only to string")
    return b64encode(value).decode()


def _date(value: object, target: str) -> object:
    assert isinstance(value, int)
    return chosen_text(value * DAY_MS) if target == "string" else _integer(value, target)


def _time(value: object, target: str) -> object:
    assert isinstance(value, int)
    return chosen_text(value) if target == "string" else _integer(value, target)


_SIZED: Final[Mapping[str, Callable[[Any], object]]] = {
    **dict.fromkeys(("int8", "int16", "int32"), Int32),
    "int64": int,
    "float32": Float32,
    "float64": float,
}
_TREES: Final[Mapping[type, Callable[[object, str], object]]] = {
    int: _integer,
    Int32: _integer,
    float: _float,
    Float32: _float32,
    bool: _boolean,
    str: _string,
}
_TYPED: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[object, str], object]], ...]] = (
    (pa.types.is_integer, _integer),
    (pa.types.is_float64, _float),
    (pa.types.is_float32, _float32),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_string, _string),
    (pa.types.is_binary, _bytes),
    (pa.types.is_date32, _date),
    (pa.types.is_time32, _time),
    (pa.types.is_timestamp, _time),
)


# Arrow prints the same shortest digits, but sets the point and the exponent otherwise. CPU per value: 0.1 µs, beyond
# 1e7 and below 1e-3 ten times as much.
def of_floats(array: pa.Array) -> pa.StringArray:
    """The texts; null where the value is. array: of float64, or float32."""
    found, size = array.cast(pa.string()), pc.abs(array)
    whole = pc.fill_null(pc.equal(pc.trunc(array), array), False)
    if whole.true_count:  # Arrow prints them without a fraction
        pointed = pc.binary_join_element_wise(found.filter(whole), _POINT_ZERO, "")
        found = pc.replace_with_mask(found, whole, pointed)
    plain = pc.or_(pc.and_(pc.greater_equal(size, _PLAIN[0]), pc.less(size, _PLAIN[1])), pc.equal(size, 0))
    odd = pc.fill_null(pc.invert(plain), False)
    return pc.replace_with_mask(found, odd, _scientific(array.filter(odd))) if odd.true_count else found


def _scientific(array: pa.Array) -> pa.StringArray:
    """Texts of numbers that are printed with an exponent, or are none; no nulls."""
    parts = pc.extract_regex(array.cast(pa.string()), _PARTS)
    sign, whole, part, power = (parts.field(name) for name in ("sign", "whole", "part", "power"))
    written = pc.binary_join_element_wise(whole, part, "")
    digits = pc.utf8_ltrim(written, "0")
    zeros = pc.subtract(pc.binary_length(written), pc.binary_length(digits))
    shift = pc.if_else(pc.equal(power, _NOTHING), "0", pc.utf8_ltrim(power, "+")).cast(pa.int32())
    exponent = pc.add(pc.subtract(pc.subtract(pc.binary_length(whole), 1), zeros), shift)
    digits = pc.utf8_rtrim(digits, "0")
    first, others = pc.utf8_slice_codeunits(digits, 0, 1), pc.utf8_slice_codeunits(digits, 1, None)
    found = pc.binary_join_element_wise(sign, first, ".", others, "E", exponent.cast(pa.string()), "")
    alone = pc.or_(parts.is_null(), pc.fill_null(pc.less_equal(pc.binary_length(digits), 1), False))
    if not alone.true_count:
        return found
    text = numbers.of_float32 if pa.types.is_float32(array.type) else numbers.of_float
    exact = pa.array([text(value) for value in array.filter(alone).to_pylist()], pa.string())
    return pc.replace_with_mask(found, alone, exact)


def cast(array: pa.Array, target: str) -> Found:
    """A column with a schema."""
    arrow = array.type
    if pa.types.is_null(arrow) or array.null_count == len(array):
        return pa.nulls(len(array), TARGETS[target]), None
    for matches, change in _KERNELS:
        if matches(arrow):
            return change(array, target)
    return by_values(array, TARGETS[target], of_typed(arrow, target))


def cast_read(array: pa.Array, target: str) -> Found:
    """A column of records without a schema, which has whole numbers as int64 and all others as float64 at first.

    A whole number in a column of fractions may have been read from either: it is in doubt where that counts. What JSON
    has not (objects; dates and times that a transform made) is in doubt everywhere.
    """
    if not is_of_json(array.type):
        return array, anywhere(array.is_valid())
    found, doubtful = cast(array, target)
    if pa.types.is_float64(array.type) and target in ("string", "int8", "int16", "int32"):
        whole = pc.equal(pc.trunc(array), array)
        if target != "string":
            whole = pc.and_(whole, pc.greater(pc.abs(array), 2.0**30))
        doubtful = either(doubtful, anywhere(whole))
    return found, doubtful


def is_of_json(arrow: pa.DataType) -> bool:
    """Whether a column of this type may have been read from JSON, leaving out objects."""
    return any(test(arrow) for test in _OF_JSON)


def by_values(array: pa.Array, arrow: pa.DataType, exact: Callable[[object], object]) -> Found:
    """A column made value by value, by a function that raises RecordFault where a row must be looked at."""
    made: list[object] = []
    bad: list[int] = []
    for row, value in enumerate(to_plain(array)):
        try:
            made.append(None if value is None else exact(value))
        except RecordFault:
            made.append(None)
            bad.append(row)
    doubtful = None
    if bad:
        mask = np.zeros(len(array), np.bool_)
        mask[bad] = True
        doubtful = pa.array(mask)
    return from_plain(made, arrow), doubtful


def _numbers(array: pa.Array) -> tuple[np.ndarray, np.ndarray | None]:
    """The values, with 0 for null, and where that is."""
    if not array.null_count:
        return array.to_numpy(), None
    return pc.fill_null(array, 0).to_numpy(), array.is_null().to_numpy(zero_copy_only=False)


def _integers(array: pa.Array, target: str) -> Found:
    return _of_integers(array, target), None


def _of_integers(array: pa.Array, target: str) -> pa.Array:
    if target == "string":
        return array.cast(pa.string())
    values, nulls = _numbers(array)
    if target == "boolean":
        return pa.array(values != 0, pa.bool_(), mask=nulls)
    dtype = _DTYPES[target] if target in BITS else _FLOATS[target]
    return _made(values.astype(dtype), nulls, target)


def _made(values: np.ndarray, nulls: np.ndarray | None, target: str) -> pa.Array:
    wide = values.astype(np.int32) if target in ("int8", "int16") else values
    return pa.array(wide, TARGETS[target], mask=nulls)


def _booleans(array: pa.Array, target: str) -> Found:
    return array.cast(TARGETS[target]), None


def _temporals(array: pa.Array, target: str) -> Found:
    if target == "string":
        return by_values(array, pa.string(), of_typed(array.type, target))
    return _integers(reinterpreted(array, plain_type(array.type)), target)


def _floats(array: pa.Array, target: str) -> Found:
    return (of_floats(array) if target == "string" else _fractions(array, target)), None


def _fractions(array: pa.Array, target: str) -> pa.Array:
    values, nulls = _numbers(array)
    with np.errstate(over="ignore", invalid="ignore"):
        if target in _FLOATS:
            return pa.array(values.astype(_FLOATS[target]), mask=nulls)
        whole = _truncated(values.astype(np.float64), 32 if target in BITS and BITS[target] < 64 else 64)
    if target == "boolean":
        return pa.array(whole != 0, pa.bool_(), mask=nulls)
    return _made(whole.astype(_DTYPES[target]), nulls, target)


def _truncated(values: np.ndarray, bits: int) -> np.ndarray:
    """As `numbers.truncated`, in int64."""
    half = 2.0 ** (bits - 1)
    inside = (values >= -half) & (values < half)
    whole = np.where(inside, values, 0).astype(np.int64)
    if inside.all():
        return whole
    limit = 1 << (bits - 1)
    return np.where(values >= half, limit - 1, np.where(values < -half, -limit, whole))


def _strings(array: pa.Array, target: str) -> Found:
    if target == "string":
        return array, None
    if target == "boolean":
        return pc.equal(pc.ascii_lower(array), "true"), None
    usual = pc.match_substring_regex(array, _WHOLE if target in BITS else _FRACTION)
    doubtful = anywhere(pc.invert(usual))
    if doubtful is not None:
        array = pc.if_else(usual, array, pa.scalar(None, pa.string()))
    if target in _FLOATS:
        return array.cast(TARGETS[target]), doubtful
    whole = array.cast(pa.int64())
    if target == "int64":
        return whole, doubtful
    found = _of_integers(whole, target)
    return found, either(doubtful, anywhere(pc.not_equal(found, whole)))


def _decimals(array: pa.Array, target: str) -> Found:
    if target in ("string", "float32", "float64"):
        text = array.cast(pa.string())
        return (text if target == "string" else text.cast(TARGETS[target])), None
    try:
        whole = array.cast(options=pc.CastOptions(pa.int64(), allow_decimal_truncate=True))
    except pa.ArrowInvalid:
        return by_values(array, TARGETS[target], of_typed(array.type, target))
    return _integers(whole, target)


_KERNELS: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, str], Found]], ...]] = (
    (pa.types.is_integer, _integers),
    (pa.types.is_floating, _floats),
    (pa.types.is_boolean, _booleans),
    (pa.types.is_string, _strings),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_temporal, _temporals),
)
