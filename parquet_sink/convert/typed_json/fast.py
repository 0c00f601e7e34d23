"""Decodes many JSON values of a known struct at once: what `exact` gives, or an ambiguous row, which it must read.

C or Arrow's reader does the parsing (see `json.fast` for the guards that make its answer trustworthy). It reads numbers
to size, text, booleans, structs and lists; dates and times are read as integers, bytes and decimals as text, and turned
into what they are here. Decimals that are written as numbers need another reading of the whole. Rows that it cannot
decide are ambiguous: a null where none may be, a zero with a sign, a fraction that is not finite, text that is not
base64. Maps, unions, JSON text, lists of nulls alone, whose items Arrow's reader miscounts, and values that are no
struct are never read fast; a field for the others of an object is null in what is.

CPU per record of about 150 bytes with 7 fields, in blocks of 10,000: 0.7 µs, nearly all of it Arrow's
reader; 1.0 when unexpected fields must be ignored. The exact path takes 2.8. Arrow has no kernel for base64, so these
texts go value by value: 0.1 µs for bytes, 0.7 µs for a decimal.
"""

import binascii
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.arrays import reinterpreted
from parquet_sink.convert.decimals import LONGEST_DECIMAL, to_decimal_text
from parquet_sink.convert.decoded import decimal_type
from parquet_sink.convert.json import fallback
from parquet_sink.convert.json import fast as json_fast
from parquet_sink.convert.typed_json.types import (
    MILLIS_PER_DAY,
    OTHERS,
    SCALARS,
    DecimalKind,
    Field,
    Kind,
    ListKind,
    MapKind,
    ScalarKind,
    ScalarName,
    Slot,
    StructKind,
    TextKind,
    UnionKind,
    VariableDecimalKind,
    kinds,
    to_arrow,
)


def from_base64(texts: pa.StringArray) -> tuple[pa.BinaryArray, list[int]]:
    """The bytes, null where the text is; and the positions of texts that are not base64, which become null."""
    found, bad = _decode(texts)
    return pa.array(found, pa.binary()), bad


def from_base64_decimals(texts: pa.StringArray, kind: DecimalKind) -> tuple[pa.Array, list[int]]:
    """The decimals whose unscaled values the texts hold; and the positions of those that are none, which become null.

    Put together from bytes: making a Python decimal of each takes twice as long.
    """
    found, bad = _decode(texts)
    target = decimal_type(kind.precision, kind.scale)
    width, factor, limit = target.byte_width, 10**kind.zeros, 10**kind.precision
    parts, valid = [], []
    nothing = bytes(width)
    for position, raw in enumerate(found):
        value = None if raw is None else _to_words(raw, width, factor, limit)
        if raw is not None and value is None:
            bad.append(position)
        parts.append(value or nothing)
        valid.append(value is not None)
    validity = pa.array(valid, pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(target, len(found), [validity, pa.py_buffer(b"".join(parts))]), bad


def _to_decimal_texts(array: pa.StructArray) -> tuple[pa.StringArray, list[int]]:
    """Return decimals with scales of their own as text, and the positions of those that are none, which become null."""
    scales, present = array.field("scale").to_pylist(), array.is_valid().to_pylist()
    digits, _ = _decode(array.field("value"))
    texts: list[str | None] = [None] * len(array)
    bad: list[int] = []
    for position, raw in enumerate(digits):
        scale = scales[position]
        if raw and scale is not None and len(raw) <= LONGEST_DECIMAL:
            texts[position] = to_decimal_text(raw, scale) if present[position] else None
        elif present[position]:
            bad.append(position)
    return pa.array(texts, pa.string()), bad


def _decode(texts: pa.StringArray) -> tuple[list[bytes | None], list[int]]:
    found: list[bytes | None] = []
    bad: list[int] = []
    decode = binascii.a2b_base64
    for position, text in enumerate(texts.to_pylist()):
        try:
            found.append(None if text is None else decode(text, strict_mode=True))
        except ValueError:
            found.append(None)
            bad.append(position)
    return found, bad


def _to_words(raw: bytes, width: int, factor: int, limit: int) -> bytes | None:
    """Two's complement from big endian of any length to little endian of `width` bytes; None beyond the limit."""
    if not raw or len(raw) > LONGEST_DECIMAL:
        return None
    unscaled = int.from_bytes(raw, "big", signed=True) * factor
    if not -limit < unscaled < limit:
        return None
    return unscaled.to_bytes(width, "little", signed=True)


@dataclass(frozen=True)
class Mode:
    """How to read. unexpected: what to do at fields that the struct does not have. numbers: so decimals are written."""

    unexpected: Literal["error", "ignore"] = "error"
    numbers: bool = False


Rows: TypeAlias = pa.Int64Array | None
"""Which value each element of an array came from; None: the element at n came from value n."""

_NEGATIVE_ZERO_BITS = pa.scalar(-(2**63), pa.int64())  # scalars are made once: it takes long
_MIDNIGHT, _NEXT_MIDNIGHT = pa.scalar(0, pa.int32()), pa.scalar(MILLIS_PER_DAY, pa.int32())
_ZERO = pa.scalar(0, pa.int32())
_NULL = re.compile(rb":[ \t\r\n]*null")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_ -]+")
_VARIABLE_DECIMAL = pa.struct([("scale", pa.int32()), ("value", pa.string())])
_READ_AS: dict[ScalarName, pa.DataType] = {
    **SCALARS,
    "int8": pa.int8(),
    "int16": pa.int16(),
    "float32": pa.float64(),
    "bytes": pa.string(),
    "date": pa.int32(),
    "time": pa.int32(),
    "timestamp": pa.int64(),
}


