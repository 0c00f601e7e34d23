"""Decoded pieces to batches of payload columns: the order of the steps for one record.

  1. tombstones are gone: a decoder gives no row for them
  2. decimals become doubles and names lower case, as far as the settings say
  3. a record that wraps a list of records becomes its elements
  4. fields are obfuscated
  5. the record becomes columns: chunks of its JSON text, or flattened, or nested

`_typed` and `_elements` take them in this order. Trees take step 5 in `run_builder`, where what follows is, too (a
topic's columns, metadata, keys).
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import ems
from parquet_sink.convert.arrays import either, reinterpreted
from parquet_sink.convert.decoded import (
    Float32,
    InferredColumns,
    Int32,
    LongFraction,
    Piece,
    SchemaColumns,
    Tree,
    Untyped,
)
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json.exact import text_of
from parquet_sink.model.rejected import Stage
from parquet_sink.rows import json_text
from parquet_sink.rows.chunks import Chunks
from parquet_sink.rows.flatten import columns
from parquet_sink.rows.flatten.trees import lowercased
from parquet_sink.rows.obfuscation.field_obfuscator import FieldObfuscator
from parquet_sink.rows.run import ColumnBatch, InferredBatch, Rejection, TreeBatch, rejection_of
from parquet_sink.rows.schema import arrow_types
from parquet_sink.rows.schema.arrow_types import conformed
from parquet_sink.rows.settings import ShapeSettings

_NAMES = {
    **dict.fromkeys((int, float, Int32, Float32, LongFraction), "a number"),
    list: "a list",
    str: "text",
    bool: "a boolean",
}
_LOG = logging.getLogger(__name__)
_TRUE = pa.scalar(True, pa.bool_())
_SCHEMAS = 256
"""Record types whose way is remembered."""
MOST_TEXT = 2**28
"""Bytes of JSON text made at once; more makes more batches, because Arrow takes less than 2 GiB in one array."""
LONGEST_TEXT = 2**30
"""Bytes of JSON text of one record, at the most that its content may need."""


def no_fields(tree: object) -> InvalidValue:
    """Why a value has no row. Raises TypeError for what no record may hold (`convert.wrong_values`)."""
    if tree == {}:
        return InvalidValue("the value is an empty object")
    if type(tree) not in _NAMES and not isinstance(tree, pa.Scalar):
        raise TypeError(type(tree).__name__)
    what = _NAMES.get(type(tree), "a date or time")
    return InvalidValue(f"the value is not an object but {what}, which only {ems('flattener.jsonblob.chunks')} takes")


def with_fields(tree: Tree) -> Tree:
    """The record. Raises InvalidValue when transforms have left it no field."""
    if not tree:
        raise no_fields(tree)
    return tree


def without_values(rows: pa.StructArray) -> pa.BooleanArray | None:
    """Records that transforms may have left no field, among those that were read as columns; None: none of them."""
    found = pa.repeat(pa.scalar(True, pa.bool_()), len(rows))
    for column in rows.flatten():
        if not column.null_count:
            return None
        found = pc.and_(found, column.is_null())
    return found if found.true_count else None


def json_of(tree: object) -> str:
    """The JSON text of a value; text is itself. Raises InvalidValue."""
    return tree if isinstance(tree, str) else text_of(tree)


# A record matches when it has exactly one field and that is a list of records. Elements that are null are dropped; an
# empty list gives no row, nor does one that is null. What does not match is taken as it is.
def wraps_a_list(arrow: pa.DataType) -> bool:
    """Whether records of this type are to be exploded."""
    if not pa.types.is_struct(arrow) or arrow.num_fields != 1:
        return False
    only = arrow.field(0).type
    return bool(pa.types.is_list(only) and pa.types.is_struct(only.value_type))


def exploded_rows(positions: pa.Int64Array, records: pa.Array) -> tuple[pa.Int64Array, pa.Array]:
    """The elements of records whose type `matches`, each with its record's position; other records as they are."""
    if not wraps_a_list(records.type):
        report_unwrapped(records.type)
        return positions, records
    lists = records.field(0)
    if lists.null_count:
        valid = lists.is_valid()  # what an array still has where it is null counts for its parents, not its elements
        lists, positions = lists.filter(valid), positions.filter(valid)
    elements, origins = pc.list_flatten(lists), pc.list_parent_indices(lists)
    if elements.null_count:
        valid = elements.is_valid()
        elements, origins = elements.filter(valid), origins.filter(valid)
    return positions.take(origins), elements


