"""Kafka Connect's Flatten: the fields of nested objects beside each other, under joined names."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from parquet_sink.addons.transforms.fields.errors import duplicate_field, field, object_of, struct_of
from parquet_sink.config.key import Type
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import InferredColumns
from parquet_sink.transform.fields.base import Columns, FieldTransform, TypedChange
from parquet_sink.transform.fields.plain import read_as, records
from parquet_sink.transform.keys import connect_key
from parquet_sink.transform.protocol import RecordFault, Side
from parquet_sink.transform.records import Origin, Origins

_NAME: Final = "Flatten"


class Flatten(FieldTransform):
    """Makes the fields of nested objects fields of the record, names joined by `delimiter`; lists stay as they are."""

    keys = (
        connect_key(
            "delimiter",
            Type.STRING,
            "What stands between the names that a field's name is joined of; it may be empty.",
            default=".",
            may_be_empty=True,
        ),
    )

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(side)
        self._delimiter = values.text("delimiter") or ""

    def tree(self, tree: object, origin: Origin) -> object:
        """As `FieldTransform` says; empty objects vanish, and of fields that get one name the last counts."""
        return None if tree is None else dict(self._leaves(object_of(_NAME, tree), ""))

    def typed(self, arrow: pa.DataType) -> TypedChange:
        return _Typed(self, struct_of(_NAME, arrow))

    def inferred(self, piece: InferredColumns, origins: Origins) -> Columns | None:
        """As `FieldTransform` says; one by one where an object may have lists, which columns may not tell of."""
        if any(pa.types.is_struct(one.type) and one.name in piece.lists for one in piece.rows.type):
            return None
        found = list(self._read(piece.rows, ""))
        arrays = dict(found)
        absent = piece.lists - {one.name for one in piece.rows.type}
        if len(arrays) < len(found) or not absent.isdisjoint(arrays):
            return None
        return Columns(read_as(arrays, len(piece.rows)), lists=piece.lists)

    def joined(self, prefix: str, name: str) -> str:
        """The name of a field below those of the prefix."""
        return f"{prefix}{self._delimiter}{name}" if prefix else name

    def _leaves(self, tree: dict[str, object], prefix: str) -> Iterator[tuple[str, object]]:
        for name, value in tree.items():
            path = self.joined(prefix, name)
            if isinstance(value, dict):
                yield from self._leaves(value, path)
            else:
                yield path, value

    def _read(self, rows: pa.StructArray, prefix: str) -> Iterator[tuple[str, pa.Array]]:
        """Each leaf by its name."""
        for one, array in zip(rows.type, rows.flatten(), strict=True):
            path = self.joined(prefix, one.name)
            if not pa.types.is_struct(one.type):
                yield path, array
            elif one.type.num_fields:
                yield from self._read(array, path)


class _Typed(TypedChange):
    def __init__(self, flatten: Flatten, arrow: pa.DataType) -> None:
        self._flatten, self._old = flatten, arrow
        fields: dict[str, pa.Field] = {}
        for one in self._leaves(arrow, "", nullable=False):
            if one.name in fields:
                raise duplicate_field(_NAME, one.name)
            fields[one.name] = one
        super().__init__(pa.struct(list(fields.values())))

    def _leaves(self, arrow: pa.DataType, prefix: str, *, nullable: bool) -> Iterator[pa.Field]:
        """nullable: whether a struct on the way may be null."""
        for one in arrow:
            path, optional = self._flatten.joined(prefix, one.name), nullable or one.nullable
            if pa.types.is_map(one.type):
                raise RecordFault(f"{_NAME} does not take maps, and {field(path)} is one")
            if pa.types.is_struct(one.type):
                yield from self._leaves(one.type, path, nullable=optional)
            else:
                yield pa.field(path, one.type, nullable=optional)

    def value(self, value: object, origin: Origin) -> object:
        found: dict[str, object] = dict.fromkeys(one.name for one in self.arrow)
        self._fill(found, self._old, value, "")
        return found

    def _fill(self, found: dict[str, object], arrow: pa.DataType, value: object, prefix: str) -> None:
        if value is None:
            return
        assert isinstance(value, dict)
        for one in arrow:
            path = self._flatten.joined(prefix, one.name)
            if pa.types.is_struct(one.type):
                self._fill(found, one.type, value[one.name], path)
            else:
                found[path] = value[one.name]

    def columns(self, rows: pa.Array, origins: Origins) -> Columns:
        return Columns(records(list(self.arrow), list(_opened(rows)), len(rows)))


def _opened(rows: pa.StructArray) -> Iterator[pa.Array]:
    """The columns below, at all depths, null where a struct on the way is."""
    for array in rows.flatten():
        if pa.types.is_struct(array.type):
            yield from _opened(array)
        else:
            yield array
