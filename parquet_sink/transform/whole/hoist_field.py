"""Kafka Connect's HoistField: the record becomes the only field of a new one."""

import pyarrow as pa

from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import Inferred
from parquet_sink.transform.fields.base import Columns, FieldTransform, TypedChange
from parquet_sink.transform.fields.origin import Origin as RecordOrigin
from parquet_sink.transform.fields.origin import Origins
from parquet_sink.transform.keys import TRANSFORM
from parquet_sink.transform.protocol import RecordFault, Side


class HoistField(FieldTransform):
    """Wraps the record, whatever it is, in an object with one field; of a tombstone that is null."""

    keys = (
        Key(
            "field",
            TRANSFORM,
            Type.STRING,
            "The name of the only field.",
            required=True,
            missing="name the field that the record becomes.",
            may_be_empty=True,
            origin=Origin.CONNECT,
        ),
    )

    def __init__(self, values: Values, side: Side) -> None:
        """As `transform.protocol.TransformClass` says."""
        super().__init__(side)
        self._field = values.text("field") or ""

    def tree(self, tree: object, origin: RecordOrigin) -> object:
        """As `FieldTransform` says."""
        return {self._field: tree}

    def typed(self, arrow: pa.DataType) -> TypedChange:
        """As `FieldTransform` says: a schema has no field without a name, as in Connect."""
        if not self._field:
            raise RecordFault("HoistField makes a field without a name, which a schema cannot have")
        return _Wrapping(self._field, arrow)

    def inferred(self, piece: Inferred, origins: Origins) -> Columns:
        """As `FieldTransform` says."""
        lists = frozenset((self._field,)) if piece.lists else frozenset()
        rows = pa.StructArray.from_arrays([piece.rows], fields=[pa.field(self._field, piece.rows.type)])
        return Columns(rows, lists=lists)


class _Wrapping(TypedChange):
    def __init__(self, field: str, arrow: pa.DataType) -> None:
        super().__init__(pa.struct([pa.field(field, arrow, nullable=False)]))
        self._field = field

    def value(self, value: object, origin: RecordOrigin) -> object:
        return {self._field: value}

    def columns(self, rows: pa.Array, origins: Origins) -> Columns:
        return Columns(pa.StructArray.from_arrays([rows], fields=[self.arrow.field(0)]))
