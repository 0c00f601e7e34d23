"""Replays parked records through a connector's task, once the cause is repaired.

For each topic-partition that has some:

  1. its parked records are read in offset order                          (`parked.scan`)
  2. they take the way of records from Kafka: decoder, transforms,        (`task.task`)
     shape, files, names and target are the same, and so are their offsets
  3. those that were accepted, or have no row, are taken out of the       (`ParkedFolder.change`)
     parked files; those that were rejected again stay, with their new
     reason; all others stay as they are

A crash between 2 and 3 sends the same files again at the next replay. The connector may run meanwhile: local files are
made in a folder of their own, parked files are changed by one process at a time, and what the connector parks in the
meantime is behind what is replayed. Neither the group's offsets nor what was learned of topics is touched.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa

from parquet_sink.errors import StorageFailed, TopicUnusable
from parquet_sink.files.rotation import Reason
from parquet_sink.files.storage import TEMPORARY, storage_trouble
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.ranges import LearnedSchema, PlannedRange, Trying
from parquet_sink.model.receipts import Failure, Receipt
from parquet_sink.model.records import VALUES_ONLY, RecordBatch, RecordParts
from parquet_sink.model.rejected import Rejected
from parquet_sink.parked.files import PARKING, ParkedFile
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.parked.scan import Layer, ParkedPartition, Selection, scan
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.uploader import NOT_COMMITTED
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.record_steps import steps_for
from parquet_sink.task.task import TaskFlush

Flush = Callable[[Sequence[PlannedRange]], Sequence[RangeOutcome]]
STILL_PARKED = "What was not accepted is still parked."
Why = tuple[str, str]
"""Stage and reason of a rejection."""


def flush_to_the_end(
    flush: Flush,
    ranges: Sequence[PlannedRange],
    *,
    sleep: Callable[[float], None],
    monotonic: Callable[[], float],
) -> tuple[list[RangeOutcome], list[Receipt]]:
    """The last outcome of each range, and receipts of all attempts at them. flush: one attempt at some of them."""
    outcomes: dict[tuple[str, int], RangeOutcome] = {}
    receipts: list[Receipt] = []
    left = list(ranges)
    while left:
        began_s = monotonic()
        found = flush(left)
        took_s = monotonic() - began_s
        outcomes.update({(one.planned.topic, one.planned.partition): one for one in found})
        receipts += [receipt for one in found for receipt in one.receipts]
        again = [one for one in found if one.again is not None]
        wait_s = max((one.again.wait_s for one in again if one.again is not None), default=0.0)
        if again:
            sleep(wait_s)
        left = [_next_attempt(one, took_s, wait_s) for one in again]
    return [outcomes[one.topic, one.partition] for one in ranges], receipts


def _next_attempt(outcome: RangeOutcome, took_s: float, wait_s: float) -> PlannedRange:
    """Attempts at uploading count their own time; that of transforms counts from task to task."""
    planned = outcome.planned
    assert outcome.again is not None
    tries = outcome.again.tries
    timed = tries.trying is not Trying.TRANSFORM or planned.tries.trying is not Trying.TRANSFORM
    tries = replace(tries, elapsed_s=tries.elapsed_s + (0.0 if timed else took_s) + wait_s)
    return replace(planned, accepted=outcome.accepted_until, tries=tries)


@dataclass(frozen=True)
class Replayed:
    """What became of the chosen records of one topic-partition. failure: why the replay ended there.

    accepted: taken by the target, in so many files, or without a row now. rejected: again; they stay.
    """

    topic: str
    partition: int
    records: int
    accepted: int
    rejected: int
    files: int
    failure: Failure | None = None


@dataclass
class Fates:
    """What became of the records of one file, by their rows. out: done with. rejected: again, and why."""

    out: list[np.ndarray] = field(default_factory=list)
    rejected: dict[int, Why] = field(default_factory=dict)

    @property
    def accepted(self) -> int:
        return sum(map(len, self.out))

    def __bool__(self) -> bool:
        return bool(self.accepted or self.rejected)


class KeepRejected:
    """A `RejectPolicy` that notes why records are rejected, by offset; they are parked already."""

    diverts = True
    needs = VALUES_ONLY

    def __init__(self) -> None:
        self.found: dict[int, Why] = {}
        self._reasons: dict[Why, Why] = {}

    def decide(self, rejected: Rejected) -> None:
        why = (str(rejected.stage), rejected.reason)
        self.found[rejected.offset] = self._reasons.setdefault(why, why)

    def flush(self, planned: PlannedRange) -> None:
        """Nothing to wait for."""

    def close(self) -> None:
        """Nothing is open."""


class Replay:
    """Of one connector. settings: with the target to send to, and the folder for temporary files of the replay.

    folder: its parked records, which nobody else replays. known: what was learned of topics. changes: whether records
    that were accepted leave the folder. progress: called with how many records were read, of a topic-partition so far.
    on_outcome: called with what became of each attempt at a range.
    """

    def __init__(
        self,
        settings: SinkSettings,
        folder: ParkedFolder,
        known: Mapping[str, LearnedSchema],
        *,
        changes: bool = True,
        progress: Callable[[str, int, int, int], None] = lambda topic, partition, done, of: None,
        on_outcome: Callable[[RangeOutcome], None] = lambda outcome: None,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        errors = replace(settings.errors, refused_files=True)
        self._settings = replace(settings, errors=errors)
        self._folder, self._known, self._changes = folder, known, changes
        self._progress, self._sleep, self._monotonic = progress, sleep, monotonic
        self._on_outcome = on_outcome

    def run(self, selection: Selection) -> Iterator[Replayed]:
        """Topic-partition by topic-partition; after a failure nothing more. Raises StorageFailed."""
        with storage_trouble(self._folder.path, "read parked records", PARKING):
            files = [file for file in scan(self._folder.path).files if selection.may_have(file)]
        for _, group in groupby(files, key=lambda file: (file.topic, file.partition)):
            with storage_trouble(self._folder.path, "read parked records", PARKING):
                parked = ParkedPartition(list(group), selection)
            if not len(parked):
                continue
            found = self._partition(parked)
            yield found
            if found.failure is not None:
                return

    def _partition(self, parked: ParkedPartition) -> Replayed:
        total = Replayed(parked.topic, parked.partition, len(parked), 0, 0, 0)
        if (reason := self._settings.why_unusable(parked.topic)) is not None:
            return replace(total, failure=TopicUnusable(reason).failure())
        fates = [Fates() for _ in parked.files]
        for layer in parked.layers:
            policy = KeepRejected()
            outcome, files = self._send(parked, layer, policy)
            _decide(fates, layer, outcome.accepted_until, policy.found)
            total = replace(total, files=total.files + files)
            if outcome.failure is not None:
                total = replace(total, failure=_in_replay(outcome.failure))
                break
        if self._changes:
            for file, fate in zip(parked.files, fates, strict=True):
                if fate:
                    self._folder.change(file, partial(_without, file, fate))
        accepted, rejected = sum(fate.accepted for fate in fates), sum(len(fate.rejected) for fate in fates)
        return replace(total, accepted=accepted, rejected=rejected)

    def _send(self, parked: ParkedPartition, layer: Layer, policy: KeepRejected) -> tuple[RangeOutcome, int]:
        """Sends them as one range, and again what must be tried again, as the planner would have it."""
        read = self._reader(parked, layer)

        def flush(ranges: Sequence[PlannedRange]) -> Sequence[RangeOutcome]:
            outcomes = TaskFlush(self._settings, steps_for(self._settings, policy), read).run(ranges)
            for one in outcomes:
                self._on_outcome(one)
            return outcomes

        planned = [self._planned(parked, layer)]
        (outcome,), receipts = flush_to_the_end(flush, planned, sleep=self._sleep, monotonic=self._monotonic)
        return outcome, sum(receipt.accepted for receipt in receipts)

    def _planned(self, parked: ParkedPartition, layer: Layer) -> PlannedRange:
        start, end = int(layer.offsets[0]), int(layer.offsets[-1]) + 1
        known = self._known.get(parked.topic, LearnedSchema())
        return PlannedRange(parked.topic, parked.partition, start, end, str(Reason.END_OF_INPUT), start, known=known)

    def _reader(
        self, parked: ParkedPartition, layer: Layer
    ) -> Callable[[KafkaSettings, PlannedRange, RecordParts], Iterator[RecordBatch]]:
        def read(_kafka: KafkaSettings, planned: PlannedRange, _parts: RecordParts) -> Iterator[RecordBatch]:
            done = 0
            with storage_trouble(self._folder.path, "read parked records", PARKING):
                for batch in parked.batches(layer, planned.start, planned.end):
                    yield batch
                    done += len(batch)
                    self._progress(parked.topic, parked.partition, done, len(parked))

        return read


def _decide(fates: Sequence[Fates], layer: Layer, until: int, rejected: Mapping[int, Why]) -> None:
    """What became of the records below an offset, each in its file."""
    below = int(np.searchsorted(layer.offsets, until))
    again = np.isin(layer.offsets[:below], np.fromiter(rejected, np.int64, len(rejected)))
    for index, fate in enumerate(fates):
        mine = layer.files[:below] == index
        fate.out.append(layer.rows[:below][mine & ~again])
        stays = mine & again
        places = zip(layer.rows[:below][stays].tolist(), layer.offsets[:below][stays].tolist(), strict=True)
        fate.rejected |= {row: rejected[offset] for row, offset in places}


def _without(file: ParkedFile, fates: Fates, table: pa.Table) -> pa.Table:
    """The records of a file but those that were accepted; those that were rejected have their new reasons."""
    if table.num_rows < file.rows:
        raise StorageFailed(
            f"File {file.path} of parked records was changed by somebody else while it was replayed; it stays as it is."
        )
    stays = np.ones(table.num_rows, np.bool_)
    for rows in fates.out:
        stays[rows] = False
    stages, reasons = table.column("stage").to_pylist(), table.column("reason").to_pylist()
    for row, why in fates.rejected.items():
        stages[row], reasons[row] = why
    for name, column in (("stage", stages), ("reason", reasons)):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), pa.array(column, pa.string()))
    return table.filter(pa.array(stays))


def _in_replay(failure: Failure) -> Failure:
    """What its message says of records in Kafka is said of those that are parked."""
    message = failure.message
    for words in (NOT_COMMITTED, TEMPORARY.kept, PARKING.kept):
        message = message.replace(words, STILL_PARKED)
    return replace(failure, message=message)
