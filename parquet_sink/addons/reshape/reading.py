"""Local raw files: what each holds, and its records in offset order, each once, in the blocks of Kafka's reader."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from parquet_sink.addons.reshape.spans import RawFile
from parquet_sink.errors import StorageFailed
from parquet_sink.model.records import NO_TIMESTAMP, RecordBatch
from parquet_sink.rows.raw import RAW
from parquet_sink.rows.settings import RAW_IDENTITY

_KIND: Final = "timestamp_type"
BLOCK_RECORDS: Final = 10_000
BLOCK_BYTES: Final = 4 << 20
"""Of keys and values in a block, unless a single record has more."""


class NotRaw(Exception):
    """A file that has no records as they came; the text says why."""


def look(path: str) -> RawFile | None:
    """What a file holds, None for nothing. Reads where its records come from, all of them. Raises NotRaw."""
    try:
        with pq.ParquetFile(path) as file:
            _check_schema(file.schema_arrow)
            places = file.read(columns=list(RAW_IDENTITY))
    except OSError as error:
        raise NotRaw(f"it cannot be read: {error.strerror or error}") from None
    except pa.ArrowException as error:
        raise NotRaw(f"it is not a whole Parquet file: {str(error).splitlines()[0]}") from None
    return _described(path, places) if places.num_rows else None


def _check_schema(schema: pa.Schema) -> None:
    missing = [name for name in RAW.names if name not in schema.names]
    if missing:
        raise NotRaw(f"it has no column {missing[0]}, so it was not written with connect.ems.mode=raw")
    for field in RAW:
        if not schema.field(field.name).type.equals(field.type):
            raise NotRaw(f"its column {field.name} is {schema.field(field.name).type}, and not {field.type}")


def _described(path: str, places: pa.Table) -> RawFile:
    if any(places.column(name).null_count for name in RAW_IDENTITY):
        raise NotRaw("it has a record of which topic, partition or offset is null")
    topics, partitions = (pc.unique(places.column(name)).to_pylist() for name in ("topic", "partition"))
    if len(topics) > 1 or len(partitions) > 1:
        raise NotRaw("it has records of several topic-partitions")
    offsets = places.column("offset").to_numpy()
    if offsets[0] < 0 or not np.all(offsets[1:] > offsets[:-1]):
        raise NotRaw("its offsets do not rise from record to record")
    return RawFile(path, topics[0], partitions[0], int(offsets[0]), int(offsets[-1]), len(offsets))


def tables(file: RawFile) -> Iterator[pa.Table]:
    """All records of a file, of type RAW, a row group at a time. Raises StorageFailed."""
    rows = 0
    try:
        with pq.ParquetFile(file.path) as opened:
            for number in range(opened.num_row_groups):
                table = opened.read_row_group(number, columns=RAW.names).select(RAW.names).cast(RAW)
                rows += table.num_rows
                yield table
    except (OSError, pa.ArrowException) as error:
        why = str(error).splitlines()[0]
        raise StorageFailed(f"File {file.path} cannot be read to its end ({why}); bring a whole one.") from None
    if rows != file.rows:
        raise StorageFailed(f"File {file.path} was changed while it was read; nothing of its range is finished.")


class _Cursor:
    """The records of one file from some offset on. table: those at hand, None at the end."""

    def __init__(self, name: str, tables: Iterator[pa.Table]) -> None:
        self.name, self._tables = name, tables
        self.table: pa.Table | None = None
        self._next()

    @property
    def offsets(self) -> np.ndarray:
        assert self.table is not None
        return np.asarray(self.table.column("offset"))

    def take(self, rows: int) -> pa.Table:
        """The next so many, which are at hand."""
        assert self.table is not None
        taken, self.table = self.table.slice(0, rows), self.table.slice(rows)
        self._next()
        return taken

    def _next(self) -> None:
        while self.table is None or not self.table.num_rows:
            self.table = next(self._tables, None)
            if self.table is None:
                return


def merged(files: Sequence[tuple[str, Iterator[pa.Table]]]) -> Iterator[pa.Table]:
    """Tables of type RAW. files: name, for messages, and records in offset order.

    Raises StorageFailed where two files have different records at an offset.
    """
    cursors = [_Cursor(*file) for file in files]
    while cursors := [one for one in cursors if one.table is not None]:
        chosen = min(cursors, key=lambda one: int(one.offsets[0]))
        others = [one for one in cursors if one is not chosen]
        end = min((_limit(chosen.offsets, other.offsets) for other in others), default=None)
        own = chosen.offsets
        taken = chosen.take(len(own) if end is None else int(np.searchsorted(own, end)))
        for other in others:
            taken = _skip(taken, chosen.name, other)
        yield taken


def _limit(own: np.ndarray, other: np.ndarray) -> int:
    """The first offset that the other may have and we have not; both begin at hand, ours not later."""
    alien = other[~np.isin(other, own)]
    return int(alien[0]) if len(alien) else int(other[-1]) + 1


def _skip(taken: pa.Table, name: str, other: _Cursor) -> pa.Table:
    """Skip in another file what was taken. Return that with the kinds of timestamps that only the other file has."""
    offsets = taken.column("offset").to_numpy()
    again = int(np.searchsorted(other.offsets, offsets[-1], side="right"))
    if not again:
        return taken
    shared = other.take(again)
    places = np.searchsorted(offsets, shared.column("offset").to_numpy())
    mine = taken.take(pa.array(places))
    kinds, others = mine.column(_KIND), shared.column(_KIND)
    known = pc.coalesce(kinds, others)
    if not (_without_kinds(mine).equals(_without_kinds(shared)) and known.equals(pc.coalesce(others, kinds))):
        at = shared.column("offset")[0]
        raise StorageFailed(
            f"Files {name} and {other.name} have different records of one topic-partition at the same offsets, from "
            f"{at} on: the topic was deleted and created again between them. Reshape them separately, each into a "
            "folder of its own."
        )
    if not kinds.null_count:
        return taken
    mask = np.zeros(len(offsets), dtype=bool)
    mask[places] = True
    filled = pc.replace_with_mask(taken.column(_KIND).combine_chunks(), mask, known.combine_chunks())
    return taken.set_column(RAW.get_field_index(_KIND), RAW.field(_KIND), filled)


def _without_kinds(table: pa.Table) -> pa.Table:
    """Return the records as they are when they were parked and sent again: without kinds, and 0 is no timestamp."""
    stamps = pc.fill_null(table.column("timestamp"), 0)
    return table.drop_columns([_KIND]).set_column(RAW.get_field_index("timestamp"), "timestamp", stamps)


def blocks(tables: Iterable[pa.Table]) -> Iterator[RecordBatch]:
    """The rows of tables of type RAW, all of one topic-partition, in blocks that end at the same records always."""
    waiting: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        sizes, begin = _sizes(table), 0
        while begin < table.num_rows:
            end = _end(sizes, begin, BLOCK_RECORDS - rows, BLOCK_BYTES - size, empty=not rows)
            if end > begin:
                waiting.append(table.slice(begin, end - begin))
                rows, size, begin = rows + end - begin, size + int(sizes[begin:end].sum()), end
            if begin < table.num_rows:
                yield _block(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield _block(waiting)


def _end(sizes: np.ndarray, begin: int, records: int, room: int, *, empty: bool) -> int:
    """Up to which row a block takes rows. empty: whether it has none yet; then it takes one, however large."""
    fitting = int(np.searchsorted(np.cumsum(sizes[begin : begin + records]), room, side="right"))
    return begin + max(fitting, int(empty))


def _sizes(table: pa.Table) -> np.ndarray:
    lengths = [pc.fill_null(pc.binary_length(table.column(name)), 0).to_numpy() for name in ("key", "value")]
    return np.asarray(np.add(*lengths, dtype=np.int64))


def _block(tables: list[pa.Table]) -> RecordBatch:
    (rows,) = pa.concat_tables(tables).combine_chunks().to_batches()
    kinds = pc.fill_null(rows.column("timestamp_type"), NO_TIMESTAMP)
    return RecordBatch(
        topic=rows.column("topic")[0].as_py(),
        partition=rows.column("partition")[0].as_py(),
        offsets=rows.column("offset"),
        timestamps=pc.fill_null(rows.column("timestamp"), 0),
        values=rows.column("value"),
        keys=rows.column("key"),
        headers=rows.column("headers"),
        timestamp_types=kinds,
    )
