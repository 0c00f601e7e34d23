"""Kafka Connect's SetSchemaMetadata: a name and a version for the schema, which decide nothing here."""

from typing import Final

import pyarrow as pa

from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.values import Values
from parquet_sink.transform.fields.base import Columns, FieldTransform, TypedChange
from parquet_sink.transform.fields.keys import REPLACE_NULL
from parquet_sink.transform.fields.origin import Origin as RecordOrigin
from parquet_sink.transform.fields.origin import Origins
from parquet_sink.transform.keys import TRANSFORM
from parquet_sink.transform.protocol import RecordFault, Side, WrongSettings

_KEYS: Final = ("schema.name", "schema.version")


class SetSchemaMetadata(FieldTransform):
    """Requires a schema and leaves the record as it is: no name or version of a schema gets into files."""

    keys = (
        Key(_KEYS[0], TRANSFORM, Type.STRING, "The schema's new name.", may_be_empty=True, origin=Origin.CONNECT),
        Key(_KEYS[1], TRANSFORM, Type.INT, "The schema's new version.", origin=Origin.CONNECT),
        REPLACE_NULL,
    )

    def __init__(self, values: Values, side: Side) -> None:
        """As `transform.protocol.TransformClass` says."""
        super().__init__(side)
        if not any(name in values.given for name in _KEYS):
            raise WrongSettings({_KEYS[0]: f"Neither {_KEYS[0]} nor {_KEYS[1]} is set; set one of them."})

    def tree(self, tree: object, origin: RecordOrigin) -> object:
        """As `FieldTransform` says: only a tombstone may be without a schema."""
        if tree is not None:
            raise RecordFault("SetSchemaMetadata needs a schema, and the record has none")
        return None

    def typed(self, arrow: pa.DataType) -> TypedChange:
        """As `FieldTransform` says: in Connect it fails for any schema but a struct's."""
        if not pa.types.is_struct(arrow):
            raise RecordFault("SetSchemaMetadata takes records, and this is none")
        return _Same(arrow)


class _Same(TypedChange):
    def value(self, value: object, origin: RecordOrigin) -> object:
        return value

    def columns(self, rows: pa.Array, origins: Origins) -> Columns:
        return Columns(rows)
