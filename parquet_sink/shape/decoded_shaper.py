"""Blocks of records that a converter decodes, to rows with columns that evolve.

The order of steps for one record: `batches` has the first ones (to columns of the record's own schema), then here, in
`walk`,

  6. the topic's columns take in the record's: added, widened, or started anew
  7. the row is brought to the topic's columns; Kafka metadata and the order column are appended
  8. primary keys are checked
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import Decoder
from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import RecordBatch
from parquet_sink.shape import metadata
from parquet_sink.shape.column_batch import ColumnBatch
from parquet_sink.shape.interleave import Interleaving, Part
from parquet_sink.shape.piece_shaper import PieceShaper
from parquet_sink.shape.primary_keys import PrimaryKeys
from parquet_sink.shape.run import Records, Run
from parquet_sink.shape.run_builder import Failure, RunBuilder
from parquet_sink.shape.schema.evolution import Columns
from parquet_sink.shape.schema.topic_columns import TopicColumns
from parquet_sink.shape.settings import ShapeSettings

KEY = b"parquet_sink.columns"


class DecodedShaper:
    """One per topic and Spark task; owns the topic's evolving columns."""

    def __init__(self, settings: ShapeSettings, decoder: Decoder, known: pa.Schema | None = None) -> None:
        self._settings, self._decoder = settings, decoder
        self._reserved = metadata.names(settings)
        self._pieces = PieceShaper(settings, self._reserved)
        self._keys = PrimaryKeys(settings)
        self._topic = TopicColumns(_remembered(known, settings, self._reserved))

    @property
    def known(self) -> pa.Schema | None:
        """The payload columns learned so far, None before the first."""
        columns = self._topic.columns
        return pa.schema(columns, metadata={KEY: _fingerprint(self._settings)}) if columns else None

    def shape(self, block: RecordBatch) -> Iterator[Run]:
        """The rows of the block in offset order.

        Raises InvalidRecord at the first record that has no row, after giving all rows before it; that record leaves
        no trace in the columns.
        """
        records = Records.live(block)
        decoded = self._decoder.decode(records.values)
        parts = [part for piece in decoded.pieces for part in self._pieces.of(piece)]
        invalid = dict(decoded.invalid)
        for part in parts:
            invalid.update(part.invalid)
        stop = min(invalid, default=len(records))
        keyless = self._first_without_keys(parts, stop)
        walk = RunBuilder(
            self._settings, self._topic, records, Interleaving(parts, stop if keyless is None else keyless.position)
        )
        failure = yield from walk.runs()
        if failure is None and keyless is not None:
            failure = walk.why_no_key(keyless.position, keyless.batch, keyless.row)
        if failure is None and invalid:
            failure = Failure(stop, invalid[stop])
        if failure is not None:
            raise InvalidRecord(records.topic, records.partition, records.offset(failure.position), failure.reason)

    def _first_without_keys(self, parts: Sequence[Part], stop: int) -> "_Keyless | None":
        """Step 8: the first record with a schema before `stop` that has a null where none may be."""
        found: _Keyless | None = None
        for batch in (part for part in parts if isinstance(part, ColumnBatch)):
            arrays = {column.name: array for column, array in zip(batch.columns, batch.arrays, strict=True)}
            mask = self._keys.nulls_in(arrays, len(batch))
            row = -1 if mask is None or not len(batch) else pc.index(mask, pa.scalar(True, pa.bool_())).as_py()
            position = batch.positions[row].as_py() if row >= 0 else stop
            if position < stop:
                found, stop = _Keyless(position, batch, row), position
        return found


@dataclass(frozen=True)
class _Keyless:
    """A record with a null key: its position, and one of its rows in a batch."""

    position: int
    batch: ColumnBatch
    row: int


def _fingerprint(settings: ShapeSettings) -> bytes:
    """The settings that decide columns; what was learned under others is forgotten."""
    return orjson.dumps(
        [
            *(settings.flatten, settings.discard_collections, settings.decimals_to_double, settings.lowercase),
            *(settings.chunks, settings.explode),
        ]
    )


def _remembered(known: pa.Schema | None, settings: ShapeSettings, reserved: frozenset[str]) -> Columns:
    if known is None or (known.metadata or {}).get(KEY) != _fingerprint(settings) or reserved & set(known.names):
        return ()
    return tuple(known)
