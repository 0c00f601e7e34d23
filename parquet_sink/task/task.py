"""One Spark task, and the one place where the order of effects is written.

For each range [start, end), which is claimed when its first record is there, for what has none sends nothing:

  1. its batches are read in offset order, perhaps ahead of what is written, a small   (`kafka.several_ranges`)
     range perhaps together with others
  2. records become rows; of one without a row the policy decides:       (`rows.row_builder`, `task.record_steps`)
     the range is planned again to end before it, or it is diverted
  3. rows become local files, perhaps in a thread behind what is         (`task.write_behind`, `files.accumulator`)
     decoded; a finished file's footer is verified
  4. the worker's lease is looked at, where it has one; a file is sent,  (`targets.uploader`, `archive.target`,
     then archived where there is an archive; then its notice is in the  `notify.target`)
     topic for notices, and waits for the webhook on the disk, where
     these are; the next file only after all of that
  5. the accepted file is removed from the disk; one that is refused     (`targets.uploader`)
     for what is in it may be passed over: it is removed, and the next goes on
  6. the records of a file that was passed over are read again from      (`task.range_flush`)
     Kafka and diverted: to the dead-letter topic, or parked
  7. diverted records are acknowledged                                   (`RejectPolicy.flush`)
  8. what the range taught and how far it got goes to the driver         (`RangeOutcome`)
  9. the driver notes receipts and accepted offsets, then any failure    (`PushWriter.commit`)
 10. the next tick commits the accepted offsets to the group             (`planner.range_plans`)

A crash before 4 leaves nothing behind but local files, which the next attempt or start removes, and perhaps records
that were diverted. A crash between 4 and 10 sends the same files again, under the same names, with the same rows, and
diverts the same records again: a range is always repeated as a whole, from what was known when it was planned. So
what the target has and the archive, or the topic for notices, has not is sent to all of them again; what either has
already is the same file, or notice, there.
Nothing is committed before 4, or 6, and 7 are done for all below.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from parquet_sink.kafka.range_reader import RangeReader
from parquet_sink.kafka.ranges_ahead import RangesAhead
from parquet_sink.kafka.resets import reset_command
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.kafka.several_ranges import ReadAhead, ReadInTurn, SmallRanges, reading
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import LostOffsets, PlannedRange
from parquet_sink.model.receipts import Receipt
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.process.logs import configure_worker
from parquet_sink.process.memory import collect_garbage_rarely, give_back
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.uploader import Deliverer, OrderedUploader, target_for
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.range_attempt import RangeAttempt, may_deliver
from parquet_sink.task.range_flush import ALL_PARTS, RangeFlush
from parquet_sink.task.record_steps import RecordSteps, policy_for, steps_for
from parquet_sink.task.write_behind import TakeInTurn, WriteBehind

log = logging.getLogger(__name__)

A = TypeVar("A", bound=RangeAttempt)
Read = Callable[[KafkaSettings, PlannedRange, RecordParts], Iterator[RecordBatch]]

_warned: set[tuple[str, str, tuple[str, ...]]] = set()
"""Connector, topic and paths that were warned about in this process: once is enough."""


class RangesTask(Generic[A]):
    """Reads the ranges of one task one after the other, small ones together, and gives each to its attempt.

    connector: its name. read: gives the records of a range; None: from Kafka.
    """

    def __init__(self, connector: str, kafka: KafkaSettings, read: Read | None) -> None:
        configure_worker(connector)
        collect_garbage_rarely()
        self._kafka, self._given_read = kafka, read
        self._ahead: RangesAhead | None = None
        self._lost: dict[PartitionKey, tuple[LostOffsets, ...]] = {}
        self._flushes: dict[PartitionKey, A] = {}

    def _made(self, planned: PlannedRange, steps: RecordSteps) -> A:
        """What takes the records of a range."""
        raise NotImplementedError

    def _writing(self, batches: ReadAhead | ReadInTurn) -> TakeInTurn | WriteBehind:
        """How what was read is taken."""
        return TakeInTurn()

    def _take_all(self, ranges: Sequence[PlannedRange], steps: RecordSteps) -> None:
        of_kafka = ranges if self._given_read is None else ()
        small = SmallRanges(self._kafka, of_kafka, steps.needs)
        self._ahead = RangesAhead(self._kafka, [one for one in of_kafka if not small.has(one)])
        with (
            closing(self._ahead),
            reading(ranges, partial(self._read, small, steps.needs)) as batches,
            self._writing(batches) as writing,
        ):
            for planned, item in batches:
                flush = self._flush(planned, steps)
                if item is not None and not flush.begun:
                    flush.begin()
                if not flush.ended:
                    writing.take(flush, item)
                if flush.ended:
                    batches.skip(planned)

    def _read(self, small: SmallRanges, parts: RecordParts, planned: PlannedRange) -> Iterator[RecordBatch]:
        """In the reading thread, where there is one."""
        together = small.take(planned)
        yield from self._read_range(self._kafka, planned, parts) if together is None else together

    def _read_range(self, kafka: KafkaSettings, planned: PlannedRange, parts: RecordParts) -> Iterator[RecordBatch]:
        if self._given_read is not None:
            return self._given_read(kafka, planned, parts)
        return from_kafka(kafka, planned, parts, self._on_lost, self._ahead)

    def _on_lost(self, planned: PlannedRange, lost: Sequence[LostOffsets]) -> None:
        """In the reading thread, after the last batch of a range."""
        self._lost[planned.topic, planned.partition] = tuple(lost)

    def _flush(self, planned: PlannedRange, steps: RecordSteps) -> A:
        key = (planned.topic, planned.partition)
        if key not in self._flushes:
            self._flushes[key] = self._made(planned, steps)
        return self._flushes[key]

    def _release(self, steps: RecordSteps | None) -> None:
        for flush in self._flushes.values():
            flush.release()
        if steps is not None:
            steps.policy.close()


class TaskFlush(RangesTask[RangeFlush]):
    """All ranges of one task, whose files are sent side by side.

    steps: what happens to records on their way to rows; None: what the settings say. read: as of `RangesTask`.
    replans: whether a planner takes the outcomes, which can plan a range with other bounds. repeated: whether the task
    was tried before, so that files may be at the target of which nobody knows. on_receipt: hears of each file that was
    sent, in another thread.
    """

    def __init__(
        self,
        settings: SinkSettings,
        steps: RecordSteps | None = None,
        read: Read | None = None,
        *,
        replans: bool = False,
        repeated: bool = False,
        on_receipt: Callable[[Receipt], None] | None = None,
    ) -> None:
        super().__init__(settings.name, settings.kafka, read)
        self._settings, self._given, self._replans, self._repeated = settings, steps, replans, repeated
        target = target_for(settings.target)
        if settings.archive is not None:
            target = settings.archive.behind(target)
        if settings.notify is not None:
            target = settings.notify.behind(target)
        keep_files = settings.files.keep_files
        allowed = partial(may_deliver, settings.kafka.owned)

        def reset(topic: str, partition: int, to: int) -> str:
            return reset_command(settings.kafka, f"{topic}:{partition}", to=to)

        deliverer = Deliverer(
            settings.name, target, settings.retry, keep_files=keep_files, allowed=allowed, reset=reset
        )
        self._uploader = OrderedUploader(deliverer, on_receipt=on_receipt, passes_over=settings.errors.refused_files)

    def run(self, ranges: Sequence[PlannedRange]) -> tuple[RangeOutcome, ...]:
        """Reads all ranges, waits for all uploads. A defect is raised, after local files are thrown away."""
        steps: RecordSteps | None = None
        try:
            steps = self._steps() if ranges else RecordSteps()
            self._take_all(ranges, steps)
            receipts = _by_partition(self._uploader.close())
            for key, flush in self._flushes.items():
                flush.divert_refused(receipts.get(key, ()), partial(self._read_again, flush.planned))
                flush.acknowledge()
        except BaseException:
            self._give_up()
            raise
        finally:
            self._release(steps)
        outcomes = tuple(
            flush.outcome(receipts.get(key, ()), self._lost.get(key, ())) for key, flush in self._flushes.items()
        )
        self._warn_of_clear_text()
        give_back()
        return outcomes

    def _read_again(self, planned: PlannedRange, receipt: Receipt) -> Iterator[RecordBatch]:
        """The records of a refused file, and those between them; what is not there any more is no loss to accept."""
        start, end = receipt.first_offset, receipt.last_offset + 1
        part = PlannedRange(planned.topic, planned.partition, start, end, planned.reason, topic_id=planned.topic_id)
        return self._read_range(replace(self._kafka, lost_offsets="STOP"), part, ALL_PARTS)

    def _writing(self, batches: ReadAhead | ReadInTurn) -> TakeInTurn | WriteBehind:
        return WriteBehind() if isinstance(batches, ReadAhead) else TakeInTurn()

    def _made(self, planned: PlannedRange, steps: RecordSteps) -> RangeFlush:
        return RangeFlush(
            planned, self._settings, self._uploader, steps, replans=self._replans, repeated=self._repeated
        )

    def _steps(self) -> RecordSteps:
        return steps_for(self._settings, policy_for(self._settings)) if self._given is None else self._given

    def _warn_of_clear_text(self) -> None:
        """A path that matches nothing is a slip of the pen, and what it should have hidden leaves in clear."""
        for (topic, _), flush in self._flushes.items():
            paths = flush.shaper.unmatched()
            if paths and (self._settings.name, topic, paths) not in _warned:
                _warned.add((self._settings.name, topic, paths))
                log.warning(
                    "connector %s: topic %s has no field %s, which connect.ems.obfuscation.fields names; correct it.",
                    self._settings.name,
                    topic,
                    ", ".join(paths),
                )

    def _give_up(self) -> None:
        for flush in self._flushes.values():
            flush.abandon()
        try:
            self._uploader.close()
        except Exception as error:  # noqa: BLE001 - what is raised already comes first
            log.debug("while giving up: %s", error)


def from_kafka(
    kafka: KafkaSettings,
    planned: PlannedRange,
    parts: RecordParts,
    on_lost: Callable[[PlannedRange, Sequence[LostOffsets]], None] | None = None,
    ahead: RangesAhead | None = None,
) -> Iterator[RecordBatch]:
    """The records of a range, as Kafka has them.

    on_lost: called in the end with what was passed over, if anything was; also when not all of the range is taken.
    ahead: as of `RangeReader`.
    """
    reader = RangeReader(
        kafka,
        planned.topic,
        planned.partition,
        planned.start,
        planned.end,
        planned.topic_id,
        accepted=planned.accepted,
        epoch=planned.epoch,
        parts=parts,
        ahead=ahead,
    )
    try:
        yield from reader.batches()
    finally:
        if reader.lost and on_lost is not None:
            on_lost(planned, reader.lost)


def _by_partition(receipts: Sequence[Receipt]) -> dict[PartitionKey, list[Receipt]]:
    """In order within each topic-partition."""
    found: dict[PartitionKey, list[Receipt]] = {}
    for one in receipts:
        found.setdefault((one.topic, one.partition), []).append(one)
    return found
