"""Finds and reads parked records: the files of a folder, what a selection means, batches, counts by reason."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.model.records import HEADERS, RecordBatch, Unread
from parquet_sink.model.rejected import INSTEAD_OF_VALUE, VALUE_NOT_KEPT
from parquet_sink.parked.files import ParkedFile, inspect
from parquet_sink.parked.locks import CHANGES, REPLAY
from parquet_sink.parked.names import is_unfinished, number_in
from parquet_sink.process.lru_cache import LruCache

MARKER: Final = ".parquet-sink-parked"
_OURS: Final = frozenset({MARKER, CHANGES, REPLAY})
_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
_FILE_NAME: Final = re.compile(r"(?:file )?(?:topic|connector)-\S{1,400}?_rows-\d+\.parquet")
"""Bounded, because a text may have very many that begin so; a topic's name has at most 249 characters."""
_COLUMNS: Final = ("offset", "timestamp", "key", "value", "stage", "reason", "parked_at")
BATCH_RECORDS: Final = 10_000
OPEN_FILES: Final = 4


@dataclass(frozen=True)
class Selection:
    """None: whichever. offsets: the first and the last."""

    topic: str | None = None
    partition: int | None = None
    offsets: tuple[int, int] | None = None
    stage: str | None = None

    def may_have(self, file: ParkedFile) -> bool:
        """Whether records of the file may be among them."""
        if (self.topic or file.topic, file.partition if self.partition is None else self.partition) != (
            file.topic,
            file.partition,
        ):
            return False
        first, last = self.offsets or (file.first_offset, file.last_offset)
        return first <= file.last_offset and last >= file.first_offset

    def rows(self, table: pa.Table) -> np.ndarray:
        """The rows of a file's records that are among them, in order; offset and stage are looked at."""
        offsets = table.column("offset").to_numpy()
        chosen = np.ones(len(offsets), np.bool_)
        if self.offsets is not None:
            chosen &= (offsets >= self.offsets[0]) & (offsets <= self.offsets[1])
        if self.stage is not None:
            chosen &= np.array([stage == self.stage for stage in table.column("stage").to_pylist()], np.bool_)
        return np.flatnonzero(chosen)


