"""One range on its way: its records become rows, rows files, and files go to the uploader in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from parquet_sink.errors import ConnectorError, OffsetsLost
from parquet_sink.files import naming
from parquet_sink.files.accumulator import Accumulator, FinishedFile, Place
from parquet_sink.files.group import RecordTimes
from parquet_sink.files.rotation import Limits, Reason
from parquet_sink.files.storage import remove_unsent, sweep
from parquet_sink.model.ranges import NO_TRIES, Again, LearnedSchema, LostOffsets, PlannedRange, Tries, Trying
from parquet_sink.model.receipts import Receipt
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.rows.run import Run
from parquet_sink.rows.schema.evolution import SchemaChangeMonitor
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.uploader import OrderedUploader, Upload
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.range_attempt import RangeAttempt
from parquet_sink.task.record_steps import RecordSteps, reject_unread

ALL_PARTS: Final = RecordParts(keys=True, headers=True)


class FileRecords:
    """Which records have rows in each file of one range. All rows are added, then each file, in order.

    A file of consecutive records, which most are, takes nothing but its bounds.
    """

    def __init__(self) -> None:
        self._open: list[np.ndarray] = []
        self._files: dict[int, np.ndarray | None] = {}

    def add(self, offsets: pa.Int64Array) -> None:
        """Of rows that follow those of before."""
        self._open.append(offsets.to_numpy())

    def finished(self, file: FinishedFile) -> None:
        """The rows up to the file's last offset are in it."""
        rows = np.concatenate(self._open) if self._open else np.empty(0, np.int64)
        end = int(np.searchsorted(rows, file.last_offset, side="right"))
        own = np.unique(rows[:end])
        self._open = [rows[end:]]
        self._files[file.first_offset] = None if len(own) == file.last_offset - file.first_offset + 1 else own

    def of(self, receipt: Receipt) -> np.ndarray:
        """The offsets of the records in a file, increasing."""
        own = self._files[receipt.first_offset]
        return np.arange(receipt.first_offset, receipt.last_offset + 1) if own is None else own


def rejected_of(receipt: Receipt, wanted: np.ndarray, batches: Iterable[RecordBatch]) -> Iterator[Rejected]:
    """The records of a refused file, in order. wanted: their offsets. batches: what Kafka has from the first on.

    Raises OffsetsLost when Kafka no longer has one of them, after all others were given, and what reading raises.
    """
    missing = wanted
    for batch in batches:
        offsets = batch.offsets.to_numpy()
        for index in np.flatnonzero(np.isin(offsets, wanted)).tolist():
            yield Rejected(
                topic=batch.topic,
                partition=batch.partition,
                offset=int(offsets[index]),
                stage=Stage.TASK_PUT,
                reason=str(receipt.passed_over),
                key=batch.key_of(index),
                value=batch.values[index].as_py(),
                headers=batch.headers_of(index),
                timestamp_ms=batch.timestamps[index].as_py(),
            )
        missing = missing[~np.isin(missing, offsets)]
    if len(missing):
        raise OffsetsLost(
            f"Topic {receipt.topic}, topic-partition {receipt.partition}: {receipt.passed_over}. {len(missing)} of its "
            f"records, the first at offset {missing[0]}, are no longer in Kafka, so they cannot be diverted. Nothing "
            f"from offset {receipt.first_offset} on is committed; start the connector again: what is left there is "
            f"read again."
        ).at((receipt.topic, receipt.partition))


def _nothing() -> None:
    """Is left to do."""


