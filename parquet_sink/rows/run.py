"""Runs: consecutive rows that share one schema; and the records of a block that they come from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.rows import metadata
from parquet_sink.rows.settings import ShapeSettings


@dataclass(frozen=True)
class Run:
    """Consecutive rows of one topic-partition that share one Parquet schema.

    rows: payload columns in the order of first appearance, then the added columns (see `metadata`). first_offset,
    last_offset: those of the first and the last row; offsets: those of each, not decreasing, because tombstones,
    transactions and compaction leave gaps, and the rows of an exploded record share theirs. records: how many
    different offsets; all rows of a record are in one run. incompatible: the topic's schema started anew with this run,
    so its rows cannot share a file with those before. Without it, columns may have been added, or widened from int64 to
    float64, since the run before.
    """

    rows: pa.Table
    records: int
    first_offset: int
    last_offset: int
    incompatible: bool
    offsets: pa.Int64Array

    def parts(self, most: int) -> Iterator["Run"]:
        """The run in pieces of at most `most` Kafka records, in order, no record parted; nothing is copied."""
        if self.records <= most:
            yield self
            return
        cuts = self._cuts(most)
        for index, (start, end) in enumerate(pairwise(cuts)):
            offsets, rows = self.offsets.slice(start, end - start), self.rows.slice(start, end - start)
            first, last = offsets[0].as_py(), offsets[-1].as_py()
            records = min(most, self.records - index * most)
            yield Run(rows, records, first, last, self.incompatible and not start, offsets)

    def _cuts(self, most: int) -> list[int]:
        """The rows with which pieces of `most` records begin, and how many rows there are."""
        if self.records == len(self.offsets):
            return [*range(0, self.records, most), self.records]
        begins = pc.add(pc.indices_nonzero(pc.not_equal(self.offsets[1:], self.offsets[:-1])), 1)
        return [0, *begins[most - 1 :: most].to_pylist(), len(self.offsets)]


class Records:
    """The records of a batch that have a value, or all with tombstones=True. Positions count these.

    deleted: by position, which are tombstones that have rows; None where no tombstone has one.
    """

    def __init__(self, batch: RecordBatch, *, tombstones: bool = False, deleted: pa.BooleanArray | None = None) -> None:
        self._batch, self.partition, self.deleted = batch, batch.partition, deleted
        self._places: pa.UInt64Array | None = None
        """Where in the batch its records are; None: where they are here."""
        self.offsets, self.timestamps, self.values = batch.offsets, batch.timestamps, batch.values
        if not tombstones and batch.values.null_count:
            valid = batch.values.is_valid()
            self._places = pc.indices_nonzero(valid)
            self.offsets, self.timestamps, self.values = (one.filter(valid) for one in self._columns)

    def __len__(self) -> int:
        return len(self.offsets)

    def rejected(self, index: int, stage: Stage, reason: str, by: str = "") -> Rejected:
        """One record as a rejected one."""
        batch, place = self._batch, index if self._places is None else self._places[index].as_py()
        offset, timestamp_ms, value = (one[index].as_py() for one in self._columns)
        key, headers = batch.key_of(place), batch.headers_of(place)
        kind = batch.timestamp_type_of(place)
        return Rejected(
            topic=batch.topic,
            partition=batch.partition,
            offset=offset,
            stage=stage,
            reason=reason,
            key=key,
            value=value,
            headers=headers,
            timestamp_ms=timestamp_ms,
            timestamp_type=kind,
            by=by,
        )

    @property
    def _columns(self) -> tuple[pa.Int64Array, pa.Int64Array, pa.BinaryArray]:
        return self.offsets, self.timestamps, self.values


def to_run(
    settings: ShapeSettings,
    records: Records,
    positions: pa.Int64Array,
    payload: Sequence[pa.Field],
    arrays: Sequence[pa.Array],
    incompatible: bool,
) -> Run:
    """A run with the added columns. positions: for each row that of its record among `records`, not decreasing."""
    offsets, timestamps = _of(records.offsets, positions), _of(records.timestamps, positions)
    deleted = None if records.deleted is None else _of(records.deleted, positions)
    added = metadata.arrays(settings, records.partition, offsets, timestamps, deleted)
    schema = pa.schema([*payload, *metadata.fields(settings)])
    rows = pa.Table.from_arrays([*arrays, *added], schema=schema)
    first, last = offsets[0].as_py(), offsets[len(offsets) - 1].as_py()
    several = last - first < len(offsets) - 1 or pc.any(pc.equal(offsets[1:], offsets[:-1])).as_py()
    count = pc.count_distinct(offsets).as_py() if several else len(offsets)
    return Run(rows, count, first, last, incompatible, offsets)


def _of(values: pa.Array, positions: pa.Int64Array) -> pa.Array:
    """The values at these positions; a slice where those are contiguous."""
    first, last = positions[0].as_py(), positions[len(positions) - 1].as_py()
    if last - first == len(positions) - 1 and not pc.any(pc.equal(positions[1:], positions[:-1])).as_py():
        return values.slice(first, len(positions))
    return values.take(positions)
