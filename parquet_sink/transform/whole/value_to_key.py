"""Kafka Connect's ValueToKey: fields of the value become the key."""

from dataclasses import replace
from typing import ClassVar, Final

import pyarrow as pa

from parquet_sink.config.key import Key
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import Inferred, Piece, Tree, Trees, Typed
from parquet_sink.convert.invalid import show
from parquet_sink.model.records import RecordParts
from parquet_sink.transform.fields.faults import kind, tree_kind
from parquet_sink.transform.fields.keys import REPLACE_NULL
from parquet_sink.transform.fields.structs import columns_of, fields_of, read_as, records
from parquet_sink.transform.protocol import Side, WrongSettings
from parquet_sink.transform.records import DecodedRecords
from parquet_sink.transform.whole.lists import list_key
from parquet_sink.transform.whole.tombstones import tombstones

_NAME: Final = "ValueToKey"


class ValueToKey:
    """Replaces the key by an object of some fields of the value."""

    keys: ClassVar[tuple[Key, ...]] = (
        list_key("fields", "The value's fields that the new key has.", "name the fields of the new key."),
        REPLACE_NULL,
    )
    needs = RecordParts(keys=True)

    def __init__(self, values: Values, side: Side) -> None:
        """As `transform.protocol.TransformClass` says."""
        if side == "key":
            raise WrongSettings({"type": "ValueToKey works on whole records; leave $Key away."})
        self._fields = values.names("fields")

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """As `transform.protocol.Transform` says; a tombstone is rejected."""
        rejected = dict.fromkeys(
            tombstones(records, records.values), f"{_NAME} takes fields of the value, which is null"
        )
        keys: list[Piece] = []
        for piece in records.values:
            if isinstance(piece, Typed):
                keys += self._typed(piece, rejected)
            elif isinstance(piece, Trees):
                keys += self._trees(piece, rejected)
            else:
                keys.append(self._inferred(piece))
        return replace(records, keys=tuple(keys)).reject(rejected)

    def _typed(self, piece: Typed, rejected: dict[int, str]) -> list[Typed]:
        reason = self._why_not(piece.rows.type)
        if reason is not None:
            rejected |= dict.fromkeys(piece.positions.to_pylist(), reason)
            return []
        arrays = columns_of(piece.rows)
        own = {field.name: field for field in fields_of(piece.rows.type)}
        rows = records([own[name] for name in self._fields], [arrays[name] for name in self._fields], len(piece.rows))
        return [Typed(piece.positions, rows)]

    def _why_not(self, arrow: pa.DataType) -> str | None:
        if not pa.types.is_struct(arrow):
            return f"{_NAME} takes fields of the value, and the value is {kind(arrow)}"
        absent = next((name for name in self._fields if arrow.get_field_index(name) < 0), None)
        return None if absent is None else f"{_NAME} does not find field {show((absent,))} in the value's schema"

    def _trees(self, piece: Trees, rejected: dict[int, str]) -> list[Trees]:
        positions, keys = [], []
        for position, tree in zip(piece.positions.to_pylist(), piece.trees, strict=True):
            if not isinstance(tree, dict):
                rejected[position] = f"{_NAME} takes fields of the value, and the value is {tree_kind(tree)}"
                continue
            positions.append(position)
            keys.append(self._key(tree))
        return [Trees(pa.array(positions, pa.int64()), keys)] if keys else []

    def _inferred(self, piece: Inferred) -> Inferred:
        arrays = columns_of(piece.rows)
        rows = read_as({name: arrays[name] for name in self._fields if name in arrays}, len(piece.rows))
        lists = piece.lists & set(self._fields)
        return replace(piece, rows=rows, tree=lambda row: self._key(piece.tree(row)), lists=lists)

    def _key(self, tree: Tree) -> Tree:
        return {name: tree.get(name) for name in self._fields}
