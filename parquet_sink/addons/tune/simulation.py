"""The sink in simulated time: its own admission, task assignment and rotation, driven by a load.

What is simulated is time alone: when records arrive, when ticks come, how long micro-batches and uploads take
(`model.Durations`). Which ranges are due, up to where and why, which of them a micro-batch takes, how they are
dealt to Spark tasks, and where their files end, is decided by the functions that decide it in the sink. Ticks at which
nothing can be due are not looked at, so that an idle hour costs nothing.
"""

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Final

from parquet_sink.addons.tune.model import Durations, Load, Machine, PartitionLoad, Thresholds
from parquet_sink.addons.tune.work import RangeFiles, Sent, Slots, files_of, learned, run_batch
from parquet_sink.files.rotation import Limits, Reason
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.planner.admission import (
    Candidate,
    Unflushed,
    by_task,
    due_range,
    records_per_file,
    seen_ms,
    select_batch,
    tick_ms,
    with_along,
)
from parquet_sink.planner.clock_schedule import last_boundary_ms, next_boundary_ms
from parquet_sink.spark.slots import share

TYPICAL_RECORDS: Final = 10_000
"""What a record's Parquet bytes are known from at the start: the sink has run before."""
NEVER: Final = float("inf")


@dataclass
class _Partition:
    """Where a topic-partition stands. start: its first unflushed offset. wake_ms: before then it cannot be due.

    to_ms: records that arrive later are not waited for.
    """

    load: PartitionLoad
    to_ms: float = NEVER
    start: int = 0
    last_batch: int = 0
    wake_ms: float = NEVER

    def high(self, at_ms: float) -> int:
        """Where it ends then."""
        return self.load.backlog + self.load.arrivals.count(at_ms)

    def arrived_ms(self, offset: int) -> float:
        """When the record at an offset arrived; what waited at the start came before it."""
        waiting = self.load.backlog
        if offset < waiting:
            return self.load.backlog_age_ms * (offset / waiting - 1)
        return self.load.arrivals.arrived_ms(offset - waiting)


