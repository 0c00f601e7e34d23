"""Kafka Connect's ValueToKey: fields of the value become the key."""

from dataclasses import replace
from typing import ClassVar, Final

import pyarrow as pa

from parquet_sink.addons.transforms.fields.errors import kind, tree_kind
from parquet_sink.config.key import Key
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import InferredColumns
from parquet_sink.convert.invalid import show
from parquet_sink.model.records import RecordParts
from parquet_sink.transform.fields.base import Columns, FieldSelection, FieldTransform, TypedChange
from parquet_sink.transform.fields.plain import columns_of, read_as
from parquet_sink.transform.keys import REPLACE_NULL, list_key
from parquet_sink.transform.protocol import RecordFault, Side, WrongSettings
from parquet_sink.transform.records import DecodedRecords, Origin, Origins

_NAME: Final = "ValueToKey"


class ValueToKey(FieldTransform):
    """Replaces the key by an object of some fields of the value."""

    keys: ClassVar[tuple[Key, ...]] = (
        list_key("fields", "The value's fields that the new key has.", "name the fields of the new key."),
        REPLACE_NULL,
    )

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(side)
        if side == "key":
            raise WrongSettings({"type": "ValueToKey works on whole records; leave $Key out."})
        self._fields = values.names("fields")

    @property
    def needs(self) -> RecordParts:
        return RecordParts(keys=True)

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """As `transform.protocol.Transform` says: what is made of the values becomes the keys."""
        keys, rejected = self._changed(records, records.values)
        return replace(records, keys=keys).reject(rejected)

    def tree(self, tree: object, origin: Origin) -> object:
        """As `FieldTransform` says; a field that is not there is null, and a tombstone is refused."""
        if tree is None:
            raise RecordFault(f"{_NAME} takes fields of the value, which is null")
        if not isinstance(tree, dict):
            raise RecordFault(f"{_NAME} takes fields of the value, and the value is {tree_kind(tree)}")
        return {name: tree.get(name) for name in self._fields}

    def typed(self, arrow: pa.DataType) -> TypedChange:
        """As `FieldTransform` says; a field that the schema has not is refused."""
        if not pa.types.is_struct(arrow):
            raise RecordFault(f"{_NAME} takes fields of the value, and the value is {kind(arrow)}")
        absent = next((name for name in self._fields if arrow.get_field_index(name) < 0), None)
        if absent is not None:
            raise RecordFault(f"{_NAME} does not find field {show((absent,))} in the value's schema")
        return FieldSelection(pa.struct([arrow.field(name) for name in self._fields]))

    def inferred(self, piece: InferredColumns, origins: Origins) -> Columns:
        arrays = columns_of(piece.rows)
        mine = {name: arrays[name] for name in self._fields if name in arrays}
        return Columns(read_as(mine, len(piece.rows)), lists=piece.lists & set(self._fields))
