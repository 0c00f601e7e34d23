"""Fields of the same names and types that some records get beside their own: what KeyToValue and HeaderToValue add."""

import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, isnan
from typing import Final, Literal, TypeAlias, cast

import numpy as np
import pyarrow as pa

from parquet_sink.addons.transforms.fields.errors import kind, tree_kind
from parquet_sink.convert import calendars
from parquet_sink.convert.calendars import DAY_MS
from parquet_sink.convert.decoded import InferredColumns, Piece, SchemaColumns, Tree, Untyped
from parquet_sink.convert.invalid import InvalidValue, show
from parquet_sink.convert.json.exact import text_of
from parquet_sink.transform.fields.plain import columns_of, records, to_plain
from parquet_sink.transform.headers import ABSENT, HeaderValue
from parquet_sink.transform.records import as_trees, rows_of

Existing: TypeAlias = Literal["fail", "keep", "replace"]
Column: TypeAlias = pa.Array | list[object]
"""Values of one type, or values without a schema that are objects and lists."""
_SMALL: Final = (pa.int8(), pa.int16())
_READ_AS: Final = (pa.string(), pa.bool_(), pa.int64(), pa.null())
"""Of what types the columns of an `InferredColumns` piece may be, beside those that are to be looked at."""
_FEW: Final = 16
"""Fewer values are not looked through for equal ones."""

_ONE_TYPE: Final = (
    *(pa.NullScalar, pa.BooleanScalar, pa.StringScalar, pa.BinaryScalar, pa.Date32Scalar),
    *(pa.Int8Scalar, pa.Int16Scalar, pa.Int32Scalar, pa.Int64Scalar, pa.FloatScalar, pa.DoubleScalar),
)
"""Scalars of one type each: to look at the class takes a tenth of the time."""


# Dates and times are text (ISO 8601, UTC), decimals text with all digits, bytes base64; a float32 has as few digits as
# tell it from its neighbours; a number that is none is `NaN`, `Infinity` or `-Infinity` as text; a map with text for
# keys is an object, any other a list of [key, value].
def untyped(array: pa.Array) -> list[object]:
    """One for each entry; null is None."""
    arrow = array.type
    if pa.types.is_string(arrow) or pa.types.is_boolean(arrow) or pa.types.is_integer(arrow) or pa.types.is_null(arrow):
        return cast("list[object]", array.to_pylist())
    return [_tree(arrow, value) for value in to_plain(array)]


def _tree(arrow: pa.DataType, value: object) -> object:
    if value is None:
        return None
    if pa.types.is_struct(arrow):
        fields = (arrow.field(index) for index in range(arrow.num_fields))
        held = cast("dict[str, object]", value)
        return {field.name: _tree(field.type, held[field.name]) for field in fields}
    if pa.types.is_list(arrow):
        return [_tree(arrow.value_type, one) for one in cast("list[object]", value)]
    if pa.types.is_map(arrow):
        entries = cast("list[tuple[object, object]]", value)
        pairs = [(_tree(arrow.key_type, key), _tree(arrow.item_type, item)) for key, item in entries]
        return dict(pairs) if pa.types.is_string(arrow.key_type) else [list(pair) for pair in pairs]
    return _leaf(arrow, value)


def _leaf(arrow: pa.DataType, value: object) -> object:
    if isinstance(value, float):
        return _number(float(str(np.float32(value))) if pa.types.is_float32(arrow) else value)
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode()
    if pa.types.is_decimal(arrow):
        return f"{value:f}"
    if isinstance(value, int) and pa.types.is_date(arrow):
        return calendars.text("date", value * DAY_MS)
    if isinstance(value, int) and pa.types.is_temporal(arrow):
        return calendars.text("time" if pa.types.is_time(arrow) else "timestamp", value)
    return value


def _number(value: float) -> object:
    if isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


@dataclass(frozen=True)
class Group:
    """Rows of a piece that get the same fields. columns: one entry for each of the rows."""

    rows: np.ndarray
    columns: Mapping[str, Column]