class SimulatedConnector:
    """One connector: its ticks and micro-batches, one after the other.

    to_ms: a topic-partition is done with when all that arrived until then is at the target. sent: the files there, in
    the order in which micro-batches made them. batches_ms: when tasks of each micro-batch began, and when all had
    ended. cut: whether a range was longer than its share of a micro-batch, or waited for the next one.
    """

    def __init__(
        self, load: Load, thresholds: Thresholds, durations: Durations, machine: Machine, to_ms: float = NEVER
    ) -> None:
        self._flush, self._durations, self._machine = thresholds, durations, machine
        self._slots = share(machine.slots, machine.connectors)
        self.ticks = Ticks(thresholds, durations.jitter_ms)
        self.partitions = [_Partition(one, to_ms) for one in load.partitions]
        self._numbers = {(one.topic, one.partition): number for number, one in enumerate(load.partitions)}
        self._learned = {one.topic: learned(TYPICAL_RECORDS, one.sizes) for one in load.partitions}
        self._limits = Limits(thresholds.commit_size_bytes, thresholds.commit_records)
        self._began_ms = load.began_ms
        self._wakes: list[tuple[float, int]] = []
        self.sent: list[Sent] = []
        self.batches_ms: list[tuple[float, float]] = []
        self.cut = False
        for number in range(len(self.partitions)):
            self._schedule(number)

    @property
    def next_ms(self) -> float:
        """The next tick at which something may be due; infinite when nothing ever is."""
        while self._wakes and self._wakes[0][0] != self.partitions[self._wakes[0][1]].wake_ms:
            heapq.heappop(self._wakes)
        return self.ticks.at(self._wakes[0][0]) if self._wakes else NEVER

    def tick(self, slots: Slots) -> None:
        """The tick at `next_ms`, and the micro-batch that it finds work for."""
        at = self.next_ms
        now = self.ticks.clock_ms(at)
        looked = at + self._durations.look_ms
        woken = self._woken(now)
        due = [span for number in woken if (span := self._due(number, at, now)) is not None]
        asleep = (number for number, one in enumerate(self.partitions) if one.wake_ms < NEVER)
        found = with_along(due, (self._unflushed(number, at, now) for number in asleep), self._flush, int(now))
        woken = sorted({*woken, *(self._numbers[topic, part] for _, (topic, part, _) in found)})
        chosen = select_batch(found, self._flush, self._slots, alone=len(self.partitions) == 1)
        self.cut = self.cut or len(chosen) < len(found) or _shorter(found, chosen)
        done = self._run(chosen, looked, slots) if chosen else at
        self.ticks.visit(at, done)
        for number in woken if self.ticks.regular else self._waiting(woken):
            self._schedule(number)

    def _waiting(self, woken: Sequence[int]) -> list[int]:
        """These, and all others that were expected to wake later: what came in a long micro-batch counts as older."""
        others = (number for number, one in enumerate(self.partitions) if one.wake_ms < NEVER)
        return sorted({*woken, *others})

    def _woken(self, now_ms: float) -> list[int]:
        woken = []
        while self._wakes and self._wakes[0][0] <= now_ms:
            wake_ms, number = heapq.heappop(self._wakes)
            if wake_ms == self.partitions[number].wake_ms:
                self.partitions[number].wake_ms = NEVER
                woken.append(number)
        return sorted(woken)

    def _due(self, number: int, tick_ms: float, now_ms: float) -> tuple[int, Candidate] | None:
        """As the planner asks for each topic-partition (`Planner.tick`)."""
        one, found = self.partitions[number], self._unflushed(number, tick_ms, now_ms)
        before = None if found.oldest_ms is None else self._end_before(one, found.high, tick_ms, int(now_ms))
        span = due_range(
            *(found.start, found.high, found.oldest_ms, self._learned[found.topic], self._flush, int(now_ms)),
            scheduled_end=before,
        )
        return None if span is None else (found.last_batch, (found.topic, found.partition, span))

    def _unflushed(self, number: int, tick_ms: float, now_ms: float) -> Unflushed:
        one = self.partitions[number]
        seen_ms = self._seen_ms(one, tick_ms, one.start)
        oldest, high = None if seen_ms > now_ms else int(seen_ms), one.high(tick_ms + self._durations.look_ms)
        return Unflushed(one.last_batch, one.load.topic, one.load.partition, one.start, high, oldest)

    def _end_before(self, one: _Partition, high: int, tick_ms: float, now_ms: int) -> int | None:
        """Up to where records were seen before the last time at which files end by the clock."""
        boundary = last_boundary_ms(now_ms + self._began_ms, self._flush)
        if boundary is None:
            return None
        at_ms, offsets = boundary - self._began_ms, range(one.start, high)
        end = one.start + bisect_left(offsets, at_ms, key=lambda offset: int(self._seen_ms(one, tick_ms, offset)))
        return end if end > one.start else None

    def _seen_ms(self, one: _Partition, tick_ms: float, offset: int) -> float:
        """When the planner sees a record; after the tick at `tick_ms`, no later than it will be.

        Of what waits at the start it knows the timestamp of the first record.
        """
        if offset < one.load.backlog:
            return -one.load.backlog_age_ms
        found_ms = one.arrived_ms(offset) - self._durations.look_ms
        return self.ticks.seen_ms(found_ms) if found_ms <= tick_ms else found_ms

    def _run(self, chosen: Sequence[Candidate], looked_ms: float, slots: Slots) -> float:
        """Runs a micro-batch; when the next tick may come."""
        durations = self._durations.of_batch(len(self.batches_ms))
        begin_ms = looked_ms + durations.plan_ms
        planned = [PlannedRange(topic, part, span.start, span.end, str(span.reason)) for topic, part, span in chosen]
        tasks = min(self._slots, self._machine.tasks_max or self._slots)
        piles = [[self._files(one) for one in pile] for pile in by_task(planned, tasks)]
        sent, done = run_batch(piles, begin_ms, slots, self._machine, durations)
        self.sent += sent
        self.batches_ms.append((begin_ms, done))
        for one in planned:
            partition = self.partitions[self._numbers[one.topic, one.partition]]
            partition.start, partition.last_batch = one.end, len(self.batches_ms)
        self._learn(piles)
        return done + durations.finish_ms

    def _files(self, planned: PlannedRange) -> RangeFiles:
        number, reason = self._numbers[planned.topic, planned.partition], Reason(planned.reason)
        sizes, per_record = self.partitions[number].load.sizes, self._learned[planned.topic]
        files = files_of(planned.end - planned.start, reason, self._limits, sizes, per_record)
        return RangeFiles(number, planned.start, tuple(files))

    def _learn(self, piles: Sequence[Sequence[RangeFiles]]) -> None:
        """What the last file of each topic taught; where a full file is another number of records then, all wake."""
        before = dict(self._learned)
        for pile in piles:
            for one in pile:
                load = self.partitions[one.key].load
                self._learned[load.topic] = learned(one.files[-1][0], load.sizes)
        fewer = {
            topic
            for topic, found in self._learned.items()
            if records_per_file(found, self._flush) < records_per_file(before[topic], self._flush)
        }
        if fewer:
            for number, partition in enumerate(self.partitions):
                if partition.load.topic in fewer and partition.wake_ms < NEVER:
                    self._schedule(number)

    def _schedule(self, number: int) -> None:
        """Sets when it is to be looked at: when it may be old enough, or there may be enough of it."""
        one = self.partitions[number]
        seen_ms = self._seen_ms(one, self.ticks.next_ms, one.start)
        if seen_ms == NEVER or one.arrived_ms(one.start) > one.to_ms:
            return
        whole = records_per_file(self._learned[one.load.topic], self._flush)
        enough_ms = one.arrived_ms(one.start + whole - 1) - self._durations.look_ms
        boundary = next_boundary_ms(int(seen_ms) + self._began_ms, self._flush)
        by_clock_ms = NEVER if boundary is None else boundary - self._began_ms
        one.wake_ms = min(enough_ms, seen_ms + self._flush.commit_interval_ms, by_clock_ms)
        heapq.heappush(self._wakes, (one.wake_ms, number))


