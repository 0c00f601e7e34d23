"""Records as columns to payload columns, flattened or nested: with a schema by their type, without one by their values.

For records without a schema the rows that `trees.flatten` and `trees.nest` give one by one are the definition. Rows
that may be another than they look here (two fields for one column, an object that is `{}` where columns are nested) are
named, to be taken one by one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import ems
from parquet_sink.convert.arrays import all_null, either
from parquet_sink.convert.invalid import InvalidValue, show
from parquet_sink.rows import json_text
from parquet_sink.rows.flatten.trees import one_column, value_types_of
from parquet_sink.rows.schema.arrow_types import conformed, fields, storable, type_name
from parquet_sink.rows.schema.topic_columns import SEPARATOR, Row, column_name

_Steps: TypeAlias = tuple[int, ...]
_Names: TypeAlias = tuple[str, ...]

InferredColumns: TypeAlias = tuple[dict[str, pa.Array], pa.BooleanArray | None]
"""Arrays by name of the column, those without a value left out; and rows to be taken one by one, or None."""

CHUNKS_KEY = ems("flattener.jsonblob.chunks")
NO_FIELD = "the record has no field that can hold a value"


@dataclass(frozen=True)
class ColumnLayout:
    """The columns of one record type, and where each comes from.

    stored: what records are brought to first. paths: for each column, the positions of the fields that lead to it.
    texts: whether it becomes JSON text.
    """

    stored: pa.DataType
    columns: tuple[pa.Field, ...]
    paths: tuple[_Steps, ...]
    texts: tuple[bool, ...]

    def arrays(self, records: pa.StructArray) -> tuple[pa.Array, ...]:
        """One array for each column. records: of the type that the layout was made for, none of them null."""
        found = self._found(conformed(records, self.stored))
        return tuple(
            json_text.texts(array) if is_text else array for array, is_text in zip(found, self.texts, strict=True)
        )

    def bound(self, records: pa.StructArray) -> int:
        """An upper bound of the bytes of all JSON texts among the columns."""
        if not any(self.texts):
            return 0
        found = zip(self._found(records), self.texts, strict=True)
        return sum(json_text.bound(array) for array, is_text in found if is_text)

    def _found(self, records: pa.StructArray) -> Iterator[pa.Array]:
        """What the paths lead to, null where a record on the way is."""
        opened: dict[_Steps, list[pa.Array]] = {(): records.flatten()}
        for path in self.paths:
            for end in range(1, len(path)):
                if path[:end] not in opened:
                    opened[path[:end]] = opened[path[: end - 1]][path[end - 1]].flatten()
            yield opened[path[:-1]][path[-1]]


def flat(arrow: pa.DataType, discard_collections: bool, reserved: frozenset[str]) -> ColumnLayout:
    """One nullable column for each leaf, lists and maps being leaves of JSON text, or none of these.

    A null record gives null to all its leaves. What can only be null gives no column. reserved: names that columns may
    not have. Raises InvalidValue for what no record of this type can be: see `_check`, and two fields for one column.
    """
    _require_record(arrow)
    origins: dict[str, _Names] = {}
    columns: list[pa.Field] = []
    paths: list[_Steps] = []
    texts: list[bool] = []
    for steps, names, leaf in _leaves(arrow, (), ()):
        if _is_collection(leaf) and discard_collections:
            continue
        column = column_name(SEPARATOR.join(names))
        if column in origins:
            raise InvalidValue(one_column(show(origins[column]), show(names), show((column,))))
        origins[column] = names
        columns.append(pa.field(column, pa.string() if _is_collection(leaf) else leaf))
        paths.append(steps)
        texts.append(_is_collection(leaf))
    _check(columns, reserved)
    return ColumnLayout(arrow, tuple(columns), tuple(paths), tuple(texts))


def nested(arrow: pa.DataType, reserved: frozenset[str]) -> ColumnLayout:
    """The fields of the record as they are, as far as Parquet can hold them (see `arrow_types.storable`).

    Raises InvalidValue as `flat` does.
    """
    _require_record(arrow)
    stored = storable(arrow)
    if stored is None:
        raise InvalidValue(NO_FIELD)
    columns = fields(stored)
    _check(columns, reserved)
    paths = tuple((index,) for index in range(len(columns)))
    return ColumnLayout(stored, columns, paths, (False,) * len(columns))


def _leaves(arrow: pa.DataType, steps: _Steps, names: _Names) -> Iterator[tuple[_Steps, _Names, pa.DataType]]:
    for index, field in enumerate(fields(arrow)):
        here, path = (*steps, index), (*names, field.name)
        if not field.name:
            where = f"the object at {show(names)}" if names else "the record"
            raise InvalidValue(f"{where} has a field with an empty name")
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, here, path)
        elif not pa.types.is_null(field.type):
            yield here, path, field.type


def _is_collection(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_list(arrow) or pa.types.is_map(arrow))


def _require_record(arrow: pa.DataType) -> None:
    if not pa.types.is_struct(arrow):
        raise InvalidValue(f"the value is not a record but {type_name(arrow)}, which only {CHUNKS_KEY} takes")


def _check(columns: Sequence[pa.Field], reserved: frozenset[str]) -> None:
    """Raise InvalidValue for no column, too many, names too long or names that are ours.

    Records without a schema are held to the same limits, by the same rule: `trees.value_types_of` validates a
    record that has some text in each of these columns.
    """
    if not columns:
        raise InvalidValue(NO_FIELD)
    value_types_of([{column.name: _sample(column.type) for column in columns}], reserved)


def _sample(arrow: pa.DataType) -> object:
    if pa.types.is_struct(arrow):
        row: Row = {field.name: _sample(field.type) for field in fields(arrow)}
        return row
    if pa.types.is_list(arrow):
        return _sample(arrow.value_type)
    return {"key": "", "value": _sample(arrow.item_type)} if pa.types.is_map(arrow) else ""


_EMPTY, _NULL = pa.scalar("{}", pa.string()), pa.scalar(None, pa.string())


def inferred_flat(given: Mapping[str, pa.Array], discard_collections: bool) -> InferredColumns:
    """One column for each leaf; an object that was always empty is the text `{}`."""
    found = _Flattening(discard_collections)
    for column, array in given.items():
        found.take((column,), array)
    return found.arrays, found.fallback


def inferred_nested(given: Mapping[str, pa.Array], discard_collections: bool) -> InferredColumns:
    """The fields as they are; an object without a value is null."""
    found = _Nesting(discard_collections)
    return found.fields(given), found.fallback


class _Flattening:
    def __init__(self, discard_collections: bool) -> None:
        self._discard = discard_collections
        self.arrays: dict[str, pa.Array] = {}
        self.fallback: pa.BooleanArray | None = None

    def take(self, path: tuple[str, ...], array: pa.Array) -> None:
        """A field, or what is below it. The first with a value has a column; rows with another are fallback rows."""
        if array.null_count == len(array):
            return
        if pa.types.is_struct(array.type):
            if array.type.num_fields:
                for below, child in _children(array).items():
                    self.take((*path, below), child)
                return
            if self._discard:
                return
            array = pc.if_else(array.is_valid(), _EMPTY, _NULL)
        column = column_name(SEPARATOR.join(path))
        if column in self.arrays:
            self.fallback = either(self.fallback, array.is_valid())
        else:
            self.arrays[column] = array


class _Nesting:
    def __init__(self, discard_collections: bool) -> None:
        self._discard = discard_collections
        self.fallback: pa.BooleanArray | None = None

    def fields(self, given: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        found = {}
        for column, array in given.items():
            if array.null_count == len(array):
                continue
            if not pa.types.is_struct(array.type):
                found[column] = array
            elif array.type.num_fields:
                below = self.fields(_children(array))
                if below:
                    children = list(below.values())
                    found[column] = pa.StructArray.from_arrays(children, names=list(below), mask=all_null(children))
            elif not self._discard:
                self.fallback = either(self.fallback, array.is_valid())
        return found


def _children(array: pa.StructArray) -> dict[str, pa.Array]:
    """The fields of a struct, null where it is."""
    names = [field.name for field in array.type]
    return dict(zip(names, array.flatten(), strict=True))
