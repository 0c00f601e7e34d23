"""Parked records of one topic-partition in offset order, as batches that a pipeline takes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from parquet_sink.model.records import HEADERS, RecordBatch
from parquet_sink.parked.files import ParkedFile
from parquet_sink.parked.selection import Selection
from parquet_sink.process.lru_cache import LruCache

BATCH_RECORDS: Final = 10_000
OPEN_FILES: Final = 4


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
        """One, unless several records are at one offset, of topics that were made anew: those parked later follow."""
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
                yield self._batch(int(layer.files[at]), layer.rows[at : min(at + BATCH_RECORDS, stop)])

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


def _only(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
