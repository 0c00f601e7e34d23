"""One Spark task of a record sink, and the one place where the order of its effects is written.

For each range [start, end):

  1. its batches are read in offset order, perhaps ahead of what is put  (`task.read_ahead`), a small range
     perhaps together with others                                        (`kafka.small_ranges`)
  2. records are decoded and transformed; of one that fails the policy   (`transform.chain`, `task.reject_policy`)
     decides: the range ends before it, or it is set aside
  3. the sink takes the others, batch by batch                           (`RecordSink.put`)
  4. the sink has all of them durably                                    (`RecordSink.flush`)
  5. what was set aside is acknowledged                                  (`RejectPolicy.flush`)
  6. how far it got goes to the driver                                   (`RangeOutcome`)
  7. the driver notes accepted offsets, then any failure                 (`spark.sink`)
  8. the next tick commits the accepted offsets to the group             (`planner.range_plans`)

Where a range ends before its end, what was put is flushed all the same, and counts. A crash before 8 puts the records
again: a sink gets each at least once, in offset order within a topic-partition.
"""

import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from parquet_sink.config.key import ems
from parquet_sink.convert.decoded import Decoder
from parquet_sink.errors import ConnectorError, ConverterFailed, RecordSinkFailed, RetryLater
from parquet_sink.files import naming
from parquet_sink.files.lock import PartitionClaim
from parquet_sink.kafka.small_ranges import SmallRanges
from parquet_sink.model.ranges import Again, Known, LostOffsets, PlannedRange, Tries, Trying
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.process.logs import configure_worker
from parquet_sink.process.memory import collect_garbage_rarely, give_back
from parquet_sink.rows.run import Records
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.targets.record_sink import RecordSink, SinkRecords
from parquet_sink.task.outcome import Delivered, RangeOutcome
from parquet_sink.task.policies import policy_for_records
from parquet_sink.task.range_progress import CLAIM_WAIT_S, RangeProgress, SetAsideTally, TransformRetry, claim
from parquet_sink.task.read_ahead import reading
from parquet_sink.task.record_steps import RecordSteps
from parquet_sink.task.reject_policy import RejectPolicy, SetAside
from parquet_sink.task.task import Read, from_kafka, take
from parquet_sink.transform.chain import TransformChain, of_trees
from parquet_sink.transform.records import DecodedRecords

log = logging.getLogger(__name__)

MOST: Final = ems("restart.max")


@dataclass(frozen=True)
class PutRetry:
    """By the keys that say how a connector is started again: so often without progress, the n-th pause n times as long.

    bounds: `most` and the pauses of it count.
    """

    bounds: RestartSettings

    def again(self, tries: Tries) -> Again | None:
        """The next try, after a failure behind `tries`; None: no more."""
        if tries.trying is not Trying.PUT:
            tries = Tries(trying=Trying.PUT)
        failures = tries.attempts + 1
        if 0 <= self.bounds.most < failures:
            return None
        pause_ms = min(self.bounds.pause_ms * failures, self.bounds.longest_ms)
        return Again(Tries(failures, tries.elapsed_s, Trying.PUT), pause_ms / 1_000)


