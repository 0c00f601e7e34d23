"""Kafka Connect's MaskField: fields without what they held."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.config.values import Values
from parquet_sink.convert.arrays import anywhere, either
from parquet_sink.convert.decoded import Float32, Inferred, Int32
from parquet_sink.transform.fields.base import Columns, FieldTransform, TypedChange
from parquet_sink.transform.fields.faults import field, kind, no_object, no_struct, tree_kind
from parquet_sink.transform.fields.java import numbers
from parquet_sink.transform.fields.keys import REPLACE_NULL
from parquet_sink.transform.fields.origin import Origin as RecordOrigin
from parquet_sink.transform.fields.origin import Origins
from parquet_sink.transform.fields.plain import from_plain
from parquet_sink.transform.fields.structs import columns_of, fields_of, read_as, records
from parquet_sink.transform.fields.timestamp_converter import TYPES, in_tree
from parquet_sink.transform.keys import TRANSFORM
from parquet_sink.transform.protocol import RecordFault, Side

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
_Mask: TypeAlias = Callable[[], object]
"""What takes a value's place. Raises RecordFault."""


def _some_fields(value: Value) -> str | None:
    return None if value else "It names no field; name the fields to mask."


def _some_text(value: Value) -> str | None:
    return None if value else "It is empty; write what takes the place of values, or remove the key."


class MaskField(FieldTransform):
    """Replaces what fields hold: by 0, false, an empty text, list or map, or by a text or number of one's own."""

    keys = (
        Key(
            "fields",
            TRANSFORM,
            Type.LIST,
            "The fields to mask.",
            required=True,
            missing="name the fields to mask.",
            check=Check("at least one field", _some_fields),
            origin=Origin.CONNECT,
        ),
        Key(
            "replacement",
            TRANSFORM,
            Type.STRING,
            "What takes the place of texts and numbers, converted to the field's type; other types are refused then.",
            default_text="0, false, an empty text, list or map",
            may_be_empty=True,
            check=Check("not empty", _some_text),
            origin=Origin.CONNECT,
        ),
        REPLACE_NULL,
    )

    def __init__(self, values: Values, side: Side) -> None:
        """As `transform.protocol.TransformClass` says."""
        super().__init__(side)
        self._fields, self._replacement = values.names("fields"), values.text("replacement")

    def tree(self, tree: object, origin: RecordOrigin) -> object:
        """As `FieldTransform` says; a field that is not there becomes null, and a tombstone is refused."""
        if not isinstance(tree, dict):
            raise no_object(_NAME, tree)
        changed = dict(tree)
        for name in self._fields:
            changed[name] = self._masked(name, tree.get(name))
        return changed

    def typed(self, arrow: pa.DataType) -> TypedChange:
        """As `FieldTransform` says."""
        if not pa.types.is_struct(arrow):
            raise no_struct(_NAME, arrow)
        return _Typed(arrow, self._fields, self._replacement)

    def inferred(self, piece: Inferred, origins: Origins) -> Columns | None:
        """As `FieldTransform` says."""
        if not piece.lists.isdisjoint(self._fields):
            return None
        arrays = columns_of(piece.rows)
        doubtful = None
        for name in self._fields:
            array = arrays[name] if name in arrays else pa.nulls(len(piece.rows))
            arrays[name], doubt = self._read(name, array)
            doubtful = either(doubtful, doubt)
        return Columns(read_as(arrays, len(piece.rows)), doubtful, piece.lists)

    def _masked(self, name: str, value: object) -> object:
        if value is None:
            return None
        if isinstance(value, list | dict) and self._replacement is None:
            return type(value)()
        if self._replacement is None:
            return _EMPTY[type(value)]
        if isinstance(value, Int32):
            whole = _replaced(name, int, tree_kind(value), self._replacement)
            assert isinstance(whole, int)
            return Int32(numbers.wrapped(whole, 32))
        if isinstance(value, Float32):
            part = _replaced(name, float, tree_kind(value), self._replacement)
            assert isinstance(part, float)
            return Float32(numbers.to_float32(part))
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


class _Typed(TypedChange):
    def __init__(self, arrow: pa.DataType, names: tuple[str, ...], replacement: str | None) -> None:
        super().__init__(arrow)
        self._masks = {one.name: _mask(one, replacement) for one in fields_of(arrow) if one.name in names}

    def value(self, value: object, origin: RecordOrigin) -> object:
        assert isinstance(value, dict)
        return {
            name: self._masks[name]() if name in self._masks and below is not None else below
            for name, below in value.items()
        }

    def columns(self, rows: pa.Array, origins: Origins) -> Columns:
        arrays = columns_of(rows)
        doubtful = None
        for name, mask in self._masks.items():
            try:
                arrays[name] = _where_valid(arrays[name], mask())
            except RecordFault:
                doubtful = either(doubtful, anywhere(arrays[name].is_valid()))
        return Columns(records(fields_of(self.arrow), list(arrays.values()), len(rows)), doubtful)


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


def _mask(one: pa.Field, replacement: str | None) -> _Mask:
    """What masks a field of a schema, worked out once."""
    try:
        masked = _empty(one) if replacement is None else _typed_replacement(one, replacement)
    except RecordFault as error:
        reason = str(error)
        return lambda: _refuse(reason)
    return lambda: masked


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
    sample = next((python for matches, python in _REPLACEABLE if matches(arrow)), object)
    found = _replaced(one.name, sample, kind(arrow), replacement)
    if pa.types.is_int32(arrow):
        assert isinstance(found, int)
        return numbers.wrapped(found, 32)
    if pa.types.is_float32(arrow):
        assert isinstance(found, float)
        return numbers.to_float32(found)
    return found


_REPLACEABLE: Final[tuple[tuple[Callable[[pa.DataType], bool], type], ...]] = (
    (pa.types.is_integer, int),
    (pa.types.is_floating, float),
    (pa.types.is_string, str),
)


def _replaced(name: str, python: type, what: str, replacement: str) -> object:
    """The replacement as a whole number, fraction or text. Raises RecordFault for other types, and for no number."""
    if python is str:
        return replacement
    if python not in (int, float):
        raise RecordFault(f"{_NAME}: {field(name)} is {what}, which `replacement` cannot mask")
    number = _number(name, replacement)
    return numbers.decimal_as_int64(number) if python is int else float(number)


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