def can_read(kind: Kind) -> bool:
    """Whether values of this kind may be read fast at all."""
    slow = any(isinstance(below, MapKind | UnionKind | TextKind) and below != OTHERS for below in kinds(kind))
    slow = slow or any(isinstance(below, ListKind) and below.item.kind == ScalarKind("null") for below in kinds(kind))
    return isinstance(kind, StructKind) and bool(kind.fields) and not slow


@dataclass(frozen=True)
class Read:
    """rows: for the values at these places, in order. ambiguous: which rows may hold anything."""

    places: np.ndarray
    rows: pa.StructArray
    ambiguous: list[int]


class FastReader:
    """Reads values of one struct, for which `can_read` holds."""

    def __init__(self, kind: StructKind) -> None:
        self._kind = kind
        self._type = to_arrow(kind)
        self._faults: tuple[str, ...] = ()
        self.has_decimals = any(isinstance(below, DecimalKind) for below in kinds(kind))
        self.has_others = any(below == OTHERS for below in kinds(kind))
        self._schemas = {numbers: pa.schema(_read_as(kind, numbers)) for numbers in (False, True)}

    def read(self, values: pa.BinaryArray, mode: Mode) -> Read | None:
        """A row per value; None when any value does not fit."""
        batch = json_fast.read(values, self._schemas[mode.numbers], mode.unexpected)
        return None if batch is None else self._converted(np.arange(len(values)), values, batch, mode)

    def read_most(self, values: pa.BinaryArray, mode: Mode, most: int) -> Read | None:
        """As `read`, of all values but those that keep the others from being read; None where these are not found.

        most: how many JSON objects may be left out.
        """
        found = fallback.read_most(values, self._schemas[mode.numbers], mode.unexpected, most, self._faults)
        if found is None:
            return None
        self._faults = found.faults
        return self._converted(found.places, found.values, found.batch, mode)

    def _converted(self, places: np.ndarray, values: pa.BinaryArray, batch: pa.RecordBatch, mode: Mode) -> Read:
        visit = _Visit(values, mode.numbers)
        if mode.unexpected == "ignore":
            visit.note(json_fast.may_be_odd(values), None)
        columns = visit.fill_fields(batch.columns, self._kind.fields, len(places), None, None)
        rows = pa.StructArray.from_arrays(columns, names=[field.name for field in self._kind.fields])
        return Read(places, reinterpreted(rows, self._type), sorted(visit.ambiguous))


def _read_as(kind: Kind, numbers: bool) -> pa.DataType:
    if isinstance(kind, ScalarKind):
        return _READ_AS[kind.name]
    if isinstance(kind, DecimalKind):
        return to_arrow(kind) if numbers else pa.string()
    if isinstance(kind, VariableDecimalKind):
        return _VARIABLE_DECIMAL
    if isinstance(kind, ListKind):
        return pa.list_(_read_as(kind.item.kind, numbers))
    assert isinstance(kind, StructKind)
    return pa.struct(
        [(field.name, _read_as(field.slot.kind, numbers)) for field in kind.fields if field.slot.kind != OTHERS]
    )


