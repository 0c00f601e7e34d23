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

from parquet_sink.cli.parked.reports import listing, warn_of_skipped
from parquet_sink.files import naming
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.cleanup import prepare_connector
from parquet_sink.files.storage import storage_trouble
from parquet_sink.history.records import Origin
from parquet_sink.model.ranges import Known
from parquet_sink.parked.files import PARKING, ParkedFile
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.parked.locks import replaying
from parquet_sink.parked.scan import Selection, scan
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.state.sqlite.store import learned_of
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.outcome_events import history_of, record_uploads, sender_of
from parquet_sink.task.replay import Replay, Replayed

PROGRESS_S: Final = 5.0
log = logging.getLogger(__name__)


def replay(settings: SinkSettings, selection: Selection, *, dry_run: bool) -> bool:
    """Whether nothing of what was chosen stays parked; what became of it is printed. Raises ConnectorError."""
    with storage_trouble(settings.parked_folder, "list parked records", PARKING):
        found = scan(settings.parked_folder)
    warn_of_skipped(settings.name, found)
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
    progress = Progress(settings.name)
    history, sender = history_of(settings), sender_of(settings, Origin.PARKED)

    def note(outcome: RangeOutcome) -> None:
        if not dry_run:
            record_uploads(history, sender, [outcome])

    sending = Replay(own, folder, _learned(settings), changes=not dry_run, progress=progress.record, on_outcome=note)
    total = Totals()
    try:
        for one in sending.run(selection):
            print(_line(settings.name, one, dry_run=dry_run), flush=True)
            total.add(one)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(total.line(settings.name, dry_run=dry_run))
    return total.done


@dataclass
class Totals:
    """Of all topic-partitions."""

    accepted: int = 0
    stays: int = 0

    @property
    def done(self) -> bool:
        return not self.stays

    def add(self, one: Replayed) -> None:
        self.accepted += one.accepted
        self.stays += one.records - one.accepted

    def line(self, connector: str, *, dry_run: bool) -> str:
        """In words."""
        if dry_run:
            return f"connector {connector}: {self.accepted:,} would be done with, {self.stays:,} would stay parked"
        return f"connector {connector}: {self.accepted:,} records done with, {self.stays:,} stay parked"


def _line(connector: str, one: Replayed, *, dry_run: bool) -> str:
    would = "would be " if dry_run else ""
    untried = one.records - one.accepted - one.rejected
    parts = [
        f"{one.accepted:,} {would}accepted in {one.files:,} file{'' if one.files == 1 else 's'}, or without a row",
        *([f"{one.rejected:,} {would}rejected again"] if one.rejected else []),
        *([f"{untried:,} not tried to the end: {one.failure.message}"] if one.failure is not None else []),
    ]
    return f"connector {connector}: topic {one.topic}, topic-partition {one.partition}: {'; '.join(parts)}"


def _learned(settings: SinkSettings) -> Mapping[str, Known]:
    """What the connector learned of its topics, where it ran before."""
    return learned_of(Path(naming.connector_folder(settings.files.tmp_dir, settings.name), naming.STATE_FILE))


class Progress:
    """Log lines about long work, one every few seconds. monotonic: seconds that never jump."""

    def __init__(self, connector: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._connector, self._monotonic = connector, monotonic
        self._last_s = monotonic()

    def record(self, topic: str, partition: int, done: int, of: int) -> None:
        """So many records of a topic-partition were read."""
        if self._monotonic() - self._last_s >= PROGRESS_S:
            self._last_s = self._monotonic()
            log.info(
                "connector %s: topic %s, topic-partition %d: %d of %d parked records read",
                self._connector,
                topic,
                partition,
                done,
                of,
            )


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
    with storage_trouble(settings.parked_folder, "list parked records", PARKING):
        found = scan(settings.parked_folder)
    for line in listing(settings, selection, as_json=False):
        print(line)
    files = [file for file in found.files if selection.may_have(file)]
    with storage_trouble(settings.parked_folder, "read parked records", PARKING):
        chosen = sum(len(selection.rows(file.read(["offset", "stage"]))) for file in files)
    if not chosen:
        return True
    if not sure:
        print(
            f"parquet-sink: connector {settings.name}: nothing is dropped. {chosen:,} "
            f"record{'' if chosen == 1 else 's'} would be gone for good, but for what Kafka still has; give --yes.",
            file=sys.stderr,
        )
        return False
    folder = ParkedFolder(settings.parked_folder, settings.name, settings.parked.max_bytes)
    with replaying(folder.path):
        dropped = _drop(folder, files, selection)
    print(f"connector {settings.name}: {dropped:,} record{'' if dropped == 1 else 's'} dropped")
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
