"""The stages of the hot path one by one, in this process: where the time of a record goes.

Each stage is the package's own function on the same records. CPU time of all threads of this process per record, the
least of some rounds after one that is thrown away: what the stage itself costs, caches warm. The sum is less than the
whole program takes, which also plans micro-batches, and reads and writes at the same time.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import Consumer  # noqa: F401 - imported before the clock runs

from integration.bench import figures, load
from integration.bench.parts import Stand, Work, report
from integration.bench.running import connector_file
from parquet_sink.connectors.check import check_files
from parquet_sink.convert.decoded import LearningDecoder
from parquet_sink.files.accumulator import Accumulator, FinishedFile, Place
from parquet_sink.files.parquet import sha256_of
from parquet_sink.files.rotation import Limits, Reason
from parquet_sink.files.storage import prepare
from parquet_sink.kafka.range_reader import RangeReader
from parquet_sink.model.records import Header, RecordBatch
from parquet_sink.process.memory import collect_garbage_rarely
from parquet_sink.rows.run import Run
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.settings import Target
from parquet_sink.task.record_steps import RecordSteps, StopAtRejected, steps_for

ROUNDS: Final = 4
SEND_S: Final = 60.0
SHAPED: Final = "JSON or decoded records to columns, flattened, with metadata"
KEPT: Final = "records to raw rows"
DECODED: Final = "decode records"
WRITTEN: Final = "write and verify Parquet"
DIGEST: Final = "digest of files"


def run(stand: Stand, work: Work) -> dict[str, Any]:
    """Prints the table; the same figures for JSON, µs per record."""
    count = min(stand.sizes.stage_records, work.records)
    name = f"{work.name}-stages"
    with stand.part_folder(name) as folder, stand.topic(name, 1) as topic:
        load.fill(stand.servers, topic, 1, count, work.values, work.record)
        path = connector_file(folder, topic, topic, stand.target.endpoint(), stand.flush, work.keys)
        (settings,) = check_files([str(path)], None, bootstrap_servers=stand.servers).require()
        found = _measure(settings, topic, count, folder)
    report(f"\nstages in one process, {count:,} records, µs CPU per record (least of {ROUNDS - 1} rounds)")
    report(figures.table(["stage", "µs"], [[stage, f"{us:.2f}"] for stage, us in found.items()]))
    report(f"  sum {sum(found.values()):.2f}\n")
    return {stage: round(us, 3) for stage, us in found.items()}


def _measure(settings: SinkSettings, topic: str, count: int, folder: Path) -> dict[str, float]:
    collect_garbage_rarely()  # as a Spark task does
    found: dict[str, float] = {}

    def timed(stage: str, work: Callable[[], Any]) -> Any:
        result: Any = None
        times = []
        for _ in range(ROUNDS):
            result = None  # what the round before made is freed outside the clock
            began = time.process_time()
            result = work()
            times.append(time.process_time() - began)
        found[stage] = 1e6 * min(times[1:]) / count
        return result

    blocks: list[RecordBatch] = timed("read: consume, and build blocks", lambda: _read(settings, topic, count))
    values = [block.values.to_pylist() for block in blocks]
    offsets = [block.offsets.to_pylist() for block in blocks]
    stamps = [block.timestamps.to_pylist() for block in blocks]
    build = "of which building blocks from lists"
    keys = [None if block.keys is None else block.keys.to_pylist() for block in blocks]
    headers = [_headers(block) for block in blocks]
    kinds = [None if block.timestamp_types is None else block.timestamp_types.to_pylist() for block in blocks]
    columns = list(zip(offsets, stamps, values, keys, headers, kinds, strict=True))
    timed(build, lambda: [RecordBatch.of(topic, 0, *lists, timestamp_types=kinds) for *lists, kinds in columns])
    known = _learned(settings, blocks)
    runs: list[Run] = timed(KEPT if settings.shape.raw else SHAPED, lambda: _shape(settings, known, blocks))
    decoder = _steps(settings).decoder
    if decoder is not None and not isinstance(decoder, LearningDecoder):  # such a one reads quickly in a shaper alone
        timed(DECODED, lambda: [decoder.decode(block.values) for block in blocks])
    files: list[FinishedFile] = timed(WRITTEN, lambda: _write(settings, topic, runs))
    timed(DIGEST, lambda: [sha256_of(file.path) for file in files])
    target = settings.target.open()
    timed("read and send files", lambda: _send(target, files))
    target.close()
    return _without_overlap(found, build)


def _without_overlap(found: dict[str, float], build: str) -> dict[str, float]:
    """Stages that add up: what one measured stage holds of another is taken out."""
    read = "read: consume, and build blocks"
    out = dict(found)
    out[read] -= out[build]
    out[WRITTEN] -= out[DIGEST]
    if DECODED in out:
        out[SHAPED] -= out[DECODED]
    names = {read: "consume records", build: "build blocks"}
    return {names.get(stage, stage): max(us, 0.0) for stage, us in out.items()}


def _steps(settings: SinkSettings) -> RecordSteps:
    return steps_for(settings, StopAtRejected())


def _read(settings: SinkSettings, topic: str, count: int) -> list[RecordBatch]:
    parts = _steps(settings).needs
    return list(RangeReader(settings.kafka, topic, 0, 0, count, parts=parts).batches())


def _headers(block: RecordBatch) -> list[tuple[Header, ...]] | None:
    if block.headers is None:
        return None
    return [tuple((one["key"], one["value"]) for one in found or ()) for found in block.headers.to_pylist()]


def _learned(settings: SinkSettings, blocks: list[RecordBatch]) -> pa.Schema | None:
    """What a first micro-batch teaches the next."""
    shaper = _steps(settings).shaper(settings.shape)
    for block in blocks[:1]:
        list(shaper.shape(block))
    return shaper.known


def _shape(settings: SinkSettings, known: pa.Schema | None, blocks: list[RecordBatch]) -> list[Run]:
    shaper = _steps(settings).shaper(settings.shape, known)
    return [one for block in blocks for one in shaper.shape(block) if isinstance(one, Run)]


def _write(settings: SinkSettings, topic: str, runs: list[Run]) -> list[FinishedFile]:
    prepare(settings.files.tmp_dir)
    place = Place(settings.name, topic, 0, f"{time.time_ns():032x}")
    limits = Limits(settings.flush.commit_size_bytes, settings.flush.commit_records)
    accumulator = Accumulator(place, limits, settings.files)
    files = [file for one in runs for file in accumulator.add(one)]
    last = accumulator.finish(Reason.END_OF_RANGE)
    return files if last is None else [*files, last]


def _send(target: Target, files: list[FinishedFile]) -> None:
    for file in files:
        outcome = target.push(replace(file, name=f"{time.time_ns()}.parquet"), SEND_S)
        assert outcome.status == 200, outcome
