"""Sends what a plan has, through the connector's own task, round by round. Rejected records are counted, not kept.

  1. of each topic-partition the next range is taken, of several together        (`Replay._next`)
  2. they take the way of a connector's ranges: the same reader, converter,      (`task.task`)
     shape, files and target, in a folder of their own; what must be tried
     again is tried again                                                        (`task.replay`)
  3. files that were not chosen are made and not sent                            (`replay.sending`)
  4. each accepted file is noted, so that a replay that is stopped goes on there (`replay.journal`)
  5. what Kafka no longer has is sent as the archive has it                      (`replay.sending`)
  6. files are compared with those of the first time                             (`replay.results`)

Files of one topic-partition are sent in offset order within a round. Neither the group's offsets nor the connector's
state is touched, and no group is joined.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from parquet_sink import __version__
from parquet_sink.addons.replay.copies import Copy, ReplayFile
from parquet_sink.addons.replay.journal import Order, Position, Progress
from parquet_sink.addons.replay.pace import FULL, Pace, Rate
from parquet_sink.addons.replay.plan import ReplayRange
from parquet_sink.addons.replay.results import Now, ReplayedFile, compared
from parquet_sink.addons.replay.sending import CopySender, SendingQueue
from parquet_sink.archive.archive import Archive
from parquet_sink.errors import ArchiveUnusable, ConnectorError, StorageFailed, TopicUnusable
from parquet_sink.files.storage import TEMPORARY
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.receipts import Failure, Receipt
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.settings import TargetSettings, needs_timestamp
from parquet_sink.targets.uploader import NOT_COMMITTED
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.record_steps import steps_for, stopped_by
from parquet_sink.task.replay import flush_to_the_end
from parquet_sink.task.task import TaskFlush, from_kafka

MOST_TOGETHER: Final = 8
"""Topic-partitions whose files are sent side by side."""
SAVE_S: Final = 1.0
NO_ARCHIVE: Final = "The connector has no archive now; set connect.ems.archive.url as it was."
GOES_ON: Final = "What was not accepted is still in Kafka; --resume goes on there."
MOST_NAMED: Final = 10


class LeftOut:
    """Each record once, however often it is tried. named: the first of them, with their reasons.

    refused: how many are in files that the target refused.
    """

    def __init__(self) -> None:
        self._offsets: set[tuple[PartitionKey, int]] = set()
        self.named: list[str] = []
        self.refused = 0

    @property
    def count(self) -> int:
        return len(self._offsets)

    def add(self, one: Rejected) -> None:
        key = (one.topic, one.partition), one.offset
        if key in self._offsets:
            return
        self._offsets.add(key)
        self.refused += one.stage is Stage.TASK_PUT
        if len(self.named) < MOST_NAMED:
            where = f"topic {one.topic}, topic-partition {one.partition}, offset {one.offset}"
            self.named.append(f"{where}: {one.reason}")


class LeaveOut:
    """A `RejectPolicy` that cuts files where the connector's own does, and keeps nothing.

    Where the connector would stop, the range ends; `stopped_at` has the offset, and whoever runs it goes on behind it.
    wants: whether a record at this offset was chosen; others are not told.
    """

    needs = RecordParts(single=True)

    def __init__(self, settings: ErrorSettings, found: LeftOut, wants: Callable[[PartitionKey, int], bool]) -> None:
        self.diverts, self._found, self._wants = settings.invalid_records, found, wants
        self.stopped_at: dict[PartitionKey, int] = {}

    def decide(self, rejected: Rejected) -> ConnectorError | None:
        """Takes note of the record."""
        key = rejected.topic, rejected.partition
        if self._wants(key, rejected.offset):
            self._found.add(rejected)
        if rejected.stage is Stage.TASK_PUT or (self.diverts and rejected.stage is not Stage.OBFUSCATION):
            return None
        self.stopped_at[key] = rejected.offset
        return stopped_by(rejected)

    def flush(self, planned: PlannedRange) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


class Watcher:
    """What hears of a replay as it runs, in any thread; this one does nothing."""

    def read(self, offsets: int) -> None:
        """So many offsets of its ranges were read, or need not be."""

    def sent(self, file: ReplayFile) -> None:
        """A file was accepted."""

    def flushed(self, planned: PlannedRange, receipts: Sequence[Receipt]) -> None:
        """A range was flushed as far as it goes now."""


@dataclass(frozen=True)
class Options:
    """target: where files go; None: nowhere. rate: at which pace. save: puts down how far it got.

    archive: opens the archive that files of the plan are in.
    """

    target: TargetSettings | None
    rate: Rate = FULL
    save: Callable[[Progress], None] = lambda progress: None
    archive: Callable[[], Archive] | None = None


class Replay:
    """Of one connector, used once. settings: with a folder of its own for temporary files.

    failure: why it ended before its end. left_out: records without a row. progress: how far it is; when it goes on
    where it was stopped, how far it got then.
    """

    def __init__(
        self,
        settings: SinkSettings,
        order: Order,
        options: Options,
        progress: Progress | None = None,
        watchers: Sequence[Watcher] = (),
        *,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._order, self._options, self._watchers = order, options, watchers
        self._sleep, self._monotonic = sleep, monotonic
        self._pace = Pace(options.rate, sleep=sleep, monotonic=monotonic)
        notify = settings.notify if options.target == settings.target else None
        table = settings.target.target_table
        self._queue = SendingQueue(options.target, table, self._pace, self._accepted, notify)
        kafka = replace(settings.kafka, lost_offsets="STOP")
        self._settings = replace(settings, kafka=kafka, target=self._queue, notify=None)
        archive, target = options.archive, options.target
        dated = "" if target is None else needs_timestamp(target)
        copies = partial(CopySender, self._settings, target=self._queue, sleep=self._rest, dated=dated)
        self._copies = None if archive is None else copies(archive)
        obfuscation = settings.shape.obfuscation
        salts = obfuscation is not None and obfuscation.random_salt
        self._now = Now(settings.fingerprint, __version__, salts)
        self._saved_s = monotonic()
        self.progress = progress or Progress()
        self.left_out = LeftOut()
        self.failure: Failure | None = None

    def files(self) -> Generator[ReplayedFile]:
        """Each file that was sent, as soon as its range is done; ends early with a failure. Raises StorageFailed."""
        try:
            with self._pace.working():
                while self.progress.round <= self._order.times and self.failure is None:
                    yield from self._round()
        finally:
            self._options.save(self.progress)
            self._queue.close()

    def _round(self) -> Generator[ReplayedFile]:
        ranges = self._order.plan.by_partition()
        while batch := self._next(ranges):
            yield from self._together(batch)
            if self.failure is not None:
                return
            self._options.save(self.progress)
        self.progress.round += 1
        self.progress.positions, self.progress.known = {}, {}

    def _next(self, ranges: dict[PartitionKey, list[ReplayRange]]) -> list[ReplayRange]:
        """The next range of some topic-partitions, those that are furthest behind first."""
        left = [(self._position(key).done, key) for key, mine in ranges.items() if self._position(key).done < len(mine)]
        return [self._prepared(ranges[key][done]) for done, key in sorted(left)[:MOST_TOGETHER]]

    def _position(self, key: PartitionKey) -> Position:
        return self.progress.positions.get(key, Position())

    def _prepared(self, one: ReplayRange) -> ReplayRange:
        """From where it was stopped, with what is known of its topic now, if nothing else is known."""
        at = self._position(one.key)
        if at.begin is not None:
            one = one.from_here(at.begin) or replace(one, windows=(), expected=())
        planned = replace(one.planned, read_ahead=not self._options.rate.bounded)
        if not one.recorded and planned.known.schema is None:
            planned = replace(planned, known=self.progress.known.get(planned.topic, planned.known))
        if at.accepted is not None:
            left = tuple(was for was in one.expected if was.last >= at.accepted)
            planned, one = replace(planned, accepted=at.accepted), replace(one, expected=left)
        return replace(one, planned=planned)

    def _together(self, batch: Sequence[ReplayRange]) -> Generator[ReplayedFile]:
        ranges = {one.key: one for one in batch}
        for one in batch:
            self._queue.begin(one)
            if (reason := self._settings.why_unusable(one.planned.topic)) is not None:
                self.failure = TopicUnusable(reason).failure()
                return
        for one in batch:
            if one.copy is not None and self.failure is None:
                self._copied(one, one.copy)
        policies: list[LeaveOut] = []
        outcomes, receipts = flush_to_the_end(
            lambda planned: self._flush(planned, ranges, policies),
            [one.planned for one in batch if one.windows and one.copy is None and self.failure is None],
            sleep=self._rest,
            monotonic=self._monotonic,
        )
        stopped = {key: offset for policy in policies for key, offset in policy.stopped_at.items()}
        for outcome in outcomes:
            one = ranges[outcome.planned.topic, outcome.planned.partition]
            self._flushed(outcome.planned, [r for r in receipts if _is_of(r, one)])
            self._settle(one, outcome, stopped)
        for one in batch:
            yield from self._compared(one, stopped.get(one.key))
            if not one.windows:
                self.progress.positions[one.key] = Position(self._position(one.key).done + 1)

    def _copied(self, one: ReplayRange, copy: Copy) -> None:
        """Sends a file of the archive in place of a range."""
        if self._copies is None:
            self.failure = ArchiveUnusable(NO_ARCHIVE).failure()
            return
        try:
            receipt = self._copies.send(copy)
        except (ConnectorError, ArchiveUnusable) as error:
            self.failure = _in_replay(error.failure())
            return
        self._flushed(one.planned, [receipt])
        self._read_offsets(one.planned.end - one.planned.start)
        self.progress.positions[one.key] = Position(self._position(one.key).done + 1)

    def _compared(self, one: ReplayRange, stopped_at: int | None) -> list[ReplayedFile]:
        """Files of a range that ended at a record, or early, are compared as far as it got."""
        sent = self._queue.sent(one.key)
        if stopped_at is not None or self.failure is not None:
            until = sent[-1].last if sent else -1
            one = replace(one, expected=tuple(was for was in one.expected if was.last <= until))
        return compared(one, sent, self._now, self.progress.round)

    def _flush(
        self, planned: Sequence[PlannedRange], ranges: dict[PartitionKey, ReplayRange], policies: list[LeaveOut]
    ) -> Sequence[RangeOutcome]:
        def wants(key: PartitionKey, offset: int) -> bool:
            return ranges[key].wants(offset, offset)

        policy = LeaveOut(self._settings.errors, self.left_out, wants)
        policies.append(policy)
        return TaskFlush(self._settings, steps_for(self._settings, policy), self._read).run(planned)

    def _read(self, kafka: KafkaSettings, planned: PlannedRange, parts: RecordParts) -> Iterator[RecordBatch]:
        at = planned.start
        for batch in from_kafka(kafka, planned, parts):
            self._pace.rest(len(batch))
            yield batch
            reached = batch.next_offset
            self._read_offsets(reached - at)
            at = reached
        self._read_offsets(planned.end - at)

    def _read_offsets(self, offsets: int) -> None:
        for one in self._watchers:
            one.read(offsets)

    def _flushed(self, planned: PlannedRange, receipts: Sequence[Receipt]) -> None:
        for one in self._watchers:
            one.flushed(planned, receipts)

    def _rest(self, seconds: float) -> None:
        with self._pace.resting():
            self._sleep(seconds)

    def _settle(self, one: ReplayRange, outcome: RangeOutcome, stopped: dict[PartitionKey, int]) -> None:
        """Notes how far a range got: done, to go on behind a record without a row, or failed."""
        key, at = one.key, self._position(one.key)
        topic, offset = one.planned.topic, stopped.get(one.key)
        known = self.progress.known.get(topic, one.planned.known)
        if outcome.failure is None:
            self.progress.known[topic] = known.updated(outcome.learned)
            self.progress.positions[key] = Position(at.done + 1)
        elif offset is not None and outcome.accepted_until >= offset:
            self.progress.positions[key] = Position(at.done, begin=offset + 1)
        else:
            self.failure = self.failure or _in_replay(outcome.failure)

    def _accepted(self, file: ReplayFile) -> None:
        """By the thread that sent it, one at a time."""
        progress = self.progress
        at = self._position(file.key)
        progress.positions[file.key] = replace(at, accepted=file.last + 1)
        progress.files, progress.rows = progress.files + 1, progress.rows + file.rows
        progress.size_bytes += file.size_bytes
        for one in self._watchers:
            one.sent(file)
        if self._monotonic() - self._saved_s >= SAVE_S:
            self._saved_s = self._monotonic()
            with suppress(StorageFailed):  # the file is accepted; it is told when the range is done
                self._options.save(progress)


def _is_of(receipt: Receipt, one: ReplayRange) -> bool:
    """Whether it is of a file that was to be sent."""
    return (receipt.topic, receipt.partition) == one.key and one.wants(receipt.first_offset, receipt.last_offset)


def _in_replay(failure: Failure) -> Failure:
    """What its message says of a connector's next start is said of the replay."""
    message = failure.message
    for words in (NOT_COMMITTED, TEMPORARY.kept):
        message = message.replace(words, GOES_ON)
    return replace(failure, message=message)
