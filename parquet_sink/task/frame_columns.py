"""Rows of a DataFrame as Arrow has them, to the types that shaping knows, column by column.

A DataFrame's columns are typed already, so its rows take the way of decoded records: `FrameDecoder` stands where a
converter would. Its input are row numbers, and what it gives are the rows themselves.
"""

from collections.abc import Callable

import pyarrow as pa

from parquet_sink.convert.decoded import Decoded, Typed
from parquet_sink.errors import ConnectorError
from parquet_sink.model.frames import FrameSlice
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.settings import ShapeSettings

_SMALL = (pa.int8(), pa.int16())


class UnknownColumn(ValueError):
    """A column of a type that no file of ours has; the text names both."""


class FrameDecoder:
    """Gives the rows that it was handed last."""

    def __init__(self, settings: ShapeSettings) -> None:
        self._in_text = settings.chunks is not None
        self._nested = not settings.flatten and not self._in_text
        self._rows: pa.StructArray = pa.array([], pa.struct([]))

    def block(self, frame: FrameSlice, first_row: int, rows: pa.RecordBatch) -> RecordBatch:
        """The rows as records for the shaper, numbered from first_row on. Raises ConnectorError naming a column."""
        try:
            wanted = pa.struct([self._column(field) for field in rows.schema])
        except UnknownColumn as error:
            raise ConnectorError(f"{frame.described}: {error}. {frame.repeated}") from None
        self._rows = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema)).cast(wanted)
        count = len(rows)
        nothing = pa.array([b""] * count, pa.binary())
        offsets = pa.array(range(first_row, first_row + count), pa.int64())
        return RecordBatch(frame.label, frame.partition, offsets, pa.repeat(pa.scalar(0, pa.int64()), count), nothing)

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """One piece with all rows."""
        assert len(values) == len(self._rows)
        return Decoded((Typed(pa.array(range(len(values)), pa.int64()), self._rows),)) if len(values) else Decoded()

    def _column(self, field: pa.Field) -> pa.Field:
        known = _known(field.type, field.name, nested=self._nested, in_text=self._in_text)
        return pa.field(field.name, known, nullable=field.nullable)


def _known(arrow: pa.DataType, name: str, *, nested: bool, in_text: bool) -> pa.DataType:
    """The type that shaping knows.

    nested: lists and maps do not become text. in_text: within what becomes JSON text, where times are microseconds.
    """
    if arrow in _SMALL:
        return pa.int32()
    if pa.types.is_timestamp(arrow):
        return pa.int64() if in_text else pa.timestamp("us", arrow.tz and "UTC")
    if pa.types.is_large_string(arrow) or pa.types.is_large_binary(arrow):
        return pa.string() if pa.types.is_large_string(arrow) else pa.binary()
    if pa.types.is_struct(arrow) and any(field.metadata and b"variant" in field.metadata for field in arrow.fields):
        raise _unknown(name, "a variant")  # Spark marks it so, and gives its two binary parts
    if pa.types.is_nested(arrow):
        in_text = in_text or not (nested or pa.types.is_struct(arrow))
        return _below(arrow, lambda below: _known(below, name, nested=nested, in_text=in_text))
    if any(knows(arrow) for knows in _AS_IT_IS):
        return arrow
    raise _unknown(name, str(arrow))


def _below(arrow: pa.DataType, known: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The record, list or map with what is in it as shaping knows it."""
    if pa.types.is_struct(arrow):
        return pa.struct([field.with_type(known(field.type)) for field in arrow.fields])
    if pa.types.is_map(arrow):
        item = pa.field("value", known(arrow.item_type), nullable=arrow.item_field.nullable)
        return pa.map_(known(arrow.key_type), item)
    return pa.list_(arrow.value_field.with_type(known(arrow.value_type)))


_AS_IT_IS = (
    *(pa.types.is_int32, pa.types.is_int64, pa.types.is_float32, pa.types.is_float64, pa.types.is_boolean),
    *(pa.types.is_string, pa.types.is_binary, pa.types.is_date32, pa.types.is_decimal128, pa.types.is_null),
)


def _unknown(name: str, what: str) -> UnknownColumn:
    return UnknownColumn(
        f"column {name} holds {what}, which a file cannot; cast it, for example to string, or leave it out"
    )
