"""One Spark task of a record sink, and the one place where the order of its effects is written.

For each range [start, end):

  1. its batches are read in offset order, perhaps ahead of what is put, a small range (`kafka.several_ranges`)
     perhaps together with others
  2. records are decoded and transformed; of one that fails the policy   (`transform.chain`, `task.record_steps`)
     decides: the range ends before it, or it is diverted
  3. the worker's lease is looked at, where it has one, here and         (`RecordSink.put`)
     before 4; the sink takes the others, batch by batch
  4. the sink has all of them durably                                    (`RecordSink.flush`)
  5. diverted records are acknowledged                                   (`RejectPolicy.flush`)
  6. how far it got goes to the driver                                   (`RangeOutcome`)
  7. the driver notes accepted offsets, then any failure                 (`spark.sink`)
  8. the next tick commits the accepted offsets to the group             (`planner.range_plans`)

Where a range ends before its end, what was put is flushed all the same, and counts. A crash before 8 puts the records
again: a sink gets each at least once, in offset order within a topic-partition.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from parquet_sink.config.key import ems
from parquet_sink.convert.decoded import Decoder
from parquet_sink.errors import ConnectorError, RecordSinkFailed, RetryLater
from parquet_sink.model.events import RecordsDelivered
from parquet_sink.model.ranges import Again, LearnedSchema, LostOffsets, PlannedRange, Tries, Trying
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Stage
from parquet_sink.process import lease
from parquet_sink.process.memory import give_back
from parquet_sink.rows.run import Records
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.targets.record_sink import RecordSink, SinkRecords
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.range_attempt import CLAIM_WAIT_S, RangeAttempt, may_deliver
from parquet_sink.task.record_steps import RecordSteps, reject_unread, steps_of_record_sink
from parquet_sink.task.task import RangesTask, Read
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


class RecordFlush(RangeAttempt):
    """Steps 2 to 5 of `task.record_task` for one range. steps: with a decoder and a chain."""

    def __init__(self, planned: PlannedRange, settings: RecordSinkSettings, steps: RecordSteps) -> None:
        assert steps.decoder is not None
        assert steps.transforms is not None
        super().__init__(planned, settings, steps.policy)
        self._settings = settings
        self._decoder: Decoder = of_trees(steps.decoder)
        self._chain: TransformChain = steps.transforms
        self._sink: RecordSink | None = None
        self._put_until = planned.start
        self._put: RecordsDelivered | None = None
        """What was put and is not flushed yet."""
        self._delivered: RecordsDelivered | None = None

    def _add(self, batch: RecordBatch) -> None:
        until = batch.next_offset
        if until <= self.planned.accepted:  # an earlier attempt at this range has delivered them
            return
        records, stopped_by = self._decided(self._decode(batch))
        if self._given(records):
            self._put_until = until if stopped_by is None else stopped_by[0]
            if stopped_by is not None:
                self.fail(stopped_by[1])

    def _decode(self, batch: RecordBatch) -> DecodedRecords:
        if batch.unread is None:
            return self._chain.apply(batch, self._decoder)
        rejected = {0: (Stage.VALUE_CONVERTER, batch.unread.reason)}
        return DecodedRecords(batch, pa.array([], pa.int64()), (), rejected=rejected)

    def _decided(self, records: DecodedRecords) -> tuple[DecodedRecords, tuple[int, ConnectorError] | None]:
        """The records to put; and the offset of a rejected one at which the range ends, with the reason, if there is.

        Records that an earlier attempt at the range delivered, or had diverted for good, are left out.
        """
        batch = records.batch
        offsets = batch.offsets.to_numpy()
        wanted = offsets >= self.planned.accepted
        for at in sorted(records.rejected):
            if not wanted[at]:
                continue
            if batch.unread is not None:
                rejected = reject_unread(batch, batch.unread)
            else:
                by = records.rejected_by.get(at, "")
                rejected = Records(batch, tombstones=True).rejected(at, *records.rejected[at], by)
            self._asked = True
            if (stopped_by := self._policy.decide(rejected)) is not None:
                return records.where(wanted & (np.arange(len(offsets)) < at)), (rejected.offset, stopped_by)
            self._divert(rejected.offset)
            self._tally.add(rejected)
        return (records if wanted.all() else records.where(wanted)), None

    def _given(self, records: DecodedRecords) -> bool:
        """Whether the sink took the records; if not, the range has ended."""
        if not len(records):
            return True
        if not self._may_go_on():
            return False
        found = SinkRecords(records)
        try:
            if self._sink is None:
                self._sink = self._settings.sink.open()
            self._sink.put(found)
        except ConnectorError as error:
            self._refused(error)
            return False
        last = found.offsets[-1].as_py()
        if self._put is not None:
            self._put = replace(self._put, records=self._put.records + len(found), last=last)
        else:
            self._put = RecordsDelivered(
                connector=self._connector,
                at_s=0.0,  # in `outcome`
                topic=self.planned.topic,
                partition=self.planned.partition,
                records=len(found),
                first=found.offsets[0].as_py(),
                last=last,
                place=self._settings.sink.address,
            )
        return True

    def finish(self) -> None:
        """The range was read to its end: what was put is flushed."""
        self._put_until = self.planned.end
        self._flush()

    def fail(self, error: ConnectorError) -> None:
        """Ends the range for a reason of its own, or for trouble with reading it; what was put before is flushed."""
        if self._flush():
            self._react(error)

    def _flush(self) -> bool:
        """Whether everything that was put is durable, and so counts. The range has ended, in either case."""
        self.ended = True
        if self._sink is not None:
            if not self._may_go_on():
                return False
            try:
                self._sink.flush()
            except ConnectorError as error:
                self._refused(error)
                return False
        self._reach(self._put_until)
        self._delivered = self._put
        return True

    def _may_go_on(self) -> bool:
        """Not when a newer attempt wants the topic-partition, or the worker's lease is over; the range has ended then.

        None of what was put counts.
        """
        owned = may_deliver(self._settings.kafka.owned)
        if owned and not self._claim.superseded():
            return True
        self.ended, self._again = True, Again(self.planned.tries, CLAIM_WAIT_S if owned else lease.PAUSE_S)
        if not owned:
            log.warning("connector %s: nothing more is put into the sink: %s", self._connector, lease.OVER)
        return False

    def _refused(self, error: ConnectorError) -> None:
        """The sink does not take records, or does not have them durably: none of what was put counts."""
        self.ended = True
        if not isinstance(error, RetryLater):
            self._fail_for(error)
            return
        bounds = self._settings.restart
        self._try_again(PutRetry(bounds).again(self.planned.tries), error, RecordSinkFailed, f"{MOST}={bounds.most}")

    def release(self) -> None:
        """Closes the sink, and lets the topic-partition go."""
        if self._sink is not None:
            self._sink.close()
        super().release()

    def outcome(self, lost: Sequence[LostOffsets] = ()) -> RangeOutcome:
        """What became of the range. lost: what Kafka no longer had of it."""
        found = self._outcome((), lost, learned=LearnedSchema())
        if self._delivered is None:
            return found
        return replace(found, delivered=replace(self._delivered, at_s=found.ended_at_s))


class RecordTask(RangesTask[RecordFlush]):
    """All ranges of one task, one after the other. read: gives the records of a range; None: from Kafka."""

    def __init__(self, settings: RecordSinkSettings, read: Read | None = None) -> None:
        super().__init__(settings.name, settings.kafka, read)
        self._settings = settings

    def run(self, ranges: Sequence[PlannedRange]) -> tuple[RangeOutcome, ...]:
        """Reads all ranges, and flushes each. A defect is raised."""
        steps = steps_of_record_sink(self._settings) if ranges else RecordSteps()
        try:
            self._take_all(ranges, steps)
            for flush in self._flushes.values():
                flush.acknowledge()
        finally:
            self._release(steps)
        give_back()
        return tuple(flush.outcome(self._lost.get(key, ())) for key, flush in self._flushes.items())

    def _made(self, planned: PlannedRange, steps: RecordSteps) -> RecordFlush:
        return RecordFlush(planned, self._settings, steps)
