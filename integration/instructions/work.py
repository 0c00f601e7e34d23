"""One stage on the same records, so many times over: what `integration.instructions` counts the instructions of.

    python -m integration.instructions.work STAGE ROUNDS REGISTRY_URL FOLDER

Nothing is learned in the rounds: what a first micro-batch teaches comes before them.
"""

import sys
from pathlib import Path

import pyarrow as pa

from integration.bench.formats import FORMATS, REGISTRY_URL
from integration.bench.running import connector_file
from parquet_sink.connectors.check import check_files
from parquet_sink.files.accumulator import Accumulator, Place
from parquet_sink.files.rotation import Limits, Reason
from parquet_sink.files.storage import prepare, remove_unsent
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.run import Run
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.task.record_steps import StopAtRejected, steps_for

RECORDS = 2_000
"""Of one round, in one batch."""
WRITE = "write"
"""The stage that writes the rows of the first format; all others are formats, whose records become rows."""


def main(stage: str, rounds: int, registry_url: str, folder: Path) -> None:
    """Does the work."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    settings, batch = _settings("json" if stage == WRITE else stage, registry_url, folder)
    prepare(settings.files.tmp_dir)
    known, runs = _shaped(settings, None, batch)
    _, runs = _shaped(settings, known, batch)
    for turn in range(rounds):
        if stage == WRITE:
            _write(settings, runs, turn)
        else:
            _shaped(settings, known, batch)


def _settings(name: str, registry_url: str, folder: Path) -> tuple[SinkSettings, RecordBatch]:
    chosen = FORMATS[name]
    keys = {**chosen.keys, **({REGISTRY_URL: registry_url} if chosen.uses_registry else {})}
    flush = {"commit.records": 10 * RECORDS, "commit.size.bytes": 100_000_000, "commit.interval.ms": 60_000}
    path = connector_file(folder, name, "orders", "http://127.0.0.1:9/", flush, keys)
    (settings,) = check_files([str(path)], None, bootstrap_servers="127.0.0.1:9").require()
    assert isinstance(settings, SinkSettings)
    values = chosen.values(registry_url, RECORDS)
    return settings, RecordBatch.of("orders", 0, range(RECORDS), [1_700_000_000_000] * RECORDS, values)


def _shaped(settings: SinkSettings, known: pa.Schema | None, batch: RecordBatch) -> tuple[pa.Schema | None, list[Run]]:
    shaper = steps_for(settings, StopAtRejected()).shaper(settings.shape, known)
    runs = [one for one in shaper.shape(batch) if isinstance(one, Run)]
    assert sum(run.records for run in runs) == RECORDS
    return shaper.known, runs


def _write(settings: SinkSettings, runs: list[Run], turn: int) -> None:
    limits = Limits(settings.flush.commit_size_bytes, settings.flush.commit_records)
    accumulator = Accumulator(Place(settings.name, "orders", 0, f"{turn:032x}"), limits, settings.files)
    for one in runs:
        accumulator.add(one)
    file = accumulator.finish(Reason.END_OF_RANGE)
    assert file is not None
    assert file.records == RECORDS
    remove_unsent(file.path)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