def exploded_trees(tree: Tree) -> Sequence[Tree]:
    """The elements of a record, or the record alone when it does not match."""
    found = next(iter(tree.values())) if len(tree) == 1 else tree
    if found is None:
        return ()
    if isinstance(found, list) and all(element is None or isinstance(element, dict) for element in found):
        return [element for element in found if element is not None]
    report_unwrapped(None)
    return (tree,)


@lru_cache(maxsize=256)
def report_unwrapped(schema: pa.DataType | None) -> None:
    """Warn that records are not exploded: once for each schema in a process, None standing for those without one."""
    _LOG.warning(
        "connect.ems.explode.mode=List: a record %s is not exactly one list of records; such records are taken as "
        "they are",
        "without a schema" if schema is None else "with a schema",
    )


class ColumnBuilder:
    """One per topic and Spark task."""

    def __init__(
        self, settings: ShapeSettings, reserved: frozenset[str], *, transformed: bool = False, of_keys: bool = False
    ) -> None:
        """reserved: names that payload columns may not have (see `added_columns.names`).

        transformed: the decoder could not `rewrite` what is in lists, because records are changed after it. of_keys:
        an object may have no fields.
        """
        self._settings, self._reserved, self._transformed = settings, reserved, transformed
        self._of_keys = of_keys
        self._obfuscator: FieldObfuscator | None = None
        if settings.obfuscation is not None:
            self._obfuscator = FieldObfuscator(settings.obfuscation, settings.flatten)
        self._chunks: Chunks | None = None
        if settings.chunks is not None and settings.chunk_bytes is not None:
            self._chunks = Chunks(settings.chunks, settings.chunk_bytes)
        self._discard = settings.discard_collections and settings.chunks is None
        self._checked = lru_cache(_SCHEMAS)(arrow_types.check_depth)
        self._renamed = lru_cache(_SCHEMAS)(self._work_out_names)
        self._layout = lru_cache(_SCHEMAS)(self._work_out_layout)

    def of(self, piece: Piece) -> Sequence[ColumnBatch | TreeBatch | InferredBatch]:
        """At least one part, the positions of each in order; all of them together tell the invalid records.

        Typed: one, unless there is a great deal of JSON text; what is wrong with the schema makes every record invalid.
        All rows of a record are in one part.
        """
        if isinstance(piece, SchemaColumns):
            return self._typed(piece)
        return [self._inferred(piece)] if isinstance(piece, InferredColumns) else self._trees(piece)

    def rewrite(self, tree: Tree) -> Tree:
        """Steps 2 and 4 for a record without a schema. Raises InvalidValue."""
        named = self._tree_named(tree)
        return named if self._obfuscator is None else self._obfuscator.tree(named)

    @property
    def rewrites_lists(self) -> bool:
        """Whether `rewrite` may change what is in a list that stays."""
        return self._obfuscator is not None or (self._settings.lowercase and not self._discard)

    def _typed(self, piece: SchemaColumns) -> list[ColumnBatch]:
        try:
            positions, rows = piece.positions, piece.rows
            self._checked(rows.type)
            if self._settings.explode:
                positions, rows = exploded_rows(positions, rows)
            obfuscator = self._obfuscator_for(None if rows.type == piece.rows.type else piece.rows.type.field(0).name)
            rows = self._typed_named(rows)
            if obfuscator is not None and pa.types.is_struct(rows.type):
                rows = obfuscator.rows(rows)
            return self._typed_columns(positions, rows)
        except InvalidValue as error:
            return [_nothing(dict.fromkeys(piece.positions.to_pylist(), rejection_of(error)))]

    def _trees(self, piece: Untyped) -> Sequence[ColumnBatch | TreeBatch]:
        found: list[list[object]] = []
        positions: list[int] = []
        invalid: dict[int, Rejection] = {}
        for position, tree in zip(piece.positions.to_pylist(), piece.trees, strict=True):
            if position in invalid:
                continue
            again = positions[-1:] == [position]
            try:
                trees = self._elements(tree)
            except InvalidValue as error:
                invalid[position] = rejection_of(error)
                if again:
                    positions.pop()
                    found.pop()
                continue
            if again:
                found[-1] += trees
            elif trees:
                positions.append(position)
                found.append([*trees])
        if self._chunks is None:
            return [TreeBatch(positions, cast("list[Sequence[Tree]]", found), invalid)]
        return [_texts(self._chunks, positions, cast("list[list[str]]", found), invalid)]

    def _elements(self, tree: object) -> Sequence[object]:
        """Steps 2 to 4 for a record without a schema, for chunks its text. Raises InvalidValue.

        Chunks take what has no fields as it is.
        """
        if not (isinstance(tree, dict) and (tree or self._of_keys)):
            if self._chunks is None:
                raise no_fields(tree)
            return (json_of(tree),)
        exploded = exploded_trees(tree) if self._settings.explode else (tree,)
        obfuscator = self._obfuscator_for(None if exploded and exploded[0] is tree else next(iter(tree)))
        found = [self._tree_named(each) for each in exploded]
        if obfuscator is not None:
            found = [obfuscator.tree(each) for each in found]
        return found if self._chunks is None else [json_of(each) for each in found]

    def _inferred(self, piece: InferredColumns) -> InferredBatch:
        arrays, fallback = self._inferred_columns(piece) or ({}, pa.repeat(_TRUE, len(piece.positions)))
        fields = tuple(pa.field(name, array.type) for name, array in arrays.items())
        batch = ColumnBatch(piece.positions, fields, tuple(arrays.values()))
        if not self._transformed or self._of_keys:
            return InferredBatch(batch, fallback, lambda row: (self.rewrite(piece.tree(row)),))
        fallback = either(fallback, without_values(piece.rows))
        return InferredBatch(batch, fallback, lambda row: (self.rewrite(with_fields(piece.tree(row))),))

    def _inferred_columns(self, piece: InferredColumns) -> columns.InferredColumns | None:
        """Steps 2, 4 and 5 for all records at once, None when each must be taken by itself."""
        if piece.lists and self._transformed and self.rewrites_lists:
            return None
        try:
            rows = self._typed_named(piece.rows)
        except InvalidValue:
            return None
        read: dict[str, pa.Array] | None = dict(zip((field.name for field in rows.type), rows.flatten(), strict=True))
        if self._obfuscator is not None and read is not None:
            read = self._obfuscator.columns(read, lists_as_text=bool(piece.lists))
        if read is None:
            return None
        make = columns.inferred_flat if self._settings.flatten else columns.inferred_nested
        return make(read, self._discard)

    def _typed_named(self, rows: pa.Array) -> pa.Array:
        distinct, lower, changed = self._renamed(rows.type)
        return conformed(reinterpreted(conformed(rows, distinct), lower) if self._settings.lowercase else rows, changed)

    def _tree_named(self, tree: Tree) -> Tree:
        return lowercased(tree, discard=self._discard) if self._settings.lowercase else tree

    def _obfuscator_for(self, wrapper: str | None) -> FieldObfuscator | None:
        """wrapper: the field that held the records before they were exploded, None where they were not."""
        if self._obfuscator is None or wrapper is None:
            return self._obfuscator
        return self._obfuscator.inside(wrapper.lower() if self._settings.lowercase else wrapper)

    def _typed_columns(self, positions: pa.Int64Array, rows: pa.Array) -> list[ColumnBatch]:
        batches = list(self._in_parts(positions, rows))
        invalid = {position: reason for batch in batches for position, reason in batch.invalid.items()}
        return [_without_invalid(batch, invalid) for batch in batches] if invalid else batches

    def _in_parts(self, positions: pa.Int64Array, rows: pa.Array) -> Iterator[ColumnBatch]:
        """Batches that may have rows of invalid records; halved while there may be too much text, no record parted."""
        size = self._bound(rows)
        middle = 0 if size <= MOST_TEXT else _middle(positions)
        if middle:
            yield from self._in_parts(positions.slice(0, middle), rows.slice(0, middle))
            yield from self._in_parts(positions.slice(middle), rows.slice(middle))
        elif size <= LONGEST_TEXT:
            yield self._batch(positions, rows)
        else:
            reason = f"its JSON text may have more than {LONGEST_TEXT:,} bytes"
            yield _nothing({positions[0].as_py(): Rejection(Stage.SHAPE, reason)})

    def _bound(self, rows: pa.Array) -> int:
        if self._chunks is None:
            return self._layout(rows.type).bound(rows)
        return 0 if pa.types.is_string(rows.type) else json_text.bound(rows)

    def _batch(self, positions: pa.Int64Array, rows: pa.Array) -> ColumnBatch:
        if self._chunks is None:
            layout = self._layout(rows.type)
            return ColumnBatch(positions, layout.columns, layout.arrays(rows))
        texts = rows if pa.types.is_string(rows.type) else json_text.texts(rows)
        return _chunked(self._chunks, positions, texts)

    def _work_out_names(self, arrow: pa.DataType) -> tuple[pa.DataType, pa.DataType, pa.DataType]:
        """The type without fields that do not count, then in lower case, then without decimals. Raises InvalidValue."""
        distinct = lower = arrow
        if self._settings.lowercase:
            distinct = arrow_types.distinct(arrow, discard=self._discard)
            lower = arrow_types.lowercased(distinct, discard=self._discard)
        return distinct, lower, arrow_types.doubled(lower) if self._settings.decimals_to_double else lower

    def _work_out_layout(self, arrow: pa.DataType) -> columns.ColumnLayout:
        if self._settings.flatten:
            return columns.flat(arrow, self._settings.discard_collections, self._reserved)
        return columns.nested(arrow, self._reserved)


