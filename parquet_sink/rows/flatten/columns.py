"""Typed records to payload columns, flattened or nested: worked out on the type, then done to batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from parquet_sink.config.key import ems
from parquet_sink.convert.invalid import InvalidValue, show
from parquet_sink.rows import json_text
from parquet_sink.rows.flatten.tree_rows import value_types_of
from parquet_sink.rows.flatten.trees import SEPARATOR, column_name, one_column
from parquet_sink.rows.schema.arrow_types import conformed, fields, name, storable
from parquet_sink.rows.schema.value_types import Row

_Steps: TypeAlias = tuple[int, ...]
_Names: TypeAlias = tuple[str, ...]

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
        raise InvalidValue(f"the value is not a record but {name(arrow)}, which only {CHUNKS_KEY} takes")


def _check(columns: Sequence[pa.Field], reserved: frozenset[str]) -> None:
    """Raise InvalidValue for no column, too many, names too long or names that are ours.

    Records without a schema are held to the same limits, by the same rule: `tree_rows.value_types_of` judges a
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