class RangeFlush(RangeAttempt):
    """Steps 2 to 4 of `task.task` for one range, and steps 6 and 7.

    Owns a shaper with what was known when the range was planned, so that its files do not depend on what else the
    task does. replans, repeated: as of `TaskFlush`.
    """

    def __init__(
        self,
        planned: PlannedRange,
        settings: SinkSettings,
        uploader: OrderedUploader,
        steps: RecordSteps,
        *,
        replans: bool = False,
        repeated: bool = False,
    ) -> None:
        super().__init__(planned, settings, steps.policy)
        self._replans, self._repeated, self._untried = replans, repeated or planned.repeated, True
        self._uploader, self._commit_records = uploader, settings.flush.commit_records
        self._folder = naming.partition_folder(settings.tmp_dir, settings.name, planned.topic, planned.partition)
        table = settings.tables.table(planned.topic)
        self._accumulator = Accumulator(
            Place(settings.name, planned.topic, planned.partition, self._attempt, table=table),
            Limits(settings.flush.commit_size_bytes, settings.flush.commit_records),
            settings.files,
            bytes_per_row=planned.known.bytes_per_row,
        )
        self._value_bytes, self._last_shaped = 0, False
        self._file_records = FileRecords() if settings.errors.refused_files else None
        self._schema_changes = SchemaChangeMonitor(settings.name, planned.topic)
        self._steps, self._shape, self._taught_nothing = steps, settings.shape, False
        self.shaper = steps.take_row_builder(settings.shape, planned.known.schema)

    def begin(self) -> None:
        """Likewise; files that an earlier attempt left are removed."""
        super().begin()
        if not self.ended:
            sweep(self._folder)

    def staged(self, item: RecordBatch | BaseException | None) -> Callable[[], None]:
        """The first stage has records become rows."""
        if not isinstance(item, RecordBatch):
            return super().staged(item)
        if self._last_shaped:
            return _nothing
        shaped: list[Run | Rejected | ConnectorError] = []
        try:
            for one in self._shaped(item):
                shaped.append(one)
                if self._ends(one):
                    self._last_shaped = True
                    break
        except ConnectorError as error:
            shaped.append(error)
            self._last_shaped = True
        return partial(self._take_batch, item, partial(self._write_all, item, shaped))

    def _ends(self, shaped: Run | Rejected) -> bool:
        """Whether the range ends here, and records behind must not be learned from."""
        rejected = isinstance(shaped, Rejected) and shaped.offset >= self.planned.accepted
        return rejected and not self._policy.diverts

    def _shaped(self, batch: RecordBatch) -> Iterator[Run | Rejected]:
        if batch.unread is not None:
            return iter((reject_unread(batch, batch.unread),))
        return self.shaper.shape(batch, across_rejected=self._policy.diverts)

    def _add(self, batch: RecordBatch) -> None:
        self._write_all(batch, self._shaped(batch))

    def _write_all(self, batch: RecordBatch, shaped: Iterable[Run | Rejected | ConnectorError]) -> None:
        times = RecordTimes.of(batch.offsets, batch.timestamps)
        self._value_bytes += batch.value_bytes
        for item in shaped:
            if isinstance(item, ConnectorError):
                raise item
            if isinstance(item, Rejected):
                self._reject(item)
            else:
                self._write(item, times)
            if self.ended:
                return
        self._reach(batch.next_offset)

    def _write(self, run: Run, times: RecordTimes) -> None:
        for part in run.parts(self._commit_records):
            if self._file_records is not None:
                self._file_records.add(part.offsets)
            files = self._accumulator.add(part, times)
            self._schema_changes.added(part.rows.schema, (f.rows for f in files if f.reason is Reason.SCHEMA))
            self._send(files)
            if self.ended:
                return
            self._reach(part.last_offset + 1)

    def _reject(self, rejected: Rejected) -> None:
        """Has the policy decide, but about what an earlier attempt at the range had diverted for good."""
        if rejected.offset < self.planned.accepted:
            return
        before = max(self.planned.start, self.planned.accepted)
        if self._replans and not self._policy.diverts and rejected.offset > before:
            self._replan(self.planned.start, rejected.offset)  # the policy is asked once it begins a range
            return
        self._asked = True
        stopped_by = self._policy.decide(rejected)
        if stopped_by is None:
            self._divert(rejected.offset)
            self._tally.add(rejected)
        elif self._policy.diverts:
            self._fail(stopped_by)  # rows before the record may be yet to come
        else:
            self._reach(rejected.offset)
            self.fail(stopped_by)

    def finish(self) -> None:
        """The range was read to its end: closes its last file."""
        self._reach(self.planned.end)
        self._close(Reason(self.planned.reason))
        self._taught_nothing = self._steps.put_back(self.shaper, self._shape, self.planned.known.schema)

    def fail(self, error: ConnectorError) -> None:
        """Ends the range for a reason of its own, or for trouble with reading it."""
        if error.reaction.delivers_before:
            self._close(Reason.END_OF_RANGE)
            if self._again is None:
                self._fail_for(error)
        else:
            self._react(error)
            self.abandon()

    def _replan(self, start: int, end: int) -> None:
        """Ends the range, which cannot come out as it was planned: these offsets are recorded in its place.

        Only then are their files sent: another attempt, which finds other records valid or gone, makes the same.
        """
        tries = self.planned.tries if self._untried else NO_TRIES
        self._again = Again(tries, 0.0, (start, end))
        self.abandon()

    def divert_refused(
        self, receipts: Sequence[Receipt], read_again: Callable[[Receipt], Iterable[RecordBatch]]
    ) -> None:
        """Has the policy take the records of refused files that were passed over. receipts: as for `outcome`.

        read_again: what Kafka has from a file's first record to its last. Where that fails, nothing of the file counts.
        """
        for receipt in receipts:
            if receipt.passed_over is None:
                continue
            self._divert(receipt.first_offset)
            self._asked = True
            try:
                self._divert_file(receipt, read_again(receipt))
            except ConnectorError as error:
                self._not_kept = error.failure()
                return

    def _divert_file(self, receipt: Receipt, batches: Iterable[RecordBatch]) -> None:
        assert self._file_records is not None
        for rejected in rejected_of(receipt, self._file_records.of(receipt), batches):
            if (stopped_by := self._policy.decide(rejected)) is not None:
                raise stopped_by
            self._tally.add(rejected)

    def abandon(self) -> None:
        """Throws away what was not handed to the uploader."""
        self.ended = self._thrown_away = True
        self._accumulator.abandon()

    def outcome(self, receipts: Sequence[Receipt], lost: Sequence[LostOffsets] = ()) -> RangeOutcome:
        """What became of the range. receipts: of its files, in offset order. lost: what Kafka no longer had of it."""
        learned = LearnedSchema(self._schema(), self._accumulator.bytes_per_row, self._accumulator.bytes_per_record)
        return self._outcome(receipts, lost, learned=learned, value_bytes=self._value_bytes)

    def _schema(self) -> bytes | None:
        """What is known of the topic after it, serialized."""
        if self._taught_nothing:
            return self.planned.known.schema
        known = self.shaper.known
        return None if known is None else known.serialize().to_pybytes()

    def _send(self, files: Sequence[FinishedFile]) -> None:
        for file in files:
            if self._file_records is not None:
                self._file_records.finished(file)
            if file.last_offset < self.planned.accepted:
                remove_unsent(file.path)  # an earlier attempt at this range has delivered it
            elif file.first_offset < self.planned.accepted and not self.ended:
                remove_unsent(file.path)  # its first rows were delivered in a file of another name
                self._replan(self.planned.accepted, self.planned.end)
            elif self.ended or not self._uploader.submit(self._upload(file)):
                remove_unsent(file.path)
                self.abandon()

    def _upload(self, file: FinishedFile) -> Upload:
        earlier, self._untried = (self._earlier_tries if self._untried else NO_TRIES), False
        return Upload(file, replace(earlier, sent_before=self._repeated), self._claim.superseded)

    @property
    def _earlier_tries(self) -> Tries:
        """At uploading the first file."""
        return self.planned.tries if self.planned.tries.trying is Trying.UPLOAD else NO_TRIES

    def _close(self, reason: Reason) -> None:
        if self.ended:
            return
        try:
            file = self._accumulator.finish(reason)
        except ConnectorError as error:
            self._fail(error)
            return
        self._send([file] if file is not None else [])
        self.ended = True

    def _fail(self, error: ConnectorError) -> None:
        self._fail_for(error)
        self.abandon()
