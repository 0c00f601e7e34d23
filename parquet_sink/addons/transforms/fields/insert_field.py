"""Kafka Connect's InsertField: topic, topic-partition, offset, timestamp or a fixed text as fields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.transforms.fields.errors import duplicate_field, field, object_of, struct_of
from parquet_sink.config.key import Check, Type, Value
from parquet_sink.config.report import quoted
from parquet_sink.config.values import Values
from parquet_sink.convert.arrays import either
from parquet_sink.convert.decoded import InferredColumns
from parquet_sink.transform.fields.base import Columns, FieldTransform, TypedChange
from parquet_sink.transform.fields.plain import columns_of, read_as, records
from parquet_sink.transform.keys import REPLACE_NULL, connect_key
from parquet_sink.transform.protocol import RecordFault, Side, WrongSettings
from parquet_sink.transform.records import Origin, Origins

_NAME: Final = "InsertField"
_STATIC: Final = "static.field"


@dataclass(frozen=True)
class _Source:
    """What may be inserted: in words, of a record, of many, and its type where there is a schema."""

    what: str
    of: Callable[[Origin], object]
    column: Callable[[Origins], pa.Array]
    typed: pa.DataType


_SOURCES: Final[Mapping[str, _Source]] = {
    "topic.field": _Source(
        "the topic's name, as routing has left it", lambda one: one.topic, lambda many: many.topics, pa.string()
    ),
    "partition.field": _Source(
        "the topic-partition's number",
        lambda one: one.partition,
        lambda many: pa.repeat(pa.scalar(many.partition, pa.int64()), len(many)),
        pa.int32(),
    ),
    "offset.field": _Source("the offset", lambda one: one.offset, lambda many: many.offsets, pa.int64()),
    "timestamp.field": _Source(
        "the record's timestamp (epoch milliseconds, with a schema a Timestamp); records without one have none",
        lambda one: one.timestamp_ms,
        lambda many: many.timestamps,
        pa.timestamp("ms", "UTC"),
    ),
}


@dataclass(frozen=True)
class _Insertion:
    name: str
    required: bool
    source: _Source


def _named(value: Value) -> str | None:
    if isinstance(value, str) and not value.removesuffix("!" if value.endswith("!") else "?"):
        return f"{quoted(value)} names no field; write its name before the mark."
    return None


_NAMED: Final = Check("a name, with `?` or `!` behind it or not", _named)
_MARKS: Final = "With `!` behind the name the field is required in the schema, with `?` or nothing optional."


class InsertField(FieldTransform):
    """Inserts where a record comes from, or a fixed text, as fields."""

    keys = (
        *(
            connect_key(name, Type.STRING, f"The field that gets {source.what}. {_MARKS}", check=_NAMED)
            for name, source in _SOURCES.items()
        ),
        connect_key(_STATIC, Type.STRING, f"The field that gets `static.value`. {_MARKS}", check=_NAMED),
        connect_key(
            "static.value", Type.STRING, "The text that `static.field` gets.", may_be_empty=True, needs=_STATIC
        ),
        REPLACE_NULL,
    )

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(side)
        self._insertions: list[_Insertion] = []
        for key, source in _SOURCES.items():
            self._add(values.text(key), source)
        text = values.text("static.value")
        if values.text(_STATIC) is not None:
            if text is None:
                raise WrongSettings({"static.value": f"It is missing; give the text for {_STATIC}, or remove that."})
            self._add(values.text(_STATIC), _fixed(text))
        if not self._insertions:
            keys = ", ".join([*_SOURCES, _STATIC])
            raise WrongSettings({"type": f"InsertField inserts nothing; name a field in one of {keys}."})

    def _add(self, spec: str | None, source: _Source) -> None:
        if spec is not None:
            name = spec[:-1] if spec.endswith(("?", "!")) else spec
            self._insertions.append(_Insertion(name, spec.endswith("!"), source))

    def tree(self, tree: object, origin: Origin) -> object:
        """As `FieldTransform` says; what a record has not (a timestamp) leaves its field as it is."""
        if tree is None:
            return None
        found = ((one.name, one.source.of(origin)) for one in self._insertions)
        return {**object_of(_NAME, tree), **{name: value for name, value in found if value is not None}}

    def typed(self, arrow: pa.DataType) -> TypedChange:
        return _Typed(self._insertions, struct_of(_NAME, arrow))

    def inferred(self, piece: InferredColumns, origins: Origins) -> Columns:
        arrays = columns_of(piece.rows)
        doubtful = None
        for one in self._insertions:
            column = one.source.column(origins)
            if column.null_count and (one.name in arrays or one.name in piece.lists):
                doubtful = either(doubtful, column.is_null())
            arrays[one.name] = column
        lists = piece.lists - {one.name for one in self._insertions}
        return Columns(read_as(arrays, len(piece.rows)), doubtful, lists)


class _Typed(TypedChange):
    def __init__(self, insertions: list[_Insertion], arrow: pa.DataType) -> None:
        self._insertions = insertions
        fields = list(arrow)
        names = {one.name for one in fields}
        for one in insertions:
            if one.name in names:
                raise duplicate_field(_NAME, one.name)
            names.add(one.name)
            fields.append(pa.field(one.name, one.source.typed, nullable=not one.required))
        super().__init__(pa.struct(fields))

    def value(self, value: object, origin: Origin) -> object:
        assert isinstance(value, dict)
        found = {one.name: one.source.of(origin) for one in self._insertions}
        for one in self._insertions:
            if one.required and found[one.name] is None:
                raise RecordFault(f"{_NAME} requires {field(one.name)}, and the record has no timestamp")
        return {**value, **found}

    def columns(self, rows: pa.Array, origins: Origins) -> Columns:
        arrays = list(columns_of(rows).values())
        doubtful = None
        for one in self._insertions:
            column = one.source.column(origins)
            if one.required and column.null_count:
                doubtful = either(doubtful, column.is_null())
                column = pc.fill_null(column, 0)
            arrays.append(column.cast(one.source.typed))
        return Columns(records(list(self.arrow), arrays, len(rows)), doubtful)


def _fixed(text: str) -> _Source:
    scalar = pa.scalar(text, pa.string())
    return _Source("", lambda _: text, lambda many: pa.repeat(scalar, len(many)), pa.string())