class RecordFlush:
    """Steps 2 to 5 of `task.record_task` for one range. steps: with a decoder and a chain."""

    def __init__(self, planned: PlannedRange, settings: RecordSinkSettings, steps: RecordSteps) -> None:
        assert steps.decoder is not None
        assert steps.transforms is not None
        self.planned, self.ended = planned, False
        self._settings, self._policy, self._asked = settings, steps.policy, False
        self._decoder: Decoder = of_trees(steps.decoder)
        self._chain: TransformChain = steps.transforms
        self._progress = RangeProgress(planned, planned.start)
        self._tally = SetAsideTally(settings.set_aside_in, dead_letters=settings.errors.dead_letters is not None)
        path = naming.claim_file(settings.tmp_dir, settings.name, planned.topic, planned.partition)
        self._claim = PartitionClaim(path, uuid.uuid4().hex)
        self._sink: RecordSink | None = None
        self._put_until = planned.start
        self._put: Delivered | None = None
        """What was put and is not flushed yet."""
        self._delivered: Delivered | None = None

    def begin(self) -> None:
        """Claims the topic-partition. When an earlier attempt still holds it, the range ends and comes again."""
        self.ended = not claim(self._claim, self._progress, self._settings.name)

    def add(self, batch: RecordBatch) -> None:
        """Takes the next records; what goes wrong ends the range, and is in `outcome`."""
        self._progress.read += len(batch)
        until = batch.offsets[-1].as_py() + 1
        if until <= self.planned.accepted:  # an earlier attempt at this range has delivered them
            return
        try:
            records, stopped_by = self._decided(self._chain.apply(batch, self._decoder))
        except ConverterFailed as error:
            where = f"topic {batch.topic}, topic-partition {batch.partition}, offsets {batch.offsets[0]} to {until - 1}"
            self.fail(ConverterFailed(f"{where}: {error}").at((batch.topic, batch.partition)))
            return
        except ConnectorError as error:
            self.fail(error)
            return
        if self._given(records):
            self._put_until = until if stopped_by is None else stopped_by[0]
            if stopped_by is not None:
                self.fail(stopped_by[1])

    def _decided(self, records: DecodedRecords) -> tuple[DecodedRecords, tuple[int, ConnectorError] | None]:
        """The records to put; and the offset of a rejected one at which the range ends, with the reason, if there is.

        Records that an earlier attempt at the range delivered, or had set aside for good, are left out.
        """
        batch = records.batch
        offsets = batch.offsets.to_numpy()
        wanted = offsets >= self.planned.accepted
        for at in sorted(records.rejected):
            if not wanted[at]:
                continue
            rejected = Records(batch, tombstones=True).rejected(
                at, *records.rejected[at], records.rejected_by.get(at, "")
            )
            self._asked = True
            decision = self._policy.decide(rejected)
            if not isinstance(decision, SetAside):
                return records.where(wanted & (np.arange(len(offsets)) < at)), (rejected.offset, decision.error)
            self._progress.set_aside(rejected.offset)
            self._tally.add(rejected)
        return (records if wanted.all() else records.where(wanted)), None

    def _given(self, records: DecodedRecords) -> bool:
        """Whether the sink took the records; if not, the range has ended."""
        if not len(records):
            return True
        if self._superseded():
            return False
        found = SinkRecords(records)
        try:
            if self._sink is None:
                self._sink = self._settings.sink.open()
            self._sink.put(found)
        except ConnectorError as error:
            self._refused(error)
            return False
        put = Delivered(len(found), found.offsets[0].as_py(), found.offsets[-1].as_py(), self._settings.sink.address)
        self._put = put if self._put is None else _together(self._put, put)
        return True

    def finish(self) -> None:
        """The range was read to its end: what was put is flushed."""
        self._put_until = self.planned.end
        self._flush()

    def fail(self, error: ConnectorError) -> None:
        """Ends the range for a reason of its own, or for trouble with reading it; what was put before is flushed."""
        if not self._flush():
            return
        if error.reaction.range_again_s is not None:
            self._progress.again = Again(self.planned.tries, error.reaction.range_again_s)
        elif error.reaction.range_retries:
            retry = TransformRetry(self._settings.registry_patience_ms, self._settings.registry_pause_ms)
            allowed = f"errors.retry.timeout={retry.timeout_ms}"
            self._try_again(retry.again(self.planned.tries), error, type(error), allowed)
        else:
            self._progress.fail(error)

    def _flush(self) -> bool:
        """Whether everything that was put is durable, and so counts. The range has ended, in either case."""
        self.ended = True
        if self._sink is not None:
            if self._superseded():
                return False
            try:
                self._sink.flush()
            except ConnectorError as error:
                self._refused(error)
                return False
        self._progress.reach(self._put_until)
        self._delivered = self._put
        return True

    def _superseded(self) -> bool:
        """Whether a newer attempt wants the topic-partition; the range has ended then."""
        if not self._claim.superseded():
            return False
        self.ended, self._progress.again = True, Again(self.planned.tries, CLAIM_WAIT_S)
        return True

    def _refused(self, error: ConnectorError) -> None:
        """The sink does not take records, or does not have them durably: none of what was put counts."""
        self.ended = True
        if not isinstance(error, RetryLater):
            self._progress.fail(error)
            return
        bounds = self._settings.restart
        allowed = f"{MOST}={bounds.most}"
        self._try_again(PutRetry(bounds).again(self.planned.tries), error, RecordSinkFailed, allowed)

    def _try_again(
        self, again: Again | None, error: ConnectorError, failed: type[ConnectorError], allowed: str
    ) -> None:
        """Ends the range, to be tried again as long as the settings say. allowed: which key, and its value."""
        name = self._settings.name
        if again is None:
            message = f"{error} {allowed} allows no further try; raise it, or set -1 for no end."
            self._progress.fail(failed(message).at(error.topic_partition))
            return
        log.warning("connector %s: %s Trying again in %.1f s", name, error, again.wait_s)
        self._progress.again = again

    def acknowledge(self) -> None:
        """Has what was set aside kept for good; where that fails, nothing from the first such record on is accepted."""
        if not self._asked:
            return
        try:
            self._policy.flush(self.planned)
        except ConnectorError as error:
            self._progress.not_kept = error.failure()

    def release(self) -> None:
        """Closes the sink, and lets the topic-partition go."""
        if self._sink is not None:
            self._sink.close()
        self._claim.release()

    def outcome(self, lost: Sequence[LostOffsets] = ()) -> RangeOutcome:
        """What became of the range. lost: what Kafka no longer had of it."""
        outcome = self._progress.outcome((), Known(), time.time())
        aside = self._tally.below(outcome.accepted_until)
        return replace(outcome, set_aside=aside, lost=tuple(lost), delivered=self._delivered)


