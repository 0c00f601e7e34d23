"""What the fast path read, to payload columns, with the rows that only the exact path may judge.

Such a doubtful row is one where the reader saw less than there is: an object without values may be `{}`, a fraction may
have been an integer beyond 2**53 or not finite, a zero with a sign the integer `-0`, which has none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.json.fast import has_empty_object, has_signed_integer_zero
from parquet_sink.shape.outline import Names, Outline
from parquet_sink.shape.schema.value_types import ValueTypes, to_arrow, to_fields

# Scalars have their types told: PyArrow takes 0.1 ms each time to find out by itself.
_EXACT_LIMIT = pa.scalar(float(2**53), pa.float64())
_NEGATIVE_ZERO_BITS = pa.scalar(-(2**63), pa.int64())
_EMPTY, _NULL = pa.scalar("{}", pa.string()), pa.scalar(None, pa.string())
_TRUE, _FALSE = pa.scalar(True, pa.bool_()), pa.scalar(False, pa.bool_())
Mask: TypeAlias = pa.BooleanArray | None


@dataclass(frozen=True)
class Columns:
    """arrays: payload columns by name, a subset of those known, of equal length. doubtful: rows for the exact path."""

    arrays: dict[str, pa.Array]
    doubtful: Mask


def to_columns(
    batch: pa.RecordBatch,
    values: pa.BinaryArray,
    value_types: ValueTypes,
    outline: Outline,
    flat: bool,
    discard_collections: bool,
) -> Columns:
    """batch: read from `values` with `outline.to_schema(types)`."""
    visit = _Visit(value_types, outline, discard_collections)
    visit.hollow = _all_null(batch.columns)
    children = dict(zip(batch.schema.names, batch.columns, strict=True))
    if flat:
        for name, array in children.items():
            visit.flatten((name,), array)
    else:
        visit.arrays = visit.nest(children, value_types)
    if visit.hollow is not None and pc.any(visit.hollow).as_py():
        visit.doubt(pc.and_(visit.hollow, has_empty_object(values)))
    if visit.signed is not None:
        visit.doubt(pc.and_(visit.signed, has_signed_integer_zero(values)))
    return Columns(visit.arrays, visit.doubtful)


def either(first: Mask, second: Mask) -> Mask:
    """Where one of two masks holds; None stands for nowhere."""
    if first is None or second is None:
        return second if first is None else first
    return pc.or_(first, second)


class _Visit:
    """One walk over the columns that were read.

    hollow: rows with an object whose fields are all null. signed: rows with a zero that has a sign.
    """

    def __init__(self, value_types: ValueTypes, outline: Outline, discard_collections: bool) -> None:
        self._value_types, self._outline, self._discard = value_types, outline, discard_collections
        self.arrays: dict[str, pa.Array] = {}
        self.doubtful: Mask = None
        self.hollow: Mask = None
        self.signed: Mask = None

    def doubt(self, mask: Mask) -> None:
        self.doubtful = either(self.doubtful, mask)

    def flatten(self, path: Names, array: pa.Array) -> None:
        """Take a column that was read, or what is below it, into `arrays`."""
        if not pa.types.is_struct(array.type):
            if not pa.types.is_null(array.type):
                self._note_fractions(array)
                self.arrays[self._outline.column(path)] = array
        elif array.type.num_fields:
            children = _children(array)
            self._note_hollow(array, list(children.values()))
            for name, child in children.items():
                self.flatten((*path, name), child)
        elif not self._discard:
            self._flatten_empty(path, array)

    def _note_fractions(self, array: pa.Array) -> None:
        """Fractions that may have been integers beyond 2**53, or not finite, or the integer `-0`."""
        if pa.types.is_float64(array.type):
            self.doubt(_where(pc.invert(pc.less(pc.abs(array), _EXACT_LIMIT))))
            self.signed = either(self.signed, _where(pc.equal(array.view(pa.int64()), _NEGATIVE_ZERO_BITS)))

    def _note_hollow(self, array: pa.StructArray, children: Sequence[pa.Array]) -> None:
        if self._discard:
            return
        nothing = _all_null(children)
        if nothing is not None:
            self.hollow = either(self.hollow, pc.and_(nothing, array.is_valid()))

    def _flatten_empty(self, path: Names, array: pa.StructArray) -> None:
        """Objects that were always empty are the text `{}`, unless another path has that column."""
        name = self._outline.column(path)
        if self._outline.owns(path) and self._value_types.get(name) is str:
            self.arrays[name] = pc.if_else(array.is_valid(), _EMPTY, _NULL)
        elif array.null_count < len(array):
            self.doubt(array.is_valid())

    def nest(self, children: dict[str, pa.Array], value_types: ValueTypes) -> dict[str, pa.Array]:
        """The children that have a kind, structs rebuilt to hold exactly their kind's fields."""
        result = {}
        for name, array in children.items():
            kind = value_types.get(name)
            if pa.types.is_null(array.type):
                continue
            if not pa.types.is_struct(array.type):
                self._note_fractions(array)
                result[name] = array
            elif isinstance(kind, dict):
                result[name] = self._struct(array, kind)
            else:
                self._nest_nothing(array)
        return result

    def _struct(self, array: pa.StructArray, kind: ValueTypes) -> pa.StructArray:
        """An object without a value is null."""
        found = self.nest(_children(array), kind)
        children = [found[name] if name in found else pa.nulls(len(array), to_arrow(kind[name])) for name in kind]
        return pa.StructArray.from_arrays(children, fields=to_fields(kind), mask=_all_null(children))

    def _nest_nothing(self, array: pa.StructArray) -> None:
        """Objects that never had a value give no column; one that is `{}` may."""
        children = _children(array)
        if children:
            self._note_hollow(array, list(children.values()))
            self.nest(children, {})
        elif array.null_count < len(array):
            self.doubt(array.is_valid())


def _children(array: pa.StructArray) -> dict[str, pa.Array]:
    """The fields of a struct, null where it is."""
    names = [array.type.field(index).name for index in range(array.type.num_fields)]
    return dict(zip(names, array.flatten(), strict=True))


def _all_null(arrays: Sequence[pa.Array]) -> Mask:
    """Rows that are null in all of the arrays; None when that is certainly nowhere."""
    if any(not array.null_count for array in arrays):
        return None
    nothing: Mask = None
    for array in arrays:
        if array.null_count == len(array):
            continue
        nothing = array.is_null() if nothing is None else pc.and_(nothing, array.is_null())
    if nothing is not None:
        return nothing
    return pa.repeat(_TRUE, len(arrays[0]))


def _where(mask: pa.BooleanArray) -> Mask:
    """The mask, null being false; None where it is true nowhere."""
    return pc.fill_null(mask, _FALSE) if pc.any(mask).as_py() else None