def _texts(
    chunks: Chunks, positions: list[int], texts: Sequence[Sequence[str]], invalid: dict[int, Rejection]
) -> ColumnBatch:
    """The JSON texts of records without a schema, in chunks."""
    each = [position for position, found in zip(positions, texts, strict=True) for _ in found]
    batch = _chunked(
        chunks, pa.array(each, pa.int64()), pa.array([one for found in texts for one in found], pa.string())
    )
    return _without_invalid(batch, {**invalid, **batch.invalid})


def _chunked(chunks: Chunks, positions: pa.Int64Array, texts: pa.StringArray) -> ColumnBatch:
    """A batch that still has the rows of records that do not fit."""
    arrays, too_long = chunks.cut(texts)
    invalid = {positions[row].as_py(): Rejection(Stage.SHAPE, why) for row, why in too_long.items()}
    return ColumnBatch(positions, chunks.columns, arrays, invalid)


def _without_invalid(batch: ColumnBatch, invalid: dict[int, Rejection]) -> ColumnBatch:
    """The batch without the rows of invalid records, telling all of these."""
    return replace(without(batch, invalid), invalid=invalid)


def without(batch: ColumnBatch, positions: Collection[int]) -> ColumnBatch:
    """The batch without the rows of some records."""
    rows = pc.is_in(batch.positions, pa.array(positions, pa.int64()))
    if not pc.any(rows).as_py():
        return batch
    kept = pc.invert(rows)
    arrays = tuple(array.filter(kept) for array in batch.arrays)
    return replace(batch, positions=batch.positions.filter(kept), arrays=arrays)


def _middle(positions: pa.Int64Array) -> int:
    """A row near the middle with which a record begins; 0 when there is one record."""
    found = positions.to_numpy()
    half = found[len(found) // 2]
    begin, end = (int(np.searchsorted(found, half, side)) for side in ("left", "right"))
    return begin or (end if end < len(found) else 0)


def _nothing(invalid: dict[int, Rejection]) -> ColumnBatch:
    return ColumnBatch(pa.array([], pa.int64()), (), (), invalid)
