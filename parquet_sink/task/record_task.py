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

from collections.abc import Iterator, Sequence
from functools import partial

from parquet_sink.kafka.small_ranges import SmallRanges
from parquet_sink.model.ranges import LostOffsets, PlannedRange
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.process.logs import configure_worker
from parquet_sink.process.memory import collect_garbage_rarely, give_back
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.policies import policy_for_records
from parquet_sink.task.read_ahead import reading
from parquet_sink.task.record_flush import RecordFlush
from parquet_sink.task.record_steps import RecordSteps
from parquet_sink.task.reject_policy import RejectPolicy
from parquet_sink.task.task import Read, from_kafka, take


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