class Additions:
    """Adds groups of fields to pieces of one batch. rejected: by position, records that cannot take theirs."""

    def __init__(self, transform: str, existing: Existing) -> None:
        self._transform, self._existing = transform, existing
        self.rejected: dict[int, str] = {}

    def to(self, piece: Piece, groups: Sequence[Group]) -> Iterator[Piece]:
        """The records of a piece with their fields. groups: each row is in one of them."""
        for group in groups:
            if not len(group.rows):
                continue
            found = self._added(rows_of(piece, group.rows), group.columns)
            if found is not None and len(found.positions):
                yield found

    def _added(self, part: Piece, columns: Mapping[str, Column]) -> Piece | None:
        if isinstance(part, SchemaColumns):
            return self._typed(part, columns)
        if isinstance(part, InferredColumns):
            quick = _inferred(part, columns)
            if quick is not None:
                return quick
            part = as_trees(part)
        return self._trees(part, columns)

    def _typed(self, part: SchemaColumns, columns: Mapping[str, Column]) -> SchemaColumns | None:
        arrow = part.rows.type
        if not pa.types.is_struct(arrow):
            self._reject(part.positions, f"{self._transform} adds fields to a struct, and the value is {kind(arrow)}")
            return None
        fields = {field.name: field for field in arrow}
        arrays = columns_of(part.rows)
        bad: dict[int, str] = {}
        for name, column in columns.items():
            if name in fields and self._existing == "fail":
                self._reject(part.positions, self._clash(name))
                return None
            if name not in fields or self._existing == "replace":
                arrays[name] = _texts(column, bad) if isinstance(column, list) else _typed_column(column)
                fields[name] = pa.field(name, arrays[name].type)
        found = SchemaColumns(part.positions, records(list(fields.values()), list(arrays.values()), len(part.rows)))
        return found if not bad else self._without(found, bad)

    def _without(self, part: SchemaColumns, bad: Mapping[int, str]) -> SchemaColumns:
        """The piece without rows that are rejected. bad: by row, why."""
        self.rejected |= {part.positions[row].as_py(): f"{self._transform}: {why}" for row, why in bad.items()}
        left = pa.array(np.delete(np.arange(len(part.positions)), sorted(bad)))
        return SchemaColumns(part.positions.take(left), part.rows.take(left))

    def _trees(self, part: Untyped, columns: Mapping[str, Column]) -> Untyped:
        values = {name: one if isinstance(one, list) else untyped(one) for name, one in columns.items()}
        positions, trees = [], []
        for row, (position, tree) in enumerate(zip(part.positions.to_pylist(), part.trees, strict=True)):
            reason = self._why_not(tree, columns)
            if reason is not None:
                self.rejected[position] = reason
                continue
            own = cast("Tree", tree)
            more = {name: one[row] for name, one in values.items()}
            positions.append(position)
            trees.append({**own, **(more if self._existing == "replace" else _new(more, own))})
        return Untyped(pa.array(positions, pa.int64()), trees)

    def _why_not(self, tree: object, columns: Mapping[str, Column]) -> str | None:
        if not isinstance(tree, dict):
            return f"{self._transform} adds fields to an object, and the value is {tree_kind(tree)}"
        clash = next((name for name in columns if name in tree), None) if self._existing == "fail" else None
        return None if clash is None else self._clash(clash)

    def _clash(self, name: str) -> str:
        return (
            f"{self._transform} would add field {show((name,))}, which the value has already; give it another "
            "name or a prefix, or say in existing which one counts"
        )

    def _reject(self, positions: pa.Int64Array, reason: str) -> None:
        self.rejected |= dict.fromkeys(positions.to_pylist(), reason)


def _new(more: Tree, own: Tree) -> Tree:
    return {name: value for name, value in more.items() if name not in own}


def _texts(column: list[object], bad: dict[int, str]) -> pa.StringArray:
    """Objects and lists without a schema as records with one have them: JSON text. bad: gets rows that have none."""
    texts: list[str | None] = []
    for row, tree in enumerate(column):
        try:
            texts.append(text_of(tree))
        except InvalidValue as error:
            texts.append(None)
            bad[row] = str(error)
    return pa.array(texts, pa.string())


