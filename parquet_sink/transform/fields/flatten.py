"""Kafka Connect's Flatten: the fields of nested objects beside each other, under joined names."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import Inferred
from parquet_sink.transform.fields.base import Columns, FieldTransform, TypedChange
from parquet_sink.transform.fields.faults import field, no_object, no_struct, twice
from parquet_sink.transform.fields.origin import Origin as RecordOrigin
from parquet_sink.transform.fields.origin import Origins
from parquet_sink.transform.fields.structs import fields_of, read_as, records
from parquet_sink.transform.keys import TRANSFORM
from parquet_sink.transform.protocol import RecordFault, Side

_NAME: Final = "Flatten"


class Flatten(FieldTransform):
    """Makes the fields of nested objects fields of the record, names joined by `delimiter`; lists stay as they are."""

    keys = (
        Key(
            "delimiter",
            TRANSFORM,
            Type.STRING,
            "What stands between the names that a field's name is joined of; it may be empty.",
            default=".",
            may_be_empty=True,
            origin=Origin.CONNECT,
        ),
    )

    def __init__(self, values: Values, side: Side) -> None:
        """As `transform.protocol.TransformClass` says."""
        super().__init__(side)
        self._delimiter = values.text("delimiter") or ""

    def tree(self, tree: object, origin: RecordOrigin) -> object:
        """As `FieldTransform` says; empty objects vanish, and of fields that get one name the last counts."""
        if tree is None:
            return None
        if not isinstance(tree, dict):
            raise no_object(_NAME, tree)
        return dict(self._leaves(tree, ""))

    def typed(self, arrow: pa.DataType) -> TypedChange:
        """As `FieldTransform` says."""
        if not pa.types.is_struct(arrow):
            raise no_struct(_NAME, arrow)
        return _Typed(self, arrow)

    def inferred(self, piece: Inferred, origins: Origins) -> Columns | None:
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
                raise twice(_NAME, one.name)
            fields[one.name] = one
        super().__init__(pa.struct(list(fields.values())))

    def _leaves(self, arrow: pa.DataType, prefix: str, *, nullable: bool) -> Iterator[pa.Field]:
        """nullable: whether a struct on the way may be null."""
        for one in fields_of(arrow):
            path, optional = self._flatten.joined(prefix, one.name), nullable or one.nullable
            if pa.types.is_map(one.type):
                raise RecordFault(f"{_NAME} does not take maps, and {field(path)} is one")
            if pa.types.is_struct(one.type):
                yield from self._leaves(one.type, path, nullable=optional)
            else:
                yield pa.field(path, one.type, nullable=optional)

    def value(self, value: object, origin: RecordOrigin) -> object:
        found: dict[str, object] = dict.fromkeys(one.name for one in fields_of(self.arrow))
        self._fill(found, self._old, value, "")
        return found

    def _fill(self, found: dict[str, object], arrow: pa.DataType, value: object, prefix: str) -> None:
        if value is None:
            return
        assert isinstance(value, dict)
        for one in fields_of(arrow):
            path = self._flatten.joined(prefix, one.name)
            if pa.types.is_struct(one.type):
                self._fill(found, one.type, value[one.name], path)
            else:
                found[path] = value[one.name]

    def columns(self, rows: pa.Array, origins: Origins) -> Columns:
        return Columns(records(fields_of(self.arrow), list(_opened(rows)), len(rows)))


def _opened(rows: pa.StructArray) -> Iterator[pa.Array]:
    """The columns below, at all depths, null where a struct on the way is."""
    for array in rows.flatten():
        if pa.types.is_struct(array.type):
            yield from _opened(array)
        else:
            yield array
