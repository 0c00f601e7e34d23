"""Kafka Connect's Cast: fields, or the whole value, of another type."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.config.report import did_you_mean, quoted
from parquet_sink.config.values import Values
from parquet_sink.convert.arrays import anywhere, either
from parquet_sink.convert.decoded import Inferred
from parquet_sink.transform.fields.base import Columns, FieldTransform, TypedChange
from parquet_sink.transform.fields.casting import columns
from parquet_sink.transform.fields.casting.exact import TARGETS, of_tree, of_typed
from parquet_sink.transform.fields.faults import field, no_object, no_struct
from parquet_sink.transform.fields.keys import REPLACE_NULL
from parquet_sink.transform.fields.origin import Origin as RecordOrigin
from parquet_sink.transform.fields.origin import Origins
from parquet_sink.transform.fields.structs import columns_of, fields_of, read_as, records
from parquet_sink.transform.keys import TRANSFORM
from parquet_sink.transform.protocol import RecordFault, Side

_NAME: Final = "Cast"
_OTHER_NAMES: Final = {
    "byte": "int8",
    "short": "int16",
    "int": "int32",
    "integer": "int32",
    "long": "int64",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "bool": "boolean",
    "str": "string",
    "text": "string",
}
"""What the types are called elsewhere."""


def _spec(value: Value) -> str | None:
    pairs = value if isinstance(value, tuple) else ()
    if not pairs:
        return "It names no field; write field:type, or a type alone for the whole value."
    for pair in pairs:
        parts = [part.strip() for part in pair.split(":")]
        if len(parts) > 2:
            return f"{quoted(pair)} has more than one colon; write field:type."
        if parts[-1].lower() not in TARGETS:
            return _no_type(pair, parts)
        if len(parts) == 1 and len(pairs) > 1:
            return f"{quoted(pair)} is for the whole value and cannot stand beside others; write field:type."
    return None


def _no_type(pair: str, parts: Sequence[str]) -> str:
    known = {**{name: name for name in TARGETS}, **_OTHER_NAMES}
    hint = did_you_mean(parts[-1].lower(), known, cutoff=0.6)
    if len(parts) == 1:
        return f"{quoted(pair)} has no type; write field:type, the type being one of {', '.join(TARGETS)}.{hint}"
    what = quoted(parts[-1]) if parts[-1] else f"The type in {quoted(pair)}"
    return f"{what} is not one of {', '.join(TARGETS)}; write one of them.{hint}"


class Cast(FieldTransform):
    """Casts fields to another type (`spec=amount:float64,id:string`), or the whole key or value (`spec=int32`)."""

    keys = (
        Key(
            "spec",
            TRANSFORM,
            Type.LIST,
            f"`field:type` for each field, separated by commas, or one type for the whole value: {', '.join(TARGETS)}.",
            required=True,
            missing="write field:type, or a type alone for the whole value.",
            check=Check("field:type, or a type", _spec),
            origin=Origin.CONNECT,
        ),
        REPLACE_NULL,
    )

    def __init__(self, values: Values, side: Side) -> None:
        """As `transform.protocol.TransformClass` says."""
        super().__init__(side)
        pairs = [pair.rpartition(":") for pair in values.names("spec")]
        self._whole = next((target.strip().lower() for _, colon, target in pairs if not colon), None)
        self._targets = {name.strip(): target.strip().lower() for name, colon, target in pairs if colon}

    def tree(self, tree: object, origin: RecordOrigin) -> object:
        """As `FieldTransform` says; a field that is not there becomes null."""
        if tree is None:
            return None
        if self._whole is not None:
            try:
                return of_tree(tree, self._whole)
            except RecordFault as error:
                raise _of("", error) from None
        if not isinstance(tree, dict):
            raise no_object(_NAME, tree)
        changed = dict(tree)
        for name, target in self._targets.items():
            try:
                changed[name] = of_tree(tree.get(name), target)
            except RecordFault as error:
                raise _of(name, error) from None
        return changed

    def typed(self, arrow: pa.DataType) -> TypedChange:
        """As `FieldTransform` says."""
        if self._whole is not None:
            return _Whole(arrow, self._whole)
        if not pa.types.is_struct(arrow):
            raise no_struct(_NAME, arrow)
        return _Fields(arrow, self._targets)

    def inferred(self, piece: Inferred, origins: Origins) -> Columns | None:
        """As `FieldTransform` says."""
        if self._whole is not None or not piece.lists.isdisjoint(self._targets):
            return None
        arrays = columns_of(piece.rows)
        doubtful = None
        for name, target in self._targets.items():
            array = arrays[name] if name in arrays else pa.nulls(len(piece.rows))
            arrays[name], doubt = columns.cast_read(array, target)
            if doubt is not None and columns.is_of_json(array.type):
                arrays[name], doubt = _read_again(piece, name, target, arrays[name], doubt)
            doubtful = either(doubtful, doubt)
        return Columns(read_as(arrays, len(piece.rows)), doubtful, piece.lists)


def _read_again(piece: Inferred, name: str, target: str, cast: pa.Array, doubt: pa.BooleanArray) -> columns.Found:
    """The column, with the fields that are in doubt cast as they were written; and those that cannot be."""
    made: list[object] = []
    bad = doubt.to_numpy(zero_copy_only=False).copy()
    for row in np.flatnonzero(bad).tolist():
        try:
            made.append(of_tree(piece.tree(row).get(name), target))
        except RecordFault:
            made.append(None)
        else:
            bad[row] = False
    found = pc.replace_with_mask(cast, doubt, pa.array(made, cast.type))
    return found, anywhere(pa.array(bad))


class _Fields(TypedChange):
    """Fields of a struct."""

    def __init__(self, arrow: pa.DataType, targets: Mapping[str, str]) -> None:
        old = fields_of(arrow)
        self._targets = [targets.get(one.name) for one in old]
        self._casts = {one.name: of_typed(one.type, targets[one.name]) for one in old if one.name in targets}
        new = zip(old, self._targets, strict=True)
        super().__init__(pa.struct([one.with_type(TARGETS[to]) if to else one for one, to in new]))

    def value(self, value: object, origin: RecordOrigin) -> object:
        assert isinstance(value, dict)
        changed = dict(value)
        for name, cast in self._casts.items():
            if value[name] is not None:
                try:
                    changed[name] = cast(value[name])
                except RecordFault as error:
                    raise _of(name, error) from None
        return changed

    def columns(self, rows: pa.Array, origins: Origins) -> Columns:
        arrays = []
        doubtful = None
        for array, target in zip(rows.flatten(), self._targets, strict=True):
            found, doubt = columns.cast(array, target) if target else (array, None)
            arrays.append(found)
            doubtful = either(doubtful, doubt)
        return Columns(records(fields_of(self.arrow), arrays, len(rows)), doubtful)


class _Whole(TypedChange):
    """A value as a whole."""

    def __init__(self, arrow: pa.DataType, target: str) -> None:
        super().__init__(TARGETS[target])
        self._target, self._cast = target, of_typed(arrow, target)

    def value(self, value: object, origin: RecordOrigin) -> object:
        try:
            return self._cast(value)
        except RecordFault as error:
            raise _of("", error) from None

    def columns(self, rows: pa.Array, origins: Origins) -> Columns:
        return Columns(*columns.cast(rows, self._target))


def _of(name: str, error: RecordFault) -> RecordFault:
    """What is wrong with a field, or with the whole value when it has no name."""
    return RecordFault(f"{_NAME}: {field(name) if name else 'the whole value'}: {error}")