class _Visit:
    """One walk over the columns that were read. ambiguous: positions of values, as they are found."""

    def __init__(self, values: pa.BinaryArray, numbers: bool) -> None:
        self._values = values
        self._numbers = numbers
        self.ambiguous: set[int] = set()

    def note(self, mask: pa.BooleanArray, rows: Rows) -> None:
        """Values in which an element of the mask is true are ambiguous."""
        if pc.any(mask).as_py():
            self.ambiguous.update(_rows_of(mask, rows).to_pylist())

    def fill_fields(
        self,
        arrays: Iterable[pa.Array],
        fields: Iterable[Field],
        count: int,
        rows: Rows,
        inside: pa.BooleanArray | None,
    ) -> list[pa.Array]:
        """Return the columns of a struct's fields. arrays: of those that were read; inside: see `fill`."""
        waiting = iter(arrays)
        return [
            pa.nulls(count, pa.string())
            if field.slot.kind == OTHERS
            else self.fill(next(waiting), field.slot, field.name, rows, inside)
            for field in fields
        ]

    def fill(self, array: pa.Array, slot: Slot, name: str, rows: Rows, inside: pa.BooleanArray | None) -> pa.Array:
        """What is in a slot, converted, nulls decided. inside: where the object around it is not null."""
        if self._numbers and isinstance(slot.kind, DecimalKind):
            self._note_texts(array.is_valid(), rows, _odd_decimal(name, slot.kind))
        converted = self._convert(array, slot.kind, rows)
        if array.null_count and not (slot.optional and slot.default is None):
            missing = array.is_null() if inside is None else pc.and_(array.is_null(), inside)
            if slot.default is not None:
                converted = pc.if_else(missing, pa.array([slot.default], converted.type)[0], converted)
            elif pc.any(missing).as_py():
                self._note_missing(missing, rows, name, slot.may_be_absent)
        return converted if slot.nullable or not converted.null_count else _solid(converted)

    def _note_missing(self, missing: pa.BooleanArray, rows: Rows, name: str, may_be_absent: bool) -> None:
        """Values are ambiguous that lack a field which must be there, or may have null in one that must not be null."""
        if not may_be_absent:
            self.note(missing, rows)
        elif where := self._nulls.get(name.encode(), []) + self._nulls.get(None, []):
            found = _rows_of(missing, rows)
            self.ambiguous.update(found.filter(pc.is_in(found, pa.array(where, pa.int64()))).to_pylist())

    @cached_property
    def _nulls(self) -> Mapping[bytes | None, list[int]]:
        """By name, the values in which a field of this name may have null; None: a name that is written with escapes.

        A thousand fields may be absent: texts are looked at once for all of them.
        """
        found: dict[bytes | None, list[int]] = defaultdict(list)
        places = pc.indices_nonzero(pc.match_substring(self._values, "null"))
        for place, text in zip(places.to_pylist(), self._values.take(places).to_pylist(), strict=True):
            for null in _NULL.finditer(text):
                end = text.rfind(b'"', 0, null.start())
                start = text.rfind(b'"', 0, end)
                is_escaped = b"\\" in text[max(start - 1, 0) : end]
                found[None if is_escaped else text[start + 1 : end]].append(place)
        return found

    def _note_texts(self, mask: pa.BooleanArray, rows: Rows, pattern: str) -> None:
        """Values in which an element of the mask is true are ambiguous, as far as their text matches."""
        positions = _rows_of(mask, rows)
        matches = pc.match_substring_regex(self._values.take(positions), pattern)
        self.ambiguous.update(positions.filter(matches).to_pylist())

    def _convert(self, array: pa.Array, kind: Kind, rows: Rows) -> pa.Array:
        if isinstance(kind, ScalarKind):
            return self._convert_scalar(array, kind, rows)
        if isinstance(kind, DecimalKind):
            return array if self._numbers else self._note_bad(*from_base64_decimals(array, kind), rows)
        if isinstance(kind, VariableDecimalKind):
            return self._note_bad(*_to_decimal_texts(array), rows)
        if isinstance(kind, ListKind):
            return self._convert_list(array, kind, rows)
        assert isinstance(kind, StructKind)
        return self._convert_struct(array, kind.fields, rows)

    def _convert_scalar(self, array: pa.Array, kind: ScalarKind, rows: Rows) -> pa.Array:
        name = kind.name
        if name in ("float32", "float64"):
            return self._convert_fractions(array, name, rows)
        if name == "bytes":
            return self._note_bad(*from_base64(array), rows)
        if name == "time":
            self.note(pc.or_(pc.less(array, _MIDNIGHT), pc.greater_equal(array, _NEXT_MIDNIGHT)), rows)
        target = to_arrow(kind)
        return array if array.type == target else array.cast(target)

    def _convert_fractions(self, array: pa.Array, name: str, rows: Rows) -> pa.Array:
        """A zero with a sign may have been the integer `-0`, which has none."""
        negative_zero = pc.equal(array.view(pa.int64()), _NEGATIVE_ZERO_BITS)
        if pc.any(negative_zero).as_py():
            self._note_texts(negative_zero, rows, json_fast.SIGNED_INTEGER_ZERO)
        sized = array.cast(pa.float32()) if name == "float32" else array
        finite = pc.is_finite(sized)
        if pc.all(finite).as_py() is False:
            self.note(pc.invert(finite), rows)
        return sized

    def _note_bad(self, array: pa.Array, bad: list[int], rows: Rows) -> pa.Array:
        self.ambiguous.update(bad if rows is None else rows.take(pa.array(bad, pa.int64())).to_pylist())
        return array

    def _convert_list(self, array: pa.ListArray, kind: ListKind, rows: Rows) -> pa.ListArray:
        owners = pc.list_parent_indices(array).cast(pa.int64())
        items = self.fill(array.flatten(), kind.item, "", owners if rows is None else rows.take(owners), None)
        lengths = pc.fill_null(pc.list_value_length(array), _ZERO)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
        return pa.ListArray.from_arrays(offsets, items, mask=array.is_null() if array.null_count else None)

    def _convert_struct(self, array: pa.StructArray, fields: Iterable[Field], rows: Rows) -> pa.StructArray:
        inside = array.is_valid() if array.null_count else None
        fields = tuple(fields)
        if not fields:
            return array
        children = self.fill_fields(array.flatten(), fields, len(array), rows, inside)
        names = [field.name for field in fields]
        return pa.StructArray.from_arrays(children, names=names, mask=None if inside is None else pc.invert(inside))


