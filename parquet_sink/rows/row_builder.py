"""Blocks of records to rows: the one door to this package.

A decoder gives the records of a block, transforms may change them, `column_builder` brings them to columns of their own
schema, `interleave` back into offset order, and `run_builder` into the topic's columns.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from parquet_sink.convert.decoded import Decoder, InferredColumns, LearningDecoder, Piece, Reading
from parquet_sink.convert.json import decoder as json
from parquet_sink.errors import ConnectorError, TransformFailed
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.rows import added_columns
from parquet_sink.rows.added_columns import PrimaryKeys
from parquet_sink.rows.column_builder import ColumnBuilder, without
from parquet_sink.rows.obfuscation.field_obfuscator import FieldObfuscator
from parquet_sink.rows.run import (
    ColumnBatch,
    InferredBatch,
    Interleaving,
    Part,
    Records,
    RejectedBatch,
    Rejection,
    Run,
    TombstoneBatch,
)
from parquet_sink.rows.run_builder import RunBuilder
from parquet_sink.rows.schema.topic_columns import LearnedSchema, TopicColumns
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.rows.tombstones import Tombstones
from parquet_sink.transform.chain import TransformChain

__all__ = ["Rejected", "RowBuilder", "Run", "Shaper"]

_TREES_WORTH_IT: Final = 16
"""When more than one in so many records that were read as columns had to be taken as trees, it learns again."""


class RowBuilder:
    """One for each range, of which there is one at a time; owns the topic's evolving columns."""

    def __init__(
        self,
        settings: ShapeSettings,
        known: pa.Schema | None = None,
        decoder: Decoder | None = None,
        transforms: TransformChain | None = None,
        tombstone_keys: Decoder | None = None,
    ) -> None:
        """known: what was learned so far (another row builder's `known`, also after `serialize`).

        decoder: of the connector's converter; None for JSON without a schema. transforms: between it and what follows.
        tombstone_keys: of the key converter, where tombstones become rows.
        """
        self._settings = settings
        reserved = added_columns.names(settings)
        self._pieces = ColumnBuilder(settings, reserved, transformed=transforms is not None)
        self._keys = PrimaryKeys(settings)
        learned = LearnedSchema.restored(known, settings, reserved)
        self._topic = TopicColumns(learned.columns)
        self._made_with, self._first_columns = known, learned.columns
        self._transforms = transforms
        self._decoder: Decoder = json.decoder() if decoder is None else decoder
        self._learning: LearningDecoder | None = None
        """The decoder, if it learns."""
        if isinstance(self._decoder, LearningDecoder):
            self._decoder = self._learning = self._decoder.for_topic(self._reading(), learned.decoder)
        self._tombstones: Tombstones | None = None
        if tombstone_keys is not None:
            transformed = transforms is not None
            self._tombstones = Tombstones(settings, tombstone_keys, self._reading(), transformed=transformed)
            self._transforms = transforms or TransformChain(())

    @property
    def known(self) -> pa.Schema | None:
        """The payload columns learned so far, with what the decoder learned; None before the first."""
        learned = None if self._learning is None else self._learning.learned
        return LearnedSchema(self._topic.columns, learned).to_schema(self._settings)

    def begin_again(self) -> bool:
        """Makes ready for another range that begins with the same `known`; False where it has learned since."""
        known = self.known
        if known is None or self._made_with is None or not known.equals(self._made_with, check_metadata=True):
            return False
        self._topic = TopicColumns(self._first_columns)
        return True

    def shape(self, block: RecordBatch, *, across_rejected: bool = False) -> Iterator[Run | Rejected]:
        """The rows of the block as runs, and the records that have none; tombstones give nothing, or a row by settings.

        A rejected record leaves no trace in the columns, and the records after it are shaped as if it were not there.
        All comes in the order of last offsets. across_rejected: whether a run may have rows from both sides of a
        rejected record, which then comes before it; without, whoever stops at a rejected record has all rows before it
        and none after. Raises ConnectorError when no record is to blame (the registry is unavailable).
        """
        try:
            yield from self._shaped(block, across_rejected=across_rejected)
        except MemoryError:
            raise
        except Exception as error:
            if isinstance(error, ConnectorError) and type(error) is not TransformFailed:
                raise
            transforms = self._transforms or TransformChain(())
            if (fault := transforms.fault(block, self._decoder)) is None:
                raise
            raise fault from error

    def _shaped(self, block: RecordBatch, *, across_rejected: bool) -> Iterator[Run | Rejected]:
        records, pieces, rejections, tombstones = self._decoded(block)
        builder = RunBuilder(self._settings, self._topic, records, across_rejected)
        parts: list[Part] = [*tombstones]
        for part in (part for piece in pieces for part in self._pieces.of(piece)):
            if not isinstance(part, InferredBatch):
                rejections |= part.invalid
            parts.append(self._with_keys(part, rejections, builder.why_no_key))
        if rejections:
            order = sorted(rejections)
            parts.append(RejectedBatch(order, [rejections[at] for at in order]))
        yield from builder.build(Interleaving(parts, len(records)))
        self._learn_again(pieces, builder.inferred_as_trees)

    def unmatched(self) -> tuple[str, ...]:
        """Paths of `obfuscation.fields` that match none of the columns learned so far."""
        obfuscation = self._settings.obfuscation
        columns = self._topic.columns
        if obfuscation is None or self._settings.chunks is not None or not columns:
            return ()
        obfuscator = FieldObfuscator(obfuscation, self._settings.flatten)
        return obfuscator.unmatched(columns, exploded=self._settings.explode)

    def _decoded(
        self, block: RecordBatch
    ) -> tuple[Records, tuple[Piece, ...], dict[int, Rejection], Sequence[TombstoneBatch]]:
        """Records, their decoded and transformed values, why some of them have none, and tombstones that have rows."""
        if self._transforms is None:
            records = Records(block)
            decoded = self._decoder.decode(records.values)
            invalid = {at: Rejection(Stage.VALUE_CONVERTER, reason) for at, reason in decoded.invalid.items()}
            return records, decoded.pieces, invalid, ()
        found = self._transforms.apply(block, self._decoder)
        rejected = {at: Rejection(*why, found.rejected_by.get(at, "")) for at, why in found.rejected.items()}
        gone = None if self._tombstones is None else self._tombstones.of(found, self._topic)
        if gone is None:
            return Records(block, tombstones=True), found.values, rejected, ()
        records = Records(block, tombstones=True, deleted=pa.array(gone.which))
        return records, found.values, rejected | gone.rejected, gone.parts

    def _reading(self) -> Reading:
        """What the decoder must know of the settings."""
        settings, pieces = self._settings, self._pieces
        return Reading(
            as_trees=settings.chunks is not None or settings.explode,
            anything=settings.chunks is not None,
            any_tree=self._transforms is not None,
            discard_lists=settings.discard_collections,
            rewrite=pieces.rewrite if pieces.rewrites_lists and self._transforms is None else None,
            ignore_case=settings.lowercase,
        )

    def _with_keys(self, part: Part, rejections: dict[int, Rejection], why: Callable[[ColumnBatch, int], str]) -> Part:
        """The part without records with a schema that have a null key where none may be; they are rejected."""
        if not isinstance(part, ColumnBatch) or not len(part):
            return part
        arrays = {column.name: array for column, array in zip(part.columns, part.arrays, strict=True)}
        mask = self._keys.nulls_in(arrays, len(part))
        if mask is None:
            return part
        keyless: dict[int, Rejection] = {}
        for row in np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist():
            position = part.positions[row].as_py()
            keyless.setdefault(position, Rejection(Stage.SHAPE, partial(why, part, row)))
        rejections |= keyless
        return without(part, keyless)

    def _learn_again(self, pieces: Sequence[Piece], as_trees: int) -> None:
        """Let the decoder learn again when what it gave could not be used."""
        given = sum(len(piece.positions) for piece in pieces if isinstance(piece, InferredColumns))
        if self._learning is not None and as_trees * _TREES_WORTH_IT > given:
            self._learning.forget()


Shaper = RowBuilder
"""Its name for plug-ins."""
