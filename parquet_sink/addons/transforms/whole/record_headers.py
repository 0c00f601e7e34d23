"""Kafka Connect's InsertHeader, DropHeaders and HeaderFrom, by which fields become headers."""

from dataclasses import replace
from typing import ClassVar, Final, cast

import numpy as np
import pyarrow as pa

from parquet_sink.addons.transforms.fields.errors import kind, tree_kind
from parquet_sink.config.key import Key, Type
from parquet_sink.config.values import Values
from parquet_sink.convert.connect_values.decoder import parse
from parquet_sink.convert.decoded import InferredColumns, Piece, SchemaColumns, Tree, Untyped
from parquet_sink.convert.invalid import show
from parquet_sink.model.records import RecordParts
from parquet_sink.transform.fields.base import Columns, FieldSelection, FieldTransform, TypedChange
from parquet_sink.transform.fields.plain import columns_of, read_as
from parquet_sink.transform.headers import NULL, Headers, HeaderValue, of_tree
from parquet_sink.transform.keys import REPLACE_NULL, connect_key, in_order, list_key
from parquet_sink.transform.protocol import RecordFault, Side, WrongSettings
from parquet_sink.transform.records import DecodedRecords, Origin, Origins, chosen_of

_NAME: Final = "HeaderFrom"
_EXACT: Final = (pa.string(), pa.bool_(), pa.int64())
"""Columns of these types hold what the records one by one would give."""
_NAMES_ALONE: Final = RecordParts(headers=True, header_values=frozenset())


def _headers_of(records: DecodedRecords) -> Headers:
    """The headers of all records of the batch."""
    return Headers.none(len(records.batch)) if records.headers is None else records.headers


class InsertHeader:
    """Gives every record one more header."""

    keys: ClassVar[tuple[Key, ...]] = (
        connect_key("header", Type.STRING, "The header's name.", missing="name the header.", may_be_empty=True),
        connect_key(
            "value.literal",
            Type.STRING,
            "The header's value, read as SimpleHeaderConverter reads headers: `12` is a number, `2024-01-31` a date.",
            missing="give the header's value.",
            may_be_empty=True,
        ),
    )
    needs = _NAMES_ALONE

    def __init__(self, values: Values, side: Side) -> None:
        self._name, self._value = values.text("header") or "", parse(values.text("value.literal") or "")

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        return replace(records, headers=_headers_of(records).with_one(self._name, self._value))


class DropHeaders:
    """Takes headers away, all of each name."""

    keys: ClassVar[tuple[Key, ...]] = (list_key("headers", "The headers to drop.", "name the headers to drop."),)
    needs = _NAMES_ALONE

    def __init__(self, values: Values, side: Side) -> None:
        self._names = values.names("headers")

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        return replace(records, headers=_headers_of(records).without(self._names))


class HeaderFrom(FieldTransform):
    """Copies or moves fields to headers."""

    keys: ClassVar[tuple[Key, ...]] = (
        list_key("fields", "The fields that become headers.", "name the fields."),
        list_key("headers", "The headers' names, in the order of `fields`.", "name a header for each field."),
        connect_key(
            "operation",
            Type.STRING,
            "`copy` keeps the fields, `move` takes them out of the record.",
            missing="write copy or move.",
            choices=("move", "copy"),
        ),
        REPLACE_NULL,
    )

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(side)
        self._fields, self._headers = in_order(values, "fields"), in_order(values, "headers")
        if len(self._fields) != len(self._headers):
            raise WrongSettings(
                {
                    "headers": f"{values.quoted('headers')} names {len(self._headers)}, and fields names "
                    f"{len(self._fields)}; give one header for each field."
                }
            )
        self._moves = values.text("operation") == "move"

    @property
    def needs(self) -> RecordParts:
        return super().needs | _NAMES_ALONE

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """As `FieldTransform` says, with headers of the fields as they were."""
        old = (records.keys or ()) if self._on_key else records.values
        found = super().apply(records)
        chosen = np.zeros(len(records.batch), np.bool_)
        chosen[found.positions.to_numpy()] = True
        kept = chosen_of(old, chosen)
        if not kept:
            return found
        positions = np.concatenate([piece.positions.to_numpy() for piece in kept])
        headers = _headers_of(records)
        for name, header in zip(self._fields, self._headers, strict=True):
            values = [value for piece in kept for value in _values_of(piece, name)]
            headers = headers.with_each(header, positions, values)
        return replace(found, headers=headers)

    def tree(self, tree: object, origin: Origin) -> object:
        """As `FieldTransform` says; a tombstone is refused."""
        if tree is None:
            raise RecordFault(f"{_NAME} takes fields of the {'key' if self._on_key else 'value'}, which is null")
        if not isinstance(tree, dict):
            raise RecordFault(f"{_NAME} takes fields of an object, and this is {tree_kind(tree)}")
        return {name: value for name, value in tree.items() if self._leaves(name)} if self._moves else tree

    def typed(self, arrow: pa.DataType) -> TypedChange:
        if not pa.types.is_struct(arrow):
            raise RecordFault(f"{_NAME} takes fields of a struct, and this is {kind(arrow)}")
        absent = next((name for name in self._fields if arrow.get_field_index(name) < 0), None)
        if absent is not None:
            raise RecordFault(f"{_NAME} does not find field {show((absent,))} in the schema")
        return FieldSelection(pa.struct([one for one in arrow if self._leaves(one.name)]))

    def inferred(self, piece: InferredColumns, origins: Origins) -> Columns:
        left = {name: array for name, array in columns_of(piece.rows).items() if self._leaves(name)}
        return Columns(read_as(left, len(piece.rows)), lists=frozenset(filter(self._leaves, piece.lists)))

    def _leaves(self, name: str) -> bool:
        """Whether a field stays where it is."""
        return not self._moves or name not in self._fields


def _values_of(piece: Piece, name: str) -> list[HeaderValue]:
    """Of one field of all records."""
    if isinstance(piece, SchemaColumns):
        return list(columns_of(piece.rows)[name])
    if isinstance(piece, Untyped):
        return [of_tree(cast("Tree", tree).get(name)) for tree in piece.trees]
    column = columns_of(piece.rows).get(name)
    if name in piece.lists or not (column is None or column.type in _EXACT):
        return [of_tree(piece.tree(row).get(name)) for row in range(len(piece.rows))]
    return [NULL] * len(piece.rows) if column is None else [one if one.is_valid else NULL for one in column]
