"""The records of one batch on their way from the converters to the shaper, as transforms find and leave them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import InferredColumns, Piece, SchemaColumns, Untyped
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Stage
from parquet_sink.transform.headers import Headers

Reason = tuple[Stage, str]
"""Why a record is rejected: the stage, and one sentence for the operator, without the content of any field."""
_NO_TIMESTAMP = pa.scalar(0, pa.int64())


@dataclass(frozen=True)
class DecodedRecords:
    """Some records of a batch, with decoded values. A position is a record's place in `batch`.

    batch: the records as Kafka had them: topic, topic-partition, offsets, timestamps, and bytes, which no transform
    changes; file names, offsets and dead letters go by it. positions: increasing, which records these are; one that a
    transform drops is left out. values: each record is in one piece at most; one that is in none has a null value (a
    tombstone). keys: likewise; None when no transform asks for keys. headers: one entry for each record of `batch`, a
    tuple of `Header(name, value)`; None when no transform asks for headers. topics: likewise, the names
    that routing has given, for later transforms and predicates alone; None while every record has its own topic's.
    rejected: by position, records that cannot be decoded or transformed; they are not among `positions` any more.
    rejected_by: of those that a transform rejected, the name of its class; told when all transforms are through.

    An `InferredColumns` piece has each record twice, as a row and by `tree`: who changes one changes both in the same
    way, or takes `as_trees`. Where `lists` names a field, its rows lack the list, or a text stands for it, as it will
    be written; so who needs what is in such a field takes the records one by one.
    """

    batch: RecordBatch
    positions: pa.Int64Array
    values: tuple[Piece, ...]
    keys: tuple[Piece, ...] | None = None
    headers: Headers | None = None
    topics: pa.StringArray | None = None
    rejected: Mapping[int, Reason] = field(default_factory=dict)
    rejected_by: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.positions)

    def where(self, chosen: np.ndarray) -> "DecodedRecords":
        """Only the records whose entry in `chosen`, a mask over the batch, is true."""
        return replace(
            self,
            positions=self.positions.filter(pa.array(chosen[self.positions.to_numpy()])),
            values=chosen_of(self.values, chosen),
            keys=None if self.keys is None else chosen_of(self.keys, chosen),
        )

    def absent_from(self, pieces: Iterable[Piece]) -> pa.Int64Array:
        """The positions of records that are in none of these values or keys: there it is null."""
        there = np.zeros(len(self.batch), np.bool_)
        for piece in pieces:
            there[piece.positions.to_numpy()] = True
        return self.positions.filter(pa.array(~there[self.positions.to_numpy()]))

    def topics_now(self) -> pa.StringArray:
        """For each record of the batch the topic's name as routing has left it."""
        if self.topics is not None:
            return self.topics
        return pa.repeat(pa.scalar(self.batch.topic, pa.string()), len(self.batch))

    def without(self, dropped: Iterable[int]) -> "DecodedRecords":
        """All but the records at these positions, which are passed over: they have no row, and that is no failure."""
        mask = np.ones(len(self.batch), np.bool_)
        mask[list(dropped)] = False
        return self.where(mask)

    def reject(self, reasons: Mapping[int, str], stage: Stage = Stage.TRANSFORMATION) -> "DecodedRecords":
        """All but the records at these positions, which a transform cannot take, and why."""
        if not reasons:
            return self
        found = {position: (stage, reason) for position, reason in reasons.items()}
        return replace(self.without(reasons), rejected={**self.rejected, **found})


def merged(some: DecodedRecords, others: DecodedRecords, chosen: np.ndarray) -> DecodedRecords:
    """Two parts of one batch as one again. chosen: a mask over the batch, true for what became `some`."""
    mask = pa.array(chosen)
    topics = None
    if some.topics is not None or others.topics is not None:
        topics = pc.if_else(mask, some.topics_now(), others.topics_now())
    return replace(
        some,
        positions=pa.array(np.union1d(some.positions.to_numpy(), others.positions.to_numpy())),
        values=(*some.values, *others.values),
        keys=None if some.keys is None or others.keys is None else (*some.keys, *others.keys),
        headers=None if some.headers is None or others.headers is None else some.headers.where(mask, others.headers),
        topics=topics,
        rejected={**others.rejected, **some.rejected},
    )


def chosen_of(pieces: tuple[Piece, ...], chosen: np.ndarray) -> tuple[Piece, ...]:
    """The records of pieces whose entry in `chosen`, a mask over the batch, is true."""
    rows = (np.flatnonzero(chosen[one.positions.to_numpy()]) for one in pieces)
    return tuple(rows_of(piece, own) for piece, own in zip(pieces, rows, strict=True) if len(own))


def as_trees(piece: Untyped | InferredColumns) -> Untyped:
    """The records one by one, with all that they hold: the form that defines what becomes of them."""
    if isinstance(piece, Untyped):
        return piece
    return Untyped(piece.positions, [piece.tree(row) for row in range(len(piece.positions))])


def rows_of(piece: Piece, rows: np.ndarray) -> Piece:
    """Some rows of a piece. rows: each once, increasing."""
    if len(rows) == len(piece.positions):
        return piece
    which = pa.array(rows)
    positions = piece.positions.take(which)
    if isinstance(piece, SchemaColumns):
        return SchemaColumns(positions, piece.rows.take(which))
    if isinstance(piece, Untyped):
        return Untyped(positions, [piece.trees[row] for row in rows.tolist()])
    return replace(piece, positions=positions, rows=piece.rows.take(which), tree=lambda row: piece.tree(int(rows[row])))


@dataclass(frozen=True)
class Origin:
    """Where one record comes from.

    topic: as routing has named it by now. timestamp_ms: epoch milliseconds; None: it has none.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None


class Origins:
    """Where the records of one piece come from, in its order."""

    def __init__(self, records: DecodedRecords, positions: pa.Int64Array) -> None:
        self._records, self._positions = records, positions
        self.partition = records.batch.partition

    def __len__(self) -> int:
        return len(self._positions)

    def of(self, row: int) -> Origin:
        """Of the record in this row."""
        return self.at(self._positions[row].as_py())

    def at(self, position: int) -> Origin:
        """Of the record at this position of the batch."""
        records, batch = self._records, self._records.batch
        topic = batch.topic if records.topics is None else records.topics[position].as_py()
        timestamp = batch.timestamps[position].as_py()
        return Origin(topic, batch.partition, batch.offsets[position].as_py(), timestamp or None)

    @cached_property
    def topics(self) -> pa.StringArray:
        """As routing has named them by now."""
        return self._records.topics_now().take(self._positions)

    @cached_property
    def offsets(self) -> pa.Int64Array:
        """Kafka's."""
        return self._records.batch.offsets.take(self._positions)

    @cached_property
    def timestamps(self) -> pa.Int64Array:
        """Epoch milliseconds, null for none."""
        found = self._records.batch.timestamps.take(self._positions)
        return pc.if_else(pc.equal(found, _NO_TIMESTAMP), pa.scalar(None, pa.int64()), found)
