"""Kafka Connect's MaskField: fields without what they held."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.transforms.fields.errors import field, kind, object_of, struct_of, tree_kind
from parquet_sink.addons.transforms.fields.java import numbers
from parquet_sink.addons.transforms.fields.timestamp_converter import TYPES, in_tree
from parquet_sink.config.key import Check, Type
from parquet_sink.config.values import Values
from parquet_sink.convert.arrays import anywhere
from parquet_sink.convert.decoded import Float32, InferredColumns, Int32
from parquet_sink.transform.fields.base import (
    Columns,
    FieldChange,
    FieldChanges,
    FieldTransform,
    TypedChange,
    changed_read,
)
from parquet_sink.transform.fields.plain import from_plain
from parquet_sink.transform.keys import REPLACE_NULL, connect_key
from parquet_sink.transform.protocol import RecordFault, Side
from parquet_sink.transform.records import Origin, Origins

_NAME: Final = "MaskField"

_EMPTY: Final[Mapping[type, object]] = {
    bool: False,
    int: 0,
    float: 0.0,
    Int32: Int32(0),
    Float32: Float32(0.0),
    str: "",
    **{type(epoch): epoch for epoch in (in_tree(0, kind) for kind in TYPES)},
}


class MaskField(FieldTransform):
    """Replaces what fields hold: by 0, false, an empty text, list or map, or by a text or number of one's own."""

    keys = (
        connect_key(
            "fields",
            Type.LIST,
            "The fields to mask.",
            missing="name the fields to mask.",
            check=Check(
                "at least one field", lambda value: None if value else "It names no field; name the fields to mask."
            ),
        ),
        connect_key(
            "replacement",
            Type.STRING,
            "What takes the place of texts and numbers, converted to the field's type; other types are refused then.",
            default_text="0, false, an empty text, list or map",
            may_be_empty=True,
            check=Check(
                "not empty",
                lambda value: (
                    None if value else "It is empty; write what takes the place of values, or remove the key."
                ),
            ),
        ),
        REPLACE_NULL,
    )

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(side)
        self._fields, self._replacement = values.names("fields"), values.text("replacement")

    def tree(self, tree: object, origin: Origin) -> object:
        """As `FieldTransform` says; a field that is not there becomes null, and a tombstone is refused."""
        own = object_of(_NAME, tree)
        return {**own, **{name: self._masked(name, own.get(name)) for name in self._fields}}

    def typed(self, arrow: pa.DataType) -> TypedChange:
        old = struct_of(_NAME, arrow)
        changes = {one.name: _change(one, self._replacement) for one in old if one.name in self._fields}
        return FieldChanges(arrow, changes)

    def inferred(self, piece: InferredColumns, origins: Origins) -> Columns | None:
        return changed_read(piece, self._fields, self._read)

    def _masked(self, name: str, value: object) -> object:
        if value is None:
            return None
        if isinstance(value, list | dict) and self._replacement is None:
            return type(value)()
        if self._replacement is None:
            return _EMPTY[type(value)]
        return _replaced(name, type(value), tree_kind(value), self._replacement)

    def _read(self, name: str, array: pa.Array) -> tuple[pa.Array, pa.BooleanArray | None]:
        """A column of records without a schema, and rows that must be masked one by one."""
        sample = _SAMPLES.get(array.type)
        try:
            if sample is None:
                return array, anywhere(array.is_valid())
            masked = self._masked(name, sample)
            if isinstance(sample, float) and self._masked(name, 1) != masked:
                # A whole number among fractions may have been read from either.
                return _where_valid(array, masked), anywhere(pc.equal(pc.trunc(array), array))
            return _where_valid(array, masked), None
        except RecordFault:
            return array, anywhere(array.is_valid())


_SAMPLES: Final[Mapping[pa.DataType, object]] = {
    pa.int64(): 1,
    pa.float64(): 1.5,
    pa.int32(): Int32(1),
    pa.float32(): Float32(1.5),
    pa.bool_(): True,
    pa.string(): "text",
}


def _where_valid(array: pa.Array, masked: object) -> pa.Array:
    """The masked value wherever there was one."""
    if array.null_count == len(array):
        return array
    one = from_plain([masked], array.type)
    if not array.null_count:
        return pa.repeat(one[0], len(array))
    which = pc.if_else(array.is_valid(), pa.scalar(0, pa.int32()), pa.scalar(None, pa.int32()))
    return one.take(which)


def _change(one: pa.Field, replacement: str | None) -> FieldChange:
    """What masks a field of a schema, worked out once."""
    try:
        masked = _empty(one) if replacement is None else _typed_replacement(one, replacement)
    except RecordFault as error:
        reason = str(error)
        return FieldChange(one.type, lambda _: _refuse(reason), lambda array: (array, anywhere(array.is_valid())))
    return FieldChange(one.type, lambda _: masked, lambda array: (_where_valid(array, masked), None))


def _refuse(reason: str) -> object:
    raise RecordFault(reason)


def _empty(one: pa.Field) -> object:
    arrow = one.type
    if pa.types.is_binary(arrow) or pa.types.is_struct(arrow):
        raise RecordFault(f"{_NAME}: {field(one.name)} is {kind(arrow)}, which cannot be masked")
    if pa.types.is_list(arrow) or pa.types.is_map(arrow):
        return []
    if pa.types.is_string(arrow):
        return ""
    if pa.types.is_boolean(arrow):
        return False
    return Decimal(0) if pa.types.is_decimal(arrow) else 0


def _typed_replacement(one: pa.Field, replacement: str) -> object:
    arrow = one.type
    if pa.types.is_decimal(arrow):
        return _fitted(one, replacement)
    python = next((python for matches, python in _REPLACEABLE if matches(arrow)), object)
    return _replaced(one.name, python, kind(arrow), replacement)


_REPLACEABLE: Final[tuple[tuple[Callable[[pa.DataType], bool], type], ...]] = (
    (pa.types.is_int32, Int32),
    (pa.types.is_integer, int),
    (pa.types.is_float32, Float32),
    (pa.types.is_floating, float),
    (pa.types.is_string, str),
)
_NUMBERS: Final[Mapping[type, Callable[[Decimal], object]]] = {
    int: numbers.decimal_as_int64,
    Int32: lambda number: Int32(numbers.wrapped(numbers.decimal_as_int64(number), 32)),
    float: float,
    Float32: lambda number: Float32(numbers.to_float32(float(number))),
}


def _replaced(name: str, python: type, what: str, replacement: str) -> object:
    """The replacement as a number or text of a type. Raises RecordFault for other types, and for no number."""
    if python is str:
        return replacement
    if python not in _NUMBERS:
        raise RecordFault(f"{_NAME}: {field(name)} is {what}, which `replacement` cannot mask")
    return _NUMBERS[python](_number(name, replacement))


def _number(name: str, replacement: str) -> Decimal:
    try:
        return numbers.parse_decimal(replacement)
    except numbers.NoNumber:
        raise RecordFault(f"{_NAME}: {field(name)} is a number, and `replacement` is none") from None


def _fitted(one: pa.Field, replacement: str) -> Decimal:
    number = _number(one.name, replacement)
    try:
        return Decimal(str(pa.array([number], one.type)[0].as_py()))
    except (pa.ArrowInvalid, OverflowError):
        reason = f"{_NAME}: {field(one.name)} is {one.type}, which cannot hold `replacement`"
        raise RecordFault(reason) from None
