"""Samples to Parquet files, by the parts that a connector uses."""

from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa

from integration.readers.samples import Sample
from parquet_sink.convert.decoded import Decoded, SchemaColumns
from parquet_sink.files.accumulator import Accumulator, Place
from parquet_sink.files.rotation import Limits, Reason
from parquet_sink.files.settings import FileSettings
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from tests.factories import accepted

PARTITION: Final = 3
_LIMITS: Final = Limits(10**9, 10**9)
_BLOCKS: Final = 3


class _Given:
    """A decoder for which a record's bytes are its number."""

    def __init__(self, rows: pa.Array) -> None:
        self._rows = rows

    def decode(self, values: pa.BinaryArray) -> Decoded:
        first = int(values[0].as_py())
        return Decoded((SchemaColumns(pa.array(range(len(values)), pa.int64()), self._rows.slice(first, len(values))),))


def write(sample: Sample, folder: Path) -> str:
    """The path of the one file of a sample, whose records come in up to three blocks."""
    decoder = _Given(pa.array(sample.rows, sample.schema))
    settings = FileSettings(str(folder), codec=sample.codec, row_group_size_bytes=sample.group_bytes)
    place = Place("readers", f"topic-{sample.number}", PARTITION, f"{sample.number:032x}")
    accumulator, shaper = Accumulator(place, _LIMITS, settings), RowBuilder(sample.settings, None, decoder)
    for block in _blocks(sample):
        for run in accepted(shaper, block):
            assert accumulator.add(run) == []
    file = accumulator.finish(Reason.STOP)
    assert file is not None
    assert file.rows == len(sample.rows)
    return file.path


def _blocks(sample: Sample) -> list[RecordBatch]:
    values = [str(number).encode() for number in range(len(sample.rows))]
    cuts = sorted({len(values) * part // _BLOCKS for part in range(_BLOCKS + 1)})
    return [
        RecordBatch.of("t", PARTITION, sample.offsets[a:b], sample.timestamps[a:b], values[a:b])
        for a, b in pairwise(cuts)
    ]
