"""How large the Parquet files of a topic become, and what a record costs: by writing some of its records.

They take the connector's own way: decoder, transforms, shaping, local files. Nothing is sent.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.tune.model import Sizes
from parquet_sink.errors import NothingSampled, SetupError, StorageFailed
from parquet_sink.files.accumulator import Accumulator, FinishedFile, Place
from parquet_sink.files.rotation import Limits, Reason
from parquet_sink.files.settings import FileSettings
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.task.record_steps import RecordSteps

COUNTS: Final = (1, 10, 100, 1_000, 10_000, 100_000)
"""Records of the files that are written, and one of all that there are."""
NO_LIMIT: Final = 1 << 50


@dataclass(frozen=True)
class Measured:
    """Of one topic. cpu_record_us: CPU time of a record from its bytes to Parquet.

    records: how many were written. rejected: how many have no row, and why the first of them has none.
    """

    sizes: Sizes
    records: int
    cpu_record_us: float | None
    rejected: int = 0
    why: str = ""


@dataclass
class _Written:
    file: FinishedFile
    data_bytes: float
    schema: pa.Schema | None
    cpu_s: float
    rejected: int
    why: str


def measure(settings: SinkSettings, steps: RecordSteps, batches: Sequence[RecordBatch]) -> Measured | None:
    """What the files of these records of one topic are like; None where no record has a row.

    Raises ConnectorError where no record is to blame, SetupError where temporary files cannot be written.
    """
    total = sum(map(len, batches))
    try:
        with tempfile.TemporaryDirectory(prefix="parquet-sink-tune-") as folder:
            writer = _Writer(settings, steps, folder)
            whole = writer.write(batches)  # learns the columns, and loads what is loaded once
            if whole is None:
                return None
            again = writer.write(batches, whole)
            files = [again, *(writer.write(_first(batches, count), whole) for count in COUNTS if count < total)]
    except StorageFailed as error:
        raise SetupError(f"{error} Here it is the system's folder for temporary files (TMPDIR).") from None
    found = [one for one in files if one is not None]
    cost = None if again is None else again.cpu_s / total * 1e6
    sizes = Sizes(_points(found), sum(map(value_bytes, batches)) / total)
    return Measured(sizes, total, cost, whole.rejected, whole.why)


def value_bytes(batch: RecordBatch) -> int:
    """Of all values of a batch together."""
    return int(pc.sum(pc.binary_length(batch.values)).as_py() or 0)


def _points(files: Sequence[_Written]) -> tuple[tuple[int, float], ...]:
    """Records and bytes of files, rising in both; the first one is what a file has beside its rows."""
    least = min(files, key=lambda one: one.file.records)
    points = [(0, max(least.file.size_bytes - least.data_bytes, 1.0))]
    for records, size in sorted((one.file.records, float(one.file.size_bytes)) for one in files):
        if records > points[-1][0] and size > points[-1][1]:
            points.append((records, size))
    if len(points) == 1:
        raise NothingSampled("The files that were written for a sample are all alike; sample more records (--records).")
    return tuple(points)


class _Writer:
    """Writes files of samples, one range each."""

    def __init__(self, settings: SinkSettings, steps: RecordSteps, folder: str) -> None:
        self._settings, self._steps = settings, steps
        self._files: FileSettings = replace(settings.files, tmp_dir=folder, keep_files=False)
        self._number = 0

    def write(self, batches: Sequence[RecordBatch], known: _Written | None = None) -> _Written | None:
        """One file of all records; None where none has a row. known: what an earlier one taught."""
        self._number += 1
        place = Place("tune", batches[0].topic, 0, f"{self._number:032x}")
        per_row = None if known is None else known.data_bytes / known.file.rows
        limits = Limits(NO_LIMIT, NO_LIMIT)
        accumulator = Accumulator(place, limits, self._files, bytes_per_row=per_row)
        shaper = self._steps.shaper(self._settings.shape, None if known is None else known.schema)
        rejected, why, written, started = 0, "", [], time.process_time()
        for batch in renumbered(batches):
            for item in shaper.shape(batch, across_rejected=True):
                if isinstance(item, Rejected):
                    rejected, why = rejected + 1, why or f"{item.stage}: {item.reason}"
                else:
                    written += accumulator.add(item, None)
        last = accumulator.finish(Reason.END_OF_INPUT)
        cpu_s = time.process_time() - started
        files = [*written, *([] if last is None else [last])]
        if not files:
            return None
        file = max(files, key=lambda one: one.records)  # several where the schema changed in a way that parts files
        per_record = accumulator.bytes_per_record or 0.0
        return _Written(file, per_record * file.records, shaper.known, cpu_s, rejected, why)


def renumbered(batches: Sequence[RecordBatch]) -> Iterator[RecordBatch]:
    """The records as if they were those of one topic-partition from offset 0 on."""
    at = 0
    for batch in batches:
        offsets = pa.array(range(at, at + len(batch)), pa.int64())
        yield replace(batch, partition=0, offsets=offsets)
        at += len(batch)


def _first(batches: Sequence[RecordBatch], count: int) -> list[RecordBatch]:
    """The first so many records."""
    found = []
    for batch in batches:
        taken = min(len(batch), count)
        if not taken:
            break
        found.append(_cut(batch, taken))
        count -= taken
    return found


def _cut(batch: RecordBatch, count: int) -> RecordBatch:
    return replace(
        batch,
        offsets=batch.offsets[:count],
        timestamps=batch.timestamps[:count],
        values=batch.values[:count],
        keys=None if batch.keys is None else batch.keys[:count],
        headers=None if batch.headers is None else batch.headers[:count],
    )
