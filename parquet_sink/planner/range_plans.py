"""Which ranges are in flight or retried: recorded beside the group's offsets when taken, committed when accepted."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from parquet_sink.errors import RunFilesLost
from parquet_sink.files.rotation import Reason
from parquet_sink.kafka.group.committed import RangePlan
from parquet_sink.model.events import OffsetCommitted, RangePlanned
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import Accepted, LearnedSchema, PlannedRange, Trying
from parquet_sink.planner.admission import Candidate, Pace, Range, batch_records, select_batch
from parquet_sink.planner.context import PlanningContext
from parquet_sink.planner.recreated_topics import RecreatedTopics
from parquet_sink.planner.start_offsets import topics_of
from parquet_sink.state.store import REPORTED, SLOTS


@dataclass(frozen=True)
class PendingRetry:
    """A range whose rest is not accepted yet, and when (by the planner's clock) it may be tried again."""

    planned: PlannedRange
    tried_s: float
    due_s: float

    def now(self, seconds: float) -> PlannedRange:
        """The work of the next attempt; the time since the first counts on."""
        tries = self.planned.tries
        elapsed_s = tries.elapsed_s + max(seconds - self.tried_s, 0.0)
        return replace(self.planned, tries=replace(tries, elapsed_s=elapsed_s))


def pending_retry(
    planned: PlannedRange, found: Accepted | None, now_s: float, taken_s: float | None = None
) -> PendingRetry | None:
    """What is left of a range after a micro-batch; None when nothing is, or it is not ours to try again.

    taken_s: when the micro-batch was planned, by the same clock. A transform's tries take as long as all that is done
    for them; uploads are timed where they are made.
    """
    if found is None or (found.start, found.end) != (planned.start, planned.end) or found.again is None:
        return None
    if found.next_offset >= planned.end:
        return None
    tries = found.again.tries
    if taken_s is not None and tries.trying is planned.tries.trying is Trying.TRANSFORM:
        tries = replace(tries, elapsed_s=tries.elapsed_s + max(now_s - taken_s, 0.0))
    repeated = planned.repeated or (planned.tries.may_be_there and not tries.log)  # else its first file tells itself
    tried = replace(planned, accepted=found.next_offset, tries=tries, repeated=repeated)
    return PendingRetry(tried, now_s, now_s + found.again.wait_s)


class RangePlans:
    """Takes ranges, so that after a crash or a failure the same ones come again as the same files.

    A range is repeated as a whole, from what was known when it was taken first: a file depends on all rows before it
    in its range. `in_flight`: the ranges of the last micro-batch. `retries`: those of them that must be tried again.
    `restored`: those that an earlier run was flushing when it ended, by the offset that is committed. reported: as of
    `Planner`.
    """

    def __init__(self, context: PlanningContext, recreated: RecreatedTopics, *, reported: bool) -> None:
        self._context, self._recreated, self._reported = context, recreated, reported
        self.restored: dict[PartitionKey, RangePlan] = {}
        self._settled: dict[PartitionKey, int] = {}
        self.in_flight: dict[PartitionKey, PlannedRange] = {}
        self._taken_s: float | None = None
        self._pace = Pace()
        self.retries: dict[PartitionKey, PendingRetry] = {}
        self._settings_digest = context.settings.fingerprint
        self._recorded: dict[PartitionKey, PlannedRange] | None = None
        self._last_batches: dict[PartitionKey, int] = {}
        self._batches = 0
        self._removed: set[PartitionKey] = set()

    def accept(self, finished: Mapping[PartitionKey, int]) -> dict[PartitionKey, int]:
        """How far the ranges of the last micro-batch, which go to `finished` (exclusive), are accepted.

        Raises RunFilesLost where that is not known.

        Not those of topics that were deleted since: Spark goes on naming that micro-batch until the next one, when a
        topic of that name may be there again.
        """
        starts, settled = self._context.offsets.starts, self._settle(finished)
        accepted = {key: offset for key, offset in settled.items() if key in starts and key not in self._removed}
        for key, offset in accepted.items():
            if offset > starts[key]:
                self._context.epochs.on_accepted(key)
        starts.update(accepted)
        return accepted

    def _settle(self, finished: Mapping[PartitionKey, int]) -> dict[PartitionKey, int]:
        """A range with a pending retry is accepted in part. What the sink reports as done is done, and nothing else."""
        ended = {key: planned for key, planned in self.in_flight.items() if finished.get(key) == planned.end}
        found = self._reports(ended) if ended and self._reported else {}
        if ended and not self.has_retries:
            self._pace.end(self._context.now())
        self._settled |= {key: self._settle_one(key, planned, found.get(key)) for key, planned in ended.items()}
        self.in_flight = {}
        return {key: self._settled.get(key, end) for key, end in finished.items()}

    def _settle_one(self, key: PartitionKey, planned: PlannedRange, found: Accepted | None) -> int:
        """Up to where a range is accepted. Its rest comes again: as it was, or planned again with other bounds."""
        span = None if found is None or found.again is None else found.again.span
        if found is not None and span is not None:
            rest = span[1] if span[0] == planned.start else span[0]
            self.restored[key] = RangePlan(rest, planned.end, planned.reason)
            planned, found = replace(planned, end=rest), replace(found, end=rest)
        retry = pending_retry(planned, found, self._context.now(), self._taken_s)
        if retry is not None:
            self.retries[key] = retry
            return retry.planned.accepted
        return planned.end

    def _reports(self, ended: Mapping[PartitionKey, PlannedRange]) -> dict[PartitionKey, Accepted]:
        """What the sink reports of these ranges; nothing of one that a program left out of what it gave to the sink.

        Raises RunFilesLost where there is no report, or one that says neither that a range is done nor that it comes
        again: then these offsets may have been accepted or not.
        """
        state = self._context.state
        found = {(one.topic, one.partition): one for one in state.accepted(ended)}
        reported = state.get(REPORTED)
        for key, planned in ended.items():
            one = found.get(key)
            if not reported or (one is not None and not _is_reported(planned, one)):
                raise RunFilesLost(
                    f"Topic {key[0]}, topic-partition {key[1]}: what became of offsets {planned.start} to "
                    f"{planned.end - 1} is not known, because the connector's state file does not say: it was removed "
                    f"or changed while it was in use. Keep others out of connect.ems.tmp.dir. Nothing is lost: what is "
                    f"not committed is read again."
                ).at(key)
        return found

    def commit(self, accepted: Mapping[PartitionKey, int]) -> None:
        """Everything below `accepted` was accepted. Raises OffsetsLost, AnotherInstance, KafkaFailed."""
        group = self._context.group
        committed = group.uncommitted(accepted)
        self._recreated.check(topics_of(committed))
        if committed:
            self._context.remember(committed)
        group.commit(accepted, self.plans())
        name, now_s = self._context.settings.name, self._context.now()
        self._context.state.append_events([OffsetCommitted(name, now_s, *key, at) for key, at in committed.items()])

    def plans(self) -> dict[PartitionKey, RangePlan]:
        """What stands beside the offsets of ranges that are not done."""
        return {**self.restored, **{key: _plan(retry.planned) for key, retry in self.retries.items()}}

    @property
    def has_retries(self) -> bool:
        """Whether uploads fail: a retry is pending or in flight."""
        return bool(self.retries) or any(one.tries.attempts for one in self.in_flight.values())

    def forget(self, key: PartitionKey) -> None:
        """This topic-partition is not there any more."""
        self.restored.pop(key, None)
        self.retries.pop(key, None)
        self._last_batches.pop(key, None)
        self._settled.pop(key, None)
        self._removed.add(key)
        self._context.epochs.forget(key)
        self._context.group.forget(key)
        self._context.state.forget_partition(*key)

    def last_batch(self, key: PartitionKey) -> int:
        """The number of the micro-batch that took a range of this topic-partition last; 0: none yet."""
        return self._last_batches.get(key, 0)

    def next_retry_s(self) -> float:
        """Seconds until the next pending retry; infinite when there is none."""
        return min((retry.due_s for retry in self.retries.values()), default=math.inf) - self._context.now()

    def is_retry_pending(self, key: PartitionKey) -> bool:
        """Whether a range of this topic-partition has a pending retry that is not due yet."""
        return key in self.retries and self._context.now() < self.retries[key].due_s

    def hold(self) -> None:
        """Nothing is tried again now because of a pause, whose time does not count against what waits."""
        now_s = self._context.now()
        self.retries = {key: replace(retry, tried_s=now_s) for key, retry in self.retries.items()}

    def repeated(self, key: PartitionKey, position: int, end: int) -> Range | None:
        """The range that was being flushed when it failed, or an earlier run ended: it is repeated from its start."""
        if key in self.retries:
            planned = self.retries[key].planned
            return Range(planned.start, planned.end, Reason(planned.reason))
        plan = self.restored.get(key)
        if plan is None or not position < plan.end <= end:
            return None
        start = position if self._as_recorded(key, plan) is None else plan.start
        return Range(start, plan.end, Reason(plan.reason))

    def _as_recorded(self, key: PartitionKey, plan: RangePlan) -> PlannedRange | None:
        """The range as an earlier run took it, before it was perhaps planned again to end earlier; None: cut again.

        Its files cannot be made again when the state file was lost, or the settings are others, or the rest of a range
        could not come out as planned: then what is left is cut again, where it begins.
        """
        if self._recorded is None:
            self._recorded = self._context.state.planned(self._settings_digest)
        recorded = self._recorded.get(key)
        return recorded if recorded is not None and recorded.start == plan.start < plan.end <= recorded.end else None

    def take(self, found: list[tuple[int, Candidate]]) -> list[PlannedRange]:
        """As much as fits into one micro-batch, recorded beside the offsets before it begins."""
        group, starts = self._context.group, self._context.offsets.starts
        slots = self._context.state.get(SLOTS) or 1  # shared again while other connectors come and go
        flush, per_second, alone = self._context.settings.flush, self._pace.per_second, len(starts) == 1
        candidates = select_batch(found, flush, slots, per_second, alone=alone)
        if not candidates:
            return []
        budget = batch_records(flush.commit_interval_ms, slots, per_second, alone=alone)
        self._pace.begin(sum(len(span) for _, _, span in candidates), budget, self._context.now())
        self._batches += 1
        self._removed = set()
        self._last_batches.update({(topic, partition): self._batches for topic, partition, _ in candidates})
        work, fresh = self._work(candidates)
        for key in work.keys() - self.retries.keys():
            self._context.epochs.on_planned(key)
        plans = {key: _plan(planned) for key, planned in work.items()}
        self._recreated.check(topics_of(plans))
        self._context.state.record_planned(fresh, self._settings_digest)
        group.recommit({key: starts[key] for key in plans}, plans)
        self.restored = {
            key: plan for key, plan in self.restored.items() if key not in work or plan.start >= work[key].end
        }
        self.retries = {key: retry for key, retry in self.retries.items() if key not in plans}
        self._context.state.begin_batch(list(work))
        self.in_flight, self._settled, self._taken_s = work, {}, self._context.now()
        self._context.state.append_events([self._planned_event(one) for one in work.values()])
        return list(work.values())

    def _planned_event(self, planned: PlannedRange) -> RangePlanned:
        return RangePlanned(
            connector=self._context.settings.name,
            at_s=self._context.now(),
            topic=planned.topic,
            partition=planned.partition,
            start=planned.start,
            end=planned.end,
            reason=planned.reason,
            attempts=planned.tries.attempts,
        )

    def repeat(self, candidates: list[Candidate]) -> list[PlannedRange]:
        """Ranges that an earlier run recorded, and that Spark repeats before the first tick."""
        self.in_flight, _ = self._work(candidates)
        self._settled = {}
        self._context.state.begin_batch(list(self.in_flight))
        for key in self.in_flight:
            self._context.epochs.on_planned(key)
        return list(self.in_flight.values())

    def _work(self, candidates: list[Candidate]) -> tuple[dict[PartitionKey, PlannedRange], list[PlannedRange]]:
        """The ranges with all that a Spark task needs, and those that are taken for the first time.

        One that comes again carries what was known at its first time.
        """
        state, now_s = self._context.state, self._context.now()
        known = state.learned()
        work: dict[PartitionKey, PlannedRange] = {}
        fresh: list[PlannedRange] = []
        for topic, partition, span in candidates:
            key = (topic, partition)
            if key in self.retries:
                work[key] = self.retries[key].now(now_s)
                continue
            plan = self.restored.get(key)
            again = plan is not None and span.start < plan.end
            recorded = None if plan is None else self._as_recorded(key, plan)
            if plan is not None and recorded is not None and (plan.start, plan.end) == (span.start, span.end):
                work[key] = self._planned_range(topic, partition, span, recorded.known, repeated=again)
            else:
                learned = known.get(topic, LearnedSchema())
                work[key] = self._planned_range(topic, partition, span, learned, repeated=again)
                fresh.append(work[key])
        return work, fresh

    def _planned_range(
        self, topic: str, partition: int, span: Range, known: LearnedSchema, *, repeated: bool
    ) -> PlannedRange:
        return PlannedRange(
            topic=topic,
            partition=partition,
            start=span.start,
            end=span.end,
            reason=str(span.reason),
            accepted=self._context.offsets.starts[topic, partition],
            topic_id=self._context.ids.by_topic.get(topic, ""),
            known=known,
            repeated=repeated,
            epoch=self._context.epochs.to_verify((topic, partition)),
        )


def _is_reported(planned: PlannedRange, found: Accepted) -> bool:
    """Whether this is what became of this range: all of it is done, or its rest comes again."""
    same = (found.start, found.end) == (planned.start, planned.end)
    return same and (found.again is not None or found.next_offset >= planned.end)


def _plan(planned: PlannedRange) -> RangePlan:
    return RangePlan(planned.start, planned.end, planned.reason)
