"""`parquet-sink parked replay` and `drop`, of one connector: parked records are sent again, or leave for ever."""

import logging
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from parquet_sink.addons.commands.parked.reports import listing, warn_of_skipped
from parquet_sink.config.report import counted
from parquet_sink.files import naming
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.storage import prepare_connector, storage_trouble
from parquet_sink.history.records import Origin
from parquet_sink.model.ranges import LearnedSchema
from parquet_sink.parked.files import PARKING, ParkedFile
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.parked.listing import parked, scanned
from parquet_sink.parked.locks import replaying
from parquet_sink.parked.scan import Selection
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.state.sqlite import learned_of
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict
from parquet_sink.task.outcome import RangeOutcome, history_of, record_uploads, sender_of
from parquet_sink.task.replay import Replay, Replayed

PROGRESS_S: Final = 5.0
log = logging.getLogger(__name__)


def replay(settings: SinkSettings, selection: Selection, *, dry_run: bool) -> bool:
    """Whether nothing of what was chosen stays parked; what became of it is printed. Raises ConnectorError."""
    found = scanned(settings.parked_folder)
    warn_of_skipped(settings.name, found.skipped)
    if not any(map(selection.may_have, found.files)):
        print(f"connector {settings.name}: nothing to replay in {settings.parked_folder}")
        return True
    folder = ParkedFolder(settings.parked_folder, settings.name, settings.parked.max_bytes)
    with replaying(folder.path):
        return _replay(settings, folder, selection, dry_run=dry_run)


def _replay(settings: SinkSettings, folder: ParkedFolder, selection: Selection, *, dry_run: bool) -> bool:
    prepare_connector(settings.files.tmp_dir, settings.name)
    work = naming.replay_folder(settings.files.tmp_dir, settings.name)
    shutil.rmtree(work, ignore_errors=True)
    own = replace(settings, files=replace(settings.files, tmp_dir=work, keep_files=False))
    if dry_run:
        own = replace(own, target=DryTarget(settings.target.target_table))
    history, sender = history_of(settings), sender_of(settings, Origin.PARKED)

    def note(outcome: RangeOutcome) -> None:
        if not dry_run:
            record_uploads(history, sender, [outcome])

    sending = Replay(
        own, folder, _learned(settings), changes=not dry_run, progress=progress_lines(settings.name), on_outcome=note
    )
    accepted = stays = 0
    try:
        for one in sending.run(selection):
            print(_line(settings.name, one, dry_run=dry_run), flush=True)
            accepted, stays = accepted + one.accepted, stays + one.records - one.accepted
    finally:
        shutil.rmtree(work, ignore_errors=True)
    would = ("would be done with", "would stay") if dry_run else ("records done with", "stay")
    print(f"connector {settings.name}: {accepted:,} {would[0]}, {stays:,} {would[1]} parked")
    return not stays


def _line(connector: str, one: Replayed, *, dry_run: bool) -> str:
    would = "would be " if dry_run else ""
    untried = one.records - one.accepted - one.rejected
    parts = [
        f"{one.accepted:,} {would}accepted in {counted(one.files, 'file')}, or without a row",
        *([f"{one.rejected:,} {would}rejected again"] if one.rejected else []),
        *([f"{untried:,} not tried to the end: {one.failure.message}"] if one.failure is not None else []),
    ]
    return f"connector {connector}: topic {one.topic}, topic-partition {one.partition}: {'; '.join(parts)}"


def _learned(settings: SinkSettings) -> Mapping[str, LearnedSchema]:
    """What the connector learned of its topics, where it ran before."""
    return learned_of(Path(naming.connector_folder(settings.files.tmp_dir, settings.name), naming.STATE_FILE))


def progress_lines(
    connector: str, monotonic: Callable[[], float] = time.monotonic
) -> Callable[[str, int, int, int], None]:
    """Logs how many records of a topic-partition were read, every few seconds. monotonic: seconds that never jump."""
    last_s = monotonic()

    def record(topic: str, partition: int, done: int, of: int) -> None:
        nonlocal last_s
        if monotonic() - last_s >= PROGRESS_S:
            last_s = monotonic()
            text = "connector %s: topic %s, topic-partition %d: %d of %d parked records read"
            log.info(text, connector, topic, partition, done, of)

    return record


@dataclass(frozen=True)
class DryTarget:
    """Settings of a target that takes every file and keeps none."""

    target_table: str

    def open(self) -> "_Nowhere":
        return _Nowhere()


class _Nowhere:
    name = "nowhere"

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        return Outcome(Verdict.ACCEPTED, "not sent")

    def probe(self, seconds_left: float) -> ProbeResult:
        return ProbeResult(Health.OK, "nothing is sent")

    def close(self) -> None:
        pass


def drop(settings: SinkSettings, selection: Selection, *, sure: bool) -> bool:
    """Tells what was chosen, and removes it if that is sure. Whether nothing of it stays. Raises ConnectorError."""
    found = scanned(settings.parked_folder)
    listed = parked(settings.parked_folder, settings.parked.max_bytes, selection)
    for line in listing(settings.name, listed, as_json=False):
        print(line)
    files = [file for file in found.files if selection.may_have(file)]
    with storage_trouble(settings.parked_folder, "read parked records", PARKING):
        chosen = sum(len(selection.rows(file.read(["offset", "stage"]))) for file in files)
    if not chosen:
        return True
    if not sure:
        print(
            f"parquet-sink: connector {settings.name}: nothing is dropped. "
            f"{counted(chosen, 'record')} would be gone for good, but for what Kafka still has; give --yes.",
            file=sys.stderr,
        )
        return False
    folder = ParkedFolder(settings.parked_folder, settings.name, settings.parked.max_bytes)
    with replaying(folder.path):
        dropped = _drop(folder, files, selection)
    print(f"connector {settings.name}: {counted(dropped, 'record')} dropped")
    return True


def _drop(folder: ParkedFolder, files: Sequence[ParkedFile], selection: Selection) -> int:
    """How many. What was parked after the folder was looked through stays."""
    dropped: list[int] = []
    for file in files:
        folder.change(file, partial(_without, file, selection, dropped))
    return sum(dropped)


def _without(file: ParkedFile, selection: Selection, dropped: list[int], table: pa.Table) -> pa.Table:
    chosen = selection.rows(table)
    stays = np.ones(table.num_rows, np.bool_)
    stays[chosen[chosen < file.rows]] = False
    dropped.append(int(table.num_rows - stays.sum()))
    return table.filter(pa.array(stays))