def _typed_column(column: pa.Array) -> pa.Array:
    return column.cast(pa.int32()) if column.type in _SMALL else column


def _inferred(part: InferredColumns, columns: Mapping[str, Column]) -> InferredColumns | None:
    """As columns; None where a record may have such a field already, or a value looks otherwise without a schema."""
    read = {name: _read_as(column) for name, column in columns.items()}
    own = {field.name for field in part.rows.type}
    if any(array is None or name in own or name in part.lists for name, array in read.items()):
        return None
    arrays = {**columns_of(part.rows), **cast("Mapping[str, pa.Array]", read)}
    fields = [pa.field(name, array.type) for name, array in arrays.items()]
    rows = records(fields, list(arrays.values()), len(part.rows))

    def tree(row: int) -> Tree:
        return {**part.tree(row), **{name: arrays[name][row].as_py() for name in columns}}

    return replace(part, rows=rows, tree=tree)


def _read_as(column: Column) -> pa.Array | None:
    if isinstance(column, list):
        return None
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    return column if column.type in _READ_AS else None


class Pool:
    """Values, and which types they have."""

    def __init__(self, values: Sequence[HeaderValue]) -> None:
        self._values = values
        self._types: list[pa.DataType | None] = [pa.null()]
        self._known: dict[object, int] = {pa.null(): 0, pa.NullScalar: 0}

    def groups_by_row(self, fields: Iterable[Mapping[str, int]]) -> Iterator[Group]:
        """Rows by the fields that they get, and the types of these.

        fields: of each row, by the field's name, where its value is; the names may be any.
        """
        found: dict[tuple[tuple[str, int], ...], tuple[list[int], list[list[int]]]] = {}
        for row, places in enumerate(fields):
            signature = tuple((name, self._kind(at)) for name, at in places.items())
            rows, values = found.setdefault(signature, ([], []))
            rows.append(row)
            values.append(list(places.values()))
        for signature, (rows, values) in found.items():
            places_of = np.array(values, np.int64).reshape(len(rows), len(signature)).T
            named = zip(signature, places_of, strict=True)
            yield Group(np.array(rows, np.int64), {name: self._column(kind, places) for (name, kind), places in named})

    def groups(self, places: Mapping[str, np.ndarray]) -> Iterator[Group]:
        """Rows by the types of their fields, which have the same names.

        places: for each name, of which there is one at least, where each row's value is; ABSENT for none: null.
        """
        kinds = [self._kinds_of(one) for one in places.values()]
        which = np.zeros(len(kinds[0]), np.int64)
        for column in kinds:
            _, which = np.unique(which * len(self._types) + column, return_inverse=True)
        distinct, first = np.unique(which, return_index=True)
        for number, row in zip(distinct.tolist(), first.tolist(), strict=True):
            mine = np.flatnonzero(which == number)
            named = zip(places.items(), kinds, strict=True)
            yield Group(mine, {name: self._column(int(kind[row]), one[mine]) for (name, one), kind in named})

    def _kinds_of(self, places: np.ndarray) -> np.ndarray:
        distinct, which = np.unique(places, return_inverse=True)
        kinds = np.array([0 if at == ABSENT else self._kind(at) for at in distinct.tolist()], np.int64)
        return kinds[which]

    def _kind(self, at: int) -> int:
        value = self._values[at]
        shape = type(value)
        known: object = shape
        if shape not in _ONE_TYPE:
            known = value.type if isinstance(value, pa.Scalar) else None
        if known not in self._known:
            self._known[known] = len(self._types)
            self._types.append(value.type if isinstance(value, pa.Scalar) else None)
        return self._known[known]

    def _column(self, kind: int, places: np.ndarray) -> Column:
        arrow = self._types[kind]
        if arrow is None:
            return [self._values[at] for at in places.tolist()]
        if pa.types.is_null(arrow):
            return pa.nulls(len(places))
        if len(places) < _FEW:
            return pa.array([self._values[at] for at in places.tolist()], arrow)
        distinct, which = np.unique(places, return_inverse=True)
        return pa.array([self._values[at] for at in distinct.tolist()], arrow).take(pa.array(which))