def _shorter(found: Sequence[tuple[int, Candidate]], chosen: Sequence[Candidate]) -> bool:
    """Whether a range was cut to its share."""
    return sum(len(span) for *_, span in chosen) < sum(len(span) for _, (*_, span) in found)


def run_together(connectors: Sequence[SimulatedConnector], machine: Machine, until_ms: Sequence[float]) -> None:
    """Runs connectors that share the machine's slots, each until its time is over or nothing more can be due."""
    slots = Slots(machine.slots)
    waiting = [(one.next_ms, number) for number, one in enumerate(connectors)]
    heapq.heapify(waiting)
    while waiting:
        at_ms, number = heapq.heappop(waiting)
        if at_ms <= until_ms[number]:
            connectors[number].tick(slots)
            heapq.heappush(waiting, (connectors[number].next_ms, number))


class Ticks:
    """As Spark triggers them: at multiples of the period, and at once after a micro-batch that took longer.

    Only ticks at which something may be due are visited; those between are known to come, and count as looks all the
    same. jitter_ms: by how much the planner's clock differs from one tick to the next, at most.
    """

    def __init__(self, flush: FlushSettings, jitter_ms: float) -> None:
        self._flush, self._period, self._jitter = flush, tick_ms(flush), jitter_ms
        self._visited: list[float] = []
        self._free: list[float] = []
        self.count = 0
        self.next_ms = 0.0

    def clock_ms(self, tick_ms: float) -> float:
        """What the planner's clock shows in this tick, whole milliseconds."""
        return float(floor(tick_ms + self._jitter * ((floor(tick_ms) * 2_654_435_761 & 0xFFFF) / 0xFFFF)))

    def at(self, wake_ms: float) -> float:
        """The first tick to come at which the planner's clock shows `wake_ms`, or more."""
        tick = self.next_ms
        if wake_ms - self._jitter > tick:
            tick = max(tick, self._aligned(wake_ms - self._jitter))
        while self.clock_ms(tick) < wake_ms:
            tick = self._after(tick)
        return tick

    def visit(self, tick_ms: float, free_ms: float) -> None:
        """This tick was looked at, and the next may come from `free_ms` on."""
        self.count += 1 + max(round((tick_ms - self.next_ms) / self._period), 0)
        self._visited.append(tick_ms)
        self.next_ms = max(free_ms, self._after(tick_ms))
        self._free.append(self.next_ms)

    @property
    def regular(self) -> bool:
        """Whether the next tick comes so soon after the last that what is new at it is as old as it seems."""
        return self.next_ms == seen_ms(self.next_ms, self._visited[-1], self._flush)

    def seen_ms(self, wanted: float) -> float:
        """When a record counts as arrived that is there from a time on (`admission.seen_ms`).

        That is what the planner's clock shows in the first tick from then on; visited or not, or the next to come.
        """
        i = bisect_left(self._visited, wanted)
        earliest = self._free[i - 1] if i else 0.0
        if i and wanted <= earliest:
            tick = min(earliest, self._visited[i]) if i < len(self._visited) else earliest
            return seen_ms(self.clock_ms(tick), self.clock_ms(self._visited[i - 1]), self._flush)
        tick = earliest if wanted <= earliest else self._aligned(wanted)
        return self.clock_ms(min(tick, self._visited[i]) if i < len(self._visited) else tick)

    def _aligned(self, at_ms: float) -> float:
        return ceil(at_ms / self._period) * float(self._period)

    def _after(self, tick_ms: float) -> float:
        return floor(tick_ms / self._period) * float(self._period) + self._period