@dataclass(frozen=True)
class Scan:
    """files: by topic, topic-partition and number. skipped: path and why, of all else; it is left as it is."""

    files: tuple[ParkedFile, ...]
    skipped: tuple[tuple[str, str], ...]

    @property
    def rows(self) -> int:
        """Records in the files."""
        return sum(one.rows for one in self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes on the disk."""
        return sum(one.size_bytes for one in self.files)


def scan(folder: str) -> Scan:
    """All that is there; nothing, where there is no folder. Raises OSError when it cannot be listed."""
    files: list[ParkedFile] = []
    skipped: list[tuple[str, str]] = []
    for entry in _entries(folder):
        if entry.name in _OURS:
            continue
        if not entry.is_dir(follow_symlinks=False):
            skipped.append((entry.path, "it is not one of ours"))
            continue
        for below in _entries(entry.path):
            if not below.is_dir(follow_symlinks=False):
                skipped.append((below.path, "it is not one of ours"))
                continue
            found, others = scan_partition(below.path)
            files += found
            skipped += others
    return Scan(tuple(sorted(files, key=_order)), tuple(skipped))


def scan_partition(folder: str) -> tuple[list[ParkedFile], list[tuple[str, str]]]:
    """The files of one topic-partition in order of their numbers, and what else is there."""
    files: list[ParkedFile] = []
    skipped: list[tuple[str, str]] = []
    for entry in _entries(folder):
        if is_unfinished(entry.name):
            continue
        if number_in(entry.name) is None or not entry.is_file(follow_symlinks=False):
            skipped.append((entry.path, "it is not one of ours"))
            continue
        with suppress(FileNotFoundError):  # it was emptied meanwhile
            found = inspect(entry.path)
            if isinstance(found, str):
                skipped.append((entry.path, found))
            else:
                files.append(found)
    return sorted(files, key=_order), skipped


def used_bytes(folder: str) -> int:
    """Bytes of all files on the disk that have the name of parked ones, torn ones included."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            if number_in(name) is not None:
                with suppress(FileNotFoundError):
                    total += os.stat(os.path.join(path, name)).st_size
    return total


def _order(file: ParkedFile) -> tuple[str, int, int]:
    return file.topic, file.partition, number_in(os.path.basename(file.path)) or 0


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    yield from found


@dataclass
class Group:
    """Records of one topic that have stage and reason in common.

    payload_bytes: of keys and values. offsets: first and last of each topic-partition. timestamps: the first and the
    last of the records', None where none has one; parked_at: likewise.
    """

    topic: str
    stage: str
    reason: str
    records: int = 0
    payload_bytes: int = 0
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    timestamps: tuple[datetime, datetime] | None = None
    parked_at: tuple[datetime, datetime] | None = None

    def add(self, partition: int, found: dict[str, object]) -> None:
        """Adds what one file has of it."""
        count, size, first, last = (
            int(str(found[name] or 0)) for name in ("offset_count", "bytes_sum", "offset_min", "offset_max")
        )
        one = Group(self.topic, self.stage, self.reason, count, size, {partition: (first, last)})
        one.timestamps = _span(None, found["timestamp_min"], found["timestamp_max"])
        one.parked_at = _span(None, found["parked_at_min"], found["parked_at_max"])
        self.join(one)

    def join(self, other: "Group") -> None:
        """Adds another group's records."""
        self.records += other.records
        self.payload_bytes += other.payload_bytes
        for partition, (first, last) in other.offsets.items():
            before = self.offsets.get(partition, (first, last))
            self.offsets[partition] = (min(before[0], first), max(before[1], last))
        self.timestamps = _span(self.timestamps, *(other.timestamps or (None, None)))
        self.parked_at = _span(self.parked_at, *(other.parked_at or (None, None)))


def summarise(files: Iterable[ParkedFile], selection: Selection) -> list[Group]:
    """All chosen records, the most frequent groups of each topic first. Raises OSError or pa.ArrowException."""
    groups: dict[tuple[str, str, str], Group] = {}
    for file in files:
        table = file.read(_COLUMNS)
        table = table.take(pa.array(selection.rows(table), pa.int64()))
        for found in _by_reason(table).to_pylist():
            key = (file.topic, found["stage"], answer_of(found["reason"]))
            groups.setdefault(key, Group(*key)).add(file.partition, found)
    return sorted(groups.values(), key=lambda one: (one.topic, -one.records, one.stage, one.reason))


def answer_of(reason: str) -> str:
    """A reason without names of files: a target that refuses many files for one thing gives one reason."""
    return _FILE_NAME.sub("a file", reason)


def with_years_of_python(table: pa.Table) -> pa.Table:
    """Records' times before the year 1 and after 9999, for which Python has no dates, as the first and the last."""
    at = table.schema.get_field_index("timestamp")
    field = table.schema.field(at)
    first, last = (pa.scalar(one, field.type).cast(pa.int64()) for one in (datetime.min.replace(tzinfo=UTC), _LAST))
    before_last = pc.min_element_wise(table.column(at).cast(pa.int64()), last, skip_nulls=False)
    within = pc.max_element_wise(before_last, first, skip_nulls=False).cast(field.type)
    return table.set_column(at, field, within)


def _by_reason(table: pa.Table) -> pa.Table:
    sizes = [pc.fill_null(pc.binary_length(table.column(name)), 0) for name in ("key", "value")]
    table = with_years_of_python(table.select(["offset", "timestamp", "stage", "reason", "parked_at"]))
    table = table.append_column("bytes", pc.add(*(size.cast(pa.int64()) for size in sizes)))
    wanted = [("offset", "count"), ("bytes", "sum")]
    wanted += [(name, how) for name in ("offset", "timestamp", "parked_at") for how in ("min", "max")]
    return table.group_by(["stage", "reason"]).aggregate(wanted)


def _span(before: tuple[datetime, datetime] | None, first: object, last: object) -> tuple[datetime, datetime] | None:
    if not isinstance(first, datetime) or not isinstance(last, datetime):
        return before
    first, last = first.astimezone(UTC), last.astimezone(UTC)
    return (first, last) if before is None else (min(before[0], first), max(before[1], last))


@dataclass(frozen=True)
class Layer:
    """Records of one topic-partition, no two at one offset: where each is, in order of offsets.

    files, rows: the place of each record, as an index of the files and a row of that file.
    """

    offsets: np.ndarray
    files: np.ndarray
    rows: np.ndarray


class ParkedPartition:
    """The chosen records of one topic-partition, in files that may grow at their ends but not change otherwise."""

    def __init__(self, files: Sequence[ParkedFile], selection: Selection) -> None:
        """files: of one topic-partition, in order. Raises OSError or pa.ArrowException."""
        self.files = tuple(files)
        self.topic, self.partition = files[0].topic, files[0].partition
        self._tables: LruCache[int, pa.Table] = LruCache(OPEN_FILES)
        self.layers = tuple(self._layers(selection))

    def __len__(self) -> int:
        return sum(len(layer.offsets) for layer in self.layers)

    def _layers(self, selection: Selection) -> Iterator[Layer]:
        """One, unless several records are at one offset, of topics that were recreated: those parked later follow."""
        offsets, files, rows = [], [], []
        for index, file in enumerate(self.files):
            table = file.read(["offset", "stage"])
            chosen = selection.rows(table)
            offsets.append(table.column("offset").to_numpy()[chosen])
            files.append(np.full(len(chosen), index))
            rows.append(chosen)
        found = Layer(np.concatenate(offsets), np.concatenate(files), np.concatenate(rows))
        left = np.argsort(found.offsets, kind="stable")
        while len(left):
            ordered = found.offsets[left]
            first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
            now = left[first]
            yield Layer(found.offsets[now], found.files[now], found.rows[now])
            left = left[~first]

    def batches(self, layer: Layer, start: int, end: int) -> Iterator[RecordBatch]:
        """The records of a layer from offset `start` to before `end`. Raises OSError or pa.ArrowException."""
        first, last = np.searchsorted(layer.offsets, [start, end])
        changes = np.flatnonzero(np.diff(layer.files[first:last])) + 1 + first
        for begin, stop in pairwise([first, *changes.tolist(), last]):
            for at in range(begin, stop, BATCH_RECORDS):
                yield from split_unread(
                    self._batch(int(layer.files[at]), layer.rows[at : min(at + BATCH_RECORDS, stop)])
                )

    def _batch(self, file: int, rows: np.ndarray) -> RecordBatch:
        table = self._table(file).take(pa.array(rows)).combine_chunks()
        columns = {name: _only(table.column(name)) for name in ("offset", "timestamp", "value", "key", "headers")}
        return RecordBatch(
            topic=self.topic,
            partition=self.partition,
            offsets=columns["offset"],
            timestamps=columns["timestamp"].cast(pa.int64()).fill_null(0),
            values=columns["value"],
            keys=columns["key"],
            headers=columns["headers"].cast(HEADERS),
        )

    def _table(self, file: int) -> pa.Table:
        table = self._tables.get(file)
        if table is None:
            table = self.files[file].read()
            self._tables.put(file, table)
        return table


def split_unread(batch: RecordBatch) -> Iterator[RecordBatch]:
    """Yield the batch in parts, so that a record that was parked without its value is alone, and not a tombstone."""
    begin = 0
    for index in pc.indices_nonzero(pc.starts_with(batch.values, INSTEAD_OF_VALUE)).to_pylist():
        if note := dict(batch.headers_of(index) or ()).get(VALUE_NOT_KEPT):
            if begin < index:
                yield batch.slice(begin, index)
            offset = batch.offsets[index].as_py()
            unread = Unread(str(json.loads(note)["reason"]), offset + 1)
            yield replace(batch.slice(index, index + 1), unread=unread)
            begin = index + 1
    if begin < len(batch):
        yield batch.slice(begin, len(batch)) if begin else batch


def _only(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
