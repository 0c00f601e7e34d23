"""Kafka Connect's HeaderFrom: fields of the key or the value become headers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import Inferred, Piece, Tree, Trees, Typed
from parquet_sink.convert.invalid import show
from parquet_sink.transform.fields.faults import kind, tree_kind
from parquet_sink.transform.fields.keys import REPLACE_NULL
from parquet_sink.transform.fields.structs import columns_of, fields_of, read_as, records
from parquet_sink.transform.headers import NULL, HeaderValue, of_tree
from parquet_sink.transform.keys import TRANSFORM
from parquet_sink.transform.protocol import Side, WrongSettings
from parquet_sink.transform.records import DecodedRecords
from parquet_sink.transform.whole.lists import in_order, list_key
from parquet_sink.transform.whole.record_headers import NAMES_ALONE, headers_of
from parquet_sink.transform.whole.tombstones import tombstones

_NAME: Final = "HeaderFrom"
_EXACT: Final = (pa.string(), pa.bool_(), pa.int64())
"""Columns of these types hold what the records one by one would give."""


class HeaderFrom:
    """Copies or moves fields to headers."""

    keys: ClassVar[tuple[Key, ...]] = (
        list_key("fields", "The fields that become headers.", "name the fields."),
        list_key("headers", "The headers' names, in the order of `fields`.", "name a header for each field."),
        Key(
            "operation",
            TRANSFORM,
            Type.STRING,
            "`copy` keeps the fields, `move` takes them out of the record.",
            required=True,
            missing="write copy or move.",
            choices=("move", "copy"),
            origin=Origin.CONNECT,
        ),
        REPLACE_NULL,
    )

    def __init__(self, values: Values, side: Side) -> None:
        """As `transform.protocol.TransformClass` says."""
        self._fields, self._headers = in_order(values, "fields"), in_order(values, "headers")
        if len(self._fields) != len(self._headers):
            raise WrongSettings(
                {
                    "headers": f"{values.quoted('headers')} names {len(self._headers)}, and fields names "
                    f"{len(self._fields)}; give one header for each field."
                }
            )
        self._moves, self._on_key = values.text("operation") == "move", side == "key"
        self.needs = replace(NAMES_ALONE, keys=self._on_key)

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """As `transform.protocol.Transform` says; a tombstone is rejected."""
        mine = (records.keys or ()) if self._on_key else records.values
        work = _Work(self._fields, self._headers, self._moves)
        pieces = tuple(changed for piece in mine for changed in work.piece(piece))
        absent = dict.fromkeys(tombstones(records, mine), f"{_NAME} takes fields of the {self._what}, which is null")
        headers = headers_of(records)
        for name, positions, values in work.found():
            headers = headers.with_each(name, positions, values)
        found = replace(records, headers=headers)
        found = replace(found, keys=pieces) if self._on_key else replace(found, values=pieces)
        return found.reject({**absent, **work.rejected})

    @property
    def _what(self) -> str:
        return "key" if self._on_key else "value"


class _Work:
    """On the records of one batch. rejected: by position, why they cannot be changed."""

    def __init__(self, fields: Sequence[str], headers: Sequence[str], moves: bool) -> None:
        self._fields, self._headers, self._moves = fields, headers, moves
        self.rejected: dict[int, str] = {}
        self._positions: list[np.ndarray] = []
        self._values: list[list[HeaderValue]] = [[] for _ in fields]

    def piece(self, piece: Piece) -> list[Piece]:
        """What is left of a piece."""
        if isinstance(piece, Typed):
            return self._typed(piece)
        return self._trees(piece) if isinstance(piece, Trees) else self._inferred(piece)

    def found(self) -> list[tuple[str, np.ndarray, list[HeaderValue]]]:
        """For each new header its name, whose it is, and the values."""
        every = np.concatenate(self._positions) if self._positions else np.array([], np.int64)
        return [(name, every, values) for name, values in zip(self._headers, self._values, strict=True)]

    def _typed(self, piece: Typed) -> list[Piece]:
        reason = self._why_not(piece.rows.type)
        if reason is not None:
            self.rejected |= dict.fromkeys(piece.positions.to_pylist(), reason)
            return []
        arrays = columns_of(piece.rows)
        self._positions.append(piece.positions.to_numpy())
        for name, values in zip(self._fields, self._values, strict=True):
            values += list(arrays[name])
        if not self._moves:
            return [piece]
        kept = [field for field in fields_of(piece.rows.type) if field.name not in self._fields]
        rows = records(kept, [arrays[field.name] for field in kept], len(piece.rows))
        return [Typed(piece.positions, rows)]

    def _why_not(self, arrow: pa.DataType) -> str | None:
        if not pa.types.is_struct(arrow):
            return f"{_NAME} takes fields of a struct, and this is {kind(arrow)}"
        absent = next((name for name in self._fields if arrow.get_field_index(name) < 0), None)
        return None if absent is None else f"{_NAME} does not find field {show((absent,))} in the schema"

    def _trees(self, piece: Trees) -> list[Piece]:
        positions, trees = [], []
        for position, tree in zip(piece.positions.to_pylist(), piece.trees, strict=True):
            if not isinstance(tree, dict):
                self.rejected[position] = f"{_NAME} takes fields of an object, and this is {tree_kind(tree)}"
                continue
            positions.append(position)
            trees.append(self._left(tree))
            for name, values in zip(self._fields, self._values, strict=True):
                values.append(of_tree(tree.get(name)))
        self._positions.append(np.array(positions, np.int64))
        return [Trees(pa.array(positions, pa.int64()), trees)] if trees else []

    def _inferred(self, piece: Inferred) -> list[Piece]:
        arrays = columns_of(piece.rows)
        self._positions.append(piece.positions.to_numpy())
        for name, values in zip(self._fields, self._values, strict=True):
            values.extend(_values_of(piece, name, arrays.get(name)))
        if not self._moves:
            return [piece]
        kept = {name: array for name, array in arrays.items() if name not in self._fields}
        lists = piece.lists - set(self._fields)
        rows = read_as(kept, len(piece.rows))
        return [replace(piece, rows=rows, tree=lambda row: self._left(piece.tree(row)), lists=lists)]

    def _left(self, tree: Tree) -> Tree:
        if not self._moves:
            return tree
        return {name: value for name, value in tree.items() if name not in self._fields}


def _values_of(piece: Inferred, name: str, column: pa.Array | None) -> list[HeaderValue]:
    """Of one field of all records."""
    if name in piece.lists or not (column is None or column.type in _EXACT):
        return [of_tree(piece.tree(row).get(name)) for row in range(len(piece.rows))]
    return [NULL] * len(piece.rows) if column is None else [_untyped(one) for one in column]


def _untyped(value: pa.Scalar) -> HeaderValue:
    return value if value.is_valid else NULL
