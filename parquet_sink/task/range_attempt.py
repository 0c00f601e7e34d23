"""One attempt at a range: its claim, how far it got, what of that counts as accepted, and what ends or repeats it."""

import logging
import time
import uuid
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import random
from typing import Final

from parquet_sink.errors import ConnectorError, ConverterFailed
from parquet_sink.files import naming
from parquet_sink.files.lock import PartitionClaim
from parquet_sink.kafka.settings import Ownership
from parquet_sink.model.events import RecordsDelivered, RecordsSetAside
from parquet_sink.model.ranges import Again, LearnedSchema, LostOffsets, PlannedRange, Tries, Trying
from parquet_sink.model.receipts import Failure, Receipt
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected, stage_name
from parquet_sink.process import lease
from parquet_sink.process.logs import beside_program
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.record_steps import RejectPolicy

log = logging.getLogger(__name__)

FIRST_PAUSE_MS: Final = 300
_MOST_DOUBLINGS: Final = 40
CLAIM_WAIT_S: Final = 5.0


class DivertedTally:
    """Counts the diverted records of one range, which come in any order."""

    def __init__(self, settings: SinkSettings | RecordSinkSettings) -> None:
        self._settings = settings
        self._offsets: dict[str, array[int]] = {}
        self._first: Rejected | None = None

    def add(self, rejected: Rejected) -> None:
        """A record that the policy took."""
        self._offsets.setdefault(stage_name(rejected.stage), array("q")).append(rejected.offset)
        if self._first is None or rejected.offset < self._first.offset:
            self._first = rejected

    def below(self, offset: int, at_s: float) -> RecordsSetAside | None:
        """Those below an offset; None when there are none. at_s: epoch seconds, of the event."""
        if self._first is None or self._first.offset >= offset:
            return None
        stages: dict[str, int] = {}
        last = self._first.offset
        for stage, found in self._offsets.items():
            ordered = sorted(found)
            if count := bisect_left(ordered, offset):
                stages[stage], last = count, max(last, ordered[count - 1])
        first = self._first
        return RecordsSetAside(
            connector=self._settings.name,
            at_s=at_s,
            topic=first.topic,
            partition=first.partition,
            count=sum(stages.values()),
            first=first.offset,
            last=last,
            stages=stages,
            reason=first.reason,
            place=self._settings.diverted_to,
            dead_letters=self._settings.errors.dead_letters is not None,
        )


@dataclass(frozen=True)
class TransformRetry:
    """timeout_ms: since the first failure; 0: not at all, -1: without end. longest_ms: the longest pause."""

    timeout_ms: int
    longest_ms: int

    def again(self, tries: Tries, chance: Callable[[], float] = random) -> Again | None:
        """The next try, after a failure behind `tries`; None: no more. chance: from 0 up to 1."""
        if tries.trying is not Trying.TRANSFORM:
            tries = Tries(trying=Trying.TRANSFORM)
        left_ms = self.timeout_ms - 1000 * tries.elapsed_s
        if self.timeout_ms >= 0 and left_ms <= 0:
            return None
        pause_ms = float(FIRST_PAUSE_MS * 2 ** min(tries.attempts, _MOST_DOUBLINGS))
        if pause_ms > self.longest_ms:
            pause_ms = chance() * self.longest_ms
        if self.timeout_ms >= 0:
            pause_ms = min(pause_ms, left_ms)
        return Again(Tries(tries.attempts + 1, tries.elapsed_s, Trying.TRANSFORM), pause_ms / 1000)


def may_deliver(owned: Ownership) -> bool:
    """Whether the worker's lease lets something be sent now; where it has none, always.

    A task on another machine than Spark's driver cannot see the lease: there it was looked at when the range was
    planned, and Spark ends tasks of a driver that is gone.
    """
    return owned.lease is None or not beside_program() or lease.holds(owned.lease)