def _together(first: Delivered, then: Delivered) -> Delivered:
    return replace(first, records=first.records + then.records, last=then.last)


class RecordTask:
    """All ranges of one task, one after the other. read: gives the records of a range; None: from Kafka."""

    def __init__(self, settings: RecordSinkSettings, read: Read | None = None) -> None:
        configure_worker(settings.name)
        collect_garbage_rarely()
        self._settings = settings
        self._read_range, self._reads_kafka = read or partial(from_kafka, on_lost=self._on_lost), read is None
        self._lost: dict[tuple[str, int], tuple[LostOffsets, ...]] = {}
        self._flushes: dict[tuple[str, int], RecordFlush] = {}

    def run(self, ranges: Sequence[PlannedRange]) -> tuple[RangeOutcome, ...]:
        """Reads all ranges, and flushes each. A defect is raised."""
        steps = steps_for(self._settings, policy_for_records(self._settings)) if ranges else RecordSteps()
        try:
            small = SmallRanges(self._settings.kafka, ranges if self._reads_kafka else (), steps.needs)
            with reading(ranges, partial(self._read, small, steps.needs)) as batches:
                for planned, item in batches:
                    flush = self._flush(planned, steps)
                    if not flush.ended:
                        take(flush, item)
                    if flush.ended:
                        batches.skip(planned)
            for flush in self._flushes.values():
                flush.acknowledge()
        finally:
            for flush in self._flushes.values():
                flush.release()
            steps.policy.close()
        give_back()
        return tuple(flush.outcome(self._lost.get(key, ())) for key, flush in self._flushes.items())

    def _read(self, small: SmallRanges, parts: RecordParts, planned: PlannedRange) -> Iterator[RecordBatch]:
        """In the reading thread, where there is one."""
        together = small.take(planned)
        yield from self._read_range(self._settings.kafka, planned, parts) if together is None else together

    def _on_lost(self, planned: PlannedRange, lost: Sequence[LostOffsets]) -> None:
        """In the reading thread, after the last batch of a range."""
        self._lost[planned.topic, planned.partition] = tuple(lost)

    def _flush(self, planned: PlannedRange, steps: RecordSteps) -> RecordFlush:
        key = (planned.topic, planned.partition)
        if key not in self._flushes:
            self._flushes[key] = RecordFlush(planned, self._settings, steps)
            self._flushes[key].begin()
        return self._flushes[key]


def steps_for(settings: RecordSinkSettings, policy: RejectPolicy) -> RecordSteps:
    """The value converter's decoder, and transforms, are kept in this process from micro-batch to micro-batch."""
    from parquet_sink.convert.decoders import decoder_for  # loads only what this connector needs
    from parquet_sink.transform.building import chain_of

    chain = chain_of(settings.transforms, settings.key, settings.header, settings.sink.needs)
    return RecordSteps(decoder_for(settings.value), chain, policy)
