"""The rows of one block, gathered piece by piece into runs that each share one schema."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.model.records import RecordBatch
from parquet_sink.shape import metadata
from parquet_sink.shape.flatten.row_arrays import arrays_of
from parquet_sink.shape.schema.value_types import Row, ValueTypes, to_arrow, to_fields
from parquet_sink.shape.settings import ShapeSettings

_NULL = pa.scalar(b"null", pa.binary())


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


@dataclass(frozen=True)
class Records:
    """A block without its tombstones."""

    topic: str
    partition: int
    offsets: pa.Int64Array
    timestamps: pa.Int64Array
    values: pa.BinaryArray

    @classmethod
    def of(cls, block: RecordBatch) -> "Records":
        """The records of the block that have a value: no tombstones, nor JSON `null`, which Connect takes for one."""
        return cls._where(block, pc.fill_null(pc.not_equal(block.values, _NULL), fill_value=False))

    @classmethod
    def live(cls, block: RecordBatch) -> "Records":
        """The records of the block that have a value: no tombstones."""
        return cls._where(block, block.values.is_valid())

    @classmethod
    def _where(cls, block: RecordBatch, live: pa.BooleanArray) -> "Records":
        offsets, timestamps, values = block.offsets, block.timestamps, block.values
        if live.false_count:
            offsets, timestamps, values = offsets.filter(live), timestamps.filter(live), values.filter(live)
        return cls(block.topic, block.partition, offsets, timestamps, values)

    def __len__(self) -> int:
        return len(self.offsets)

    def offset(self, index: int) -> int:
        """The Kafka offset of one record."""
        offset: int = self.offsets[index].as_py()
        return offset


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
    added = metadata.arrays(settings, records.partition, offsets, timestamps)
    schema = pa.schema([*payload, *metadata.fields(settings)])
    rows = pa.Table.from_arrays([*arrays, *added], schema=schema)
    first, last = offsets[0].as_py(), offsets[len(offsets) - 1].as_py()
    several = last - first < len(offsets) - 1 or pc.any(pc.equal(offsets[1:], offsets[:-1])).as_py()
    count = pc.count_distinct(offsets).as_py() if several else len(offsets)
    return Run(rows, count, first, last, incompatible, offsets)


def _of(values: pa.Int64Array, positions: pa.Int64Array) -> pa.Int64Array:
    """The values at these positions; a slice where those are contiguous."""
    first, last = positions[0].as_py(), positions[len(positions) - 1].as_py()
    if last - first == len(positions) - 1 and not pc.any(pc.equal(positions[1:], positions[:-1])).as_py():
        return values.slice(first, len(positions))
    return values.take(positions)


class Assembly:
    """Takes the rows of `records` strictly in order; every row goes into exactly one run."""

    def __init__(self, records: Records, settings: ShapeSettings) -> None:
        self._records, self._settings = records, settings
        self._start = self._end = 0
        self._rows: list[Row] = []
        self._pieces: list[tuple[int, dict[str, pa.Array]]] = []
        self._incompatible = False
        self._finished: list[Run] = []

    def add_row(self, row: Row) -> None:
        """The next row, fit for its columns; columns that it lacks are null."""
        self._rows.append(row)
        self._end += 1

    def add_arrays(self, arrays: dict[str, pa.Array], count: int, value_types: ValueTypes) -> None:
        """The next `count` rows; columns that `arrays` lacks are null."""
        if count:
            self._flush(value_types)
            self._pieces.append((count, arrays))
            self._end += count

    def cut(self, value_types: ValueTypes, incompatible: bool) -> None:
        """End the run, whose columns have these types; incompatible: what the next run is."""
        self._flush(value_types)
        if self._pieces:
            self._finished.append(self._run(value_types))
        self._start, self._pieces, self._incompatible = self._end, [], incompatible

    def take(self) -> Iterator[Run]:
        """The runs that ended since the last call."""
        finished, self._finished = self._finished, []
        return iter(finished)

    def _flush(self, value_types: ValueTypes) -> None:
        """Buffered rows to a piece."""
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        names: set[str] = set().union(*rows)
        columns = [pa.field(name, to_arrow(value_types[name])) for name in names]
        arrays = dict(zip((column.name for column in columns), arrays_of(rows, columns), strict=True))
        self._pieces.append((len(rows), arrays))

    def _run(self, value_types: ValueTypes) -> Run:
        records, count = self._records, self._end - self._start
        payload = to_fields(value_types)
        offsets = records.offsets.slice(self._start, count)
        added = metadata.arrays(
            self._settings, records.partition, offsets, records.timestamps.slice(self._start, count)
        )
        schema = pa.schema([*payload, *metadata.fields(self._settings)])
        rows = pa.Table.from_arrays([*(self._column(field) for field in payload), *added], schema=schema)
        first, last = records.offset(self._start), records.offset(self._end - 1)
        return Run(rows, count, first, last, self._incompatible, offsets)

    def _column(self, field: pa.Field) -> pa.Array:
        chunks = [
            _conform(arrays[field.name], field.type) if field.name in arrays else pa.nulls(count, field.type)
            for count, arrays in self._pieces
        ]
        return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def _conform(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """The array with the struct fields that were added after it was made, as nulls."""
    if array.type == arrow:
        return array
    names = [array.type.field(index).name for index in range(array.type.num_fields)]
    found = dict(zip(names, array.flatten(), strict=True))
    fields = [arrow.field(index) for index in range(arrow.num_fields)]
    children = [
        _conform(found[field.name], field.type) if field.name in found else pa.nulls(len(array), field.type)
        for field in fields
    ]
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