class RangeAttempt:
    """What is common to ranges that become files and ranges whose records go to a record sink.

    begun: `begin` was called. ended: nothing more is taken of the range. In subclasses: `_reached`: everything below
    is in a file, was put, was diverted, or has no row. `_failure`: why the connector cannot go on, the first reason.
    `_again`: when the range is to be tried again. `_thrown_away`: whether rows were thrown away that no file has.
    `_diverted_from`: the first record that was diverted, by itself or with a refused file; `_not_kept`: why that is
    not kept for good. `_asked`: whether the policy was asked.
    """

    def __init__(
        self, planned: PlannedRange, settings: SinkSettings | RecordSinkSettings, policy: RejectPolicy
    ) -> None:
        self.planned, self.begun, self.ended = planned, False, False
        self._connector, self._policy, self._asked = settings.name, policy, False
        self._reached, self._read = planned.start, 0
        self._failure: Failure | None = None
        self._again: Again | None = None
        self._thrown_away = False
        self._diverted_from: int | None = None
        self._not_kept: Failure | None = None
        self._tally = DivertedTally(settings)
        self._attempt = uuid.uuid4().hex
        claim_file = naming.claim_file(settings.tmp_dir, settings.name, planned.topic, planned.partition)
        self._claim = PartitionClaim(claim_file, self._attempt)
        self._transform_retry = TransformRetry(settings.registry_patience_ms, settings.registry_pause_ms)

    def begin(self) -> None:
        """Claims the topic-partition. When an earlier attempt still holds it, the range ends and comes again."""
        self.begun = True
        try:
            if self._claim.acquire():
                return
            self._again = Again(self.planned.tries, CLAIM_WAIT_S)
            log.warning(
                "connector %s: topic %s, topic-partition %d: an earlier attempt has not ended yet; trying again in "
                "%g s",
                *(self._connector, self.planned.topic, self.planned.partition, CLAIM_WAIT_S),
            )
        except ConnectorError as error:
            self._failure = error.failure()
        self.ended = True

    def staged(self, item: RecordBatch | BaseException | None) -> Callable[[], None]:
        """What of `take` is left to do in a second stage, perhaps in another thread, unless the range has ended."""
        return partial(self.take, item)

    def take(self, item: RecordBatch | BaseException | None) -> None:
        """What was read next: records, the range's end, or why it cannot be read; a defect is raised."""
        if isinstance(item, RecordBatch):
            self.add(item)
        elif item is None:
            self.finish()
        elif isinstance(item, ConnectorError):
            self.fail(item)
        else:
            raise item

    def add(self, batch: RecordBatch) -> None:
        """Takes the next records; what goes wrong ends the range, and is in `outcome`."""
        self._take_batch(batch, partial(self._add, batch))

    def _take_batch(self, batch: RecordBatch, take: Callable[[], None]) -> None:
        self._read += len(batch)
        try:
            take()
        except ConverterFailed as error:
            first, last = batch.offsets[0], batch.offsets[-1]
            where = f"topic {batch.topic}, topic-partition {batch.partition}, offsets {first} to {last}"
            self.fail(ConverterFailed(f"{where}: {error}").at((batch.topic, batch.partition)))
        except ConnectorError as error:
            self.fail(error)

    def _add(self, batch: RecordBatch) -> None:
        """Raises ConnectorError."""
        raise NotImplementedError

    def finish(self) -> None:
        """The range was read to its end."""
        raise NotImplementedError

    def fail(self, error: ConnectorError) -> None:
        """Ends the range for a reason of its own, or for trouble with reading it."""
        raise NotImplementedError

    def _react(self, error: ConnectorError) -> None:
        """The range comes again, or the connector fails, as the reaction to the error says."""
        if error.reaction.range_again_s is not None:
            self._again = Again(self.planned.tries, error.reaction.range_again_s)
        elif error.reaction.range_retries:
            again = self._transform_retry.again(self.planned.tries)
            self._try_again(again, error, type(error), f"errors.retry.timeout={self._transform_retry.timeout_ms}")
        else:
            self._fail_for(error)

    def _try_again(
        self, again: Again | None, error: ConnectorError, failed: type[ConnectorError], allowed: str
    ) -> None:
        """again: None: no more. failed: the error that the connector ends with then. allowed: a key, and its value."""
        if again is None:
            message = f"{error} {allowed} allows no further try; raise it, or set -1 for no end."
            self._fail_for(failed(message).at(error.topic_partition))
            return
        log.warning("connector %s: %s Trying again in %.1f s", self._connector, error, again.wait_s)
        self._again = again

    def _fail_for(self, error: ConnectorError) -> None:
        """The first reason counts."""
        self._failure = self._failure or error.failure()

    def _reach(self, offset: int) -> None:
        """Everything below this offset is done with."""
        self._reached = max(self._reached, offset)

    def _divert(self, offset: int) -> None:
        """The policy took the record at this offset, or is to take those of a file that begins there."""
        self._diverted_from = offset if self._diverted_from is None else min(self._diverted_from, offset)

    def acknowledge(self) -> None:
        """Has diverted records kept for good; where that fails, nothing from the first of them on is accepted."""
        if not self._asked:
            return
        try:
            self._policy.flush(self.planned)
        except ConnectorError as error:
            if self._failure is not None:
                log.warning("connector %s: diverted records are not kept: %s", self._connector, error)
            self._not_kept = self._not_kept or error.failure()

    def release(self) -> None:
        """Lets the topic-partition go, after all uploads have ended."""
        self._claim.release()

    def _outcome(
        self,
        receipts: Sequence[Receipt],
        lost: Sequence[LostOffsets],
        *,
        learned: LearnedSchema,
        delivered: RecordsDelivered | None = None,
        value_bytes: int = 0,
    ) -> RangeOutcome:
        """What the driver gets. receipts: of the range's files, in offset order. lost: what Kafka no longer had."""
        refused = next((one.failure for one in receipts if one.failure is not None), None)
        again = refused.again if refused is not None else self._again
        failure = self._failure
        if refused is not None:
            failure = refused if again is None else None
        if self._not_kept is not None:
            failure, again = failure or self._not_kept, None
        done = tuple(one for one in receipts if one.failure is None or one.failure.again is None)
        until, now_s = self._accepted_until(receipts), time.time()
        return RangeOutcome(
            planned=self.planned,
            accepted_until=until,
            receipts=done,
            failure=failure,
            learned=learned,
            again=again,
            ended_at_s=now_s,
            diverted=self._tally.below(until, now_s),
            waiting=next((one for one in receipts if one not in done), None),
            read=self._read,
            lost=tuple(lost),
            delivered=delivered,
            value_bytes=value_bytes,
        )

    def _accepted_until(self, receipts: Sequence[Receipt]) -> int:
        """What an earlier attempt reached is never taken back."""
        until = self._delivered_until(receipts)
        if self._not_kept is not None and self._diverted_from is not None:
            until = min(until, _file_before(self._diverted_from, receipts))
        return max(until, self.planned.accepted)

    def _delivered_until(self, receipts: Sequence[Receipt]) -> int:
        """What was reached, unless a file on the way there was not accepted, or was thrown away."""
        refused = next((one for one in receipts if one.failure is not None), None)
        if refused is not None:
            return max(refused.next_offset, self.planned.start)
        if self._thrown_away:
            return max((one.next_offset for one in receipts), default=self.planned.start)
        return self._reached


def _file_before(offset: int, receipts: Sequence[Receipt]) -> int:
    """Where the file begins that has rows on both sides of an offset, for it comes again as a whole."""
    return next((one.first_offset for one in receipts if one.first_offset < offset < one.next_offset), offset)
