"""Kafka Connect's Cast: fields, or the whole value, of another type."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.transforms.fields import casting
from parquet_sink.addons.transforms.fields.casting import TARGETS, of_tree, of_typed
from parquet_sink.addons.transforms.fields.errors import field, object_of, struct_of
from parquet_sink.config.key import Check, Type, Value
from parquet_sink.config.report import did_you_mean, quoted
from parquet_sink.config.values import Values
from parquet_sink.convert.arrays import anywhere
from parquet_sink.convert.decoded import InferredColumns
from parquet_sink.transform.fields.base import (
    Columns,
    FieldChange,
    FieldChanges,
    FieldTransform,
    Found,
    TypedChange,
    WholeChange,
    changed_read,
)
from parquet_sink.transform.keys import REPLACE_NULL, connect_key
from parquet_sink.transform.protocol import RecordFault, Side
from parquet_sink.transform.records import Origin, Origins

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
        connect_key(
            "spec",
            Type.LIST,
            f"`field:type` for each field, separated by commas, or one type for the whole value: {', '.join(TARGETS)}.",
            missing="write field:type, or a type alone for the whole value.",
            check=Check("field:type, or a type", _spec),
        ),
        REPLACE_NULL,
    )

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(side)
        pairs = [pair.rpartition(":") for pair in values.names("spec")]
        self._whole = next((target.strip().lower() for _, colon, target in pairs if not colon), None)
        self._targets = {name.strip(): target.strip().lower() for name, colon, target in pairs if colon}

    def tree(self, tree: object, origin: Origin) -> object:
        """As `FieldTransform` says; a field that is not there becomes null."""
        if tree is None:
            return None
        if self._whole is not None:
            return _cast_tree("", tree, self._whole)
        own = object_of(_NAME, tree)
        return {**own, **{name: _cast_tree(name, own.get(name), to) for name, to in self._targets.items()}}

    def typed(self, arrow: pa.DataType) -> TypedChange:
        if self._whole is not None:
            return WholeChange(_change("", arrow, self._whole))
        targets, old = self._targets, struct_of(_NAME, arrow)
        changes = {one.name: _change(one.name, one.type, targets[one.name]) for one in old if one.name in targets}
        return FieldChanges(arrow, changes)

    def inferred(self, piece: InferredColumns, origins: Origins) -> Columns | None:
        if self._whole is not None:
            return None

        def change(name: str, array: pa.Array) -> Found:
            found, doubt = casting.cast_read(array, self._targets[name])
            if doubt is None or not casting.is_of_json(array.type):
                return found, doubt
            return _read_again(piece, name, self._targets[name], found, doubt)

        return changed_read(piece, self._targets, change)


def _cast_tree(name: str, value: object, target: str) -> object:
    try:
        return of_tree(value, target)
    except RecordFault as error:
        raise _of(name, error) from None


def _read_again(piece: InferredColumns, name: str, target: str, cast: pa.Array, doubt: pa.BooleanArray) -> Found:
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


def _change(name: str, arrow: pa.DataType, target: str) -> FieldChange:
    """A field of a type cast, or the whole value where it has no name."""
    cast = of_typed(arrow, target)

    def exact(value: object) -> object:
        try:
            return cast(value)
        except RecordFault as error:
            raise _of(name, error) from None

    return FieldChange(TARGETS[target], exact, lambda array: casting.cast(array, target))


def _of(name: str, error: RecordFault) -> RecordFault:
    """What is wrong with a field, or with the whole value when it has no name."""
    return RecordFault(f"{_NAME}: {field(name) if name else 'the whole value'}: {error}")