def _odd_decimal(name: str, kind: DecimalKind) -> str:
    """A pattern for what Arrow's reader makes of a field what it is not: decimals as text, or with an exponent.

    So it does with more digits before the point than the type has room for: it counts the digits that are written, and
    then multiplies by the scale, past the precision and past 128 bits.
    """
    start = f'"{name}"[ \t\r\n]*:[ \t\r\n]*' if _PLAIN_NAME.fullmatch(name) else ""
    return rf'{start}("|-?[1-9][0-9]{{{kind.precision - kind.scale},}})|\\|[0-9][eE]'


def _rows_of(mask: pa.BooleanArray, rows: Rows) -> pa.Int64Array:
    found = pc.indices_nonzero(mask).cast(pa.int64())
    return found if rows is None else pc.unique(rows.take(found))


def _solid(array: pa.Array) -> pa.Array:
    """The array with some value in place of null.

    Nulls that are left in a column that has none are in ambiguous rows, or below an object that is null; Parquet's
    writer refuses them there, too.
    """
    if not pa.types.is_nested(array.type):
        return pc.fill_null(array, _something(array.type))
    if pa.types.is_list(array.type):
        children, buffers = [array.values], [None, array.buffers()[1]]
    else:
        children, buffers = [array.field(index) for index in range(array.type.num_fields)], [None]
    return pa.Array.from_buffers(array.type, len(array), buffers, 0, array.offset, children)


@cache
def _something(arrow: pa.DataType) -> pa.Scalar:
    """A value of a type that is not nested."""
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return pa.scalar("", arrow)
    if pa.types.is_boolean(arrow):
        return pa.scalar(False, arrow)
    return pa.scalar(Decimal(0) if pa.types.is_decimal(arrow) else 0, arrow)
