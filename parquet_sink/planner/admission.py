"""Decides which ranges are due, up to which offset and why, and which Spark task reads which: pure functions.

A topic-partition is due when its unflushed records, their estimated Parquet bytes or the age of the oldest of them
passes a threshold, or when files end by the clock. The range [start, end) then becomes work of the next micro-batch. A
range is bounded, so that a backlog of any size is worked off in micro-batches of bounded length, which others wait for,
and ends where files end if it can, so that a backlog makes full files.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from parquet_sink.files.rotation import NEARLY_FULL, Reason
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.ranges import PlannedRange

RECORDS_PER_SECOND: Final = 100_000
"""What one Spark slot gets done, as long as no micro-batch has shown it: a cautious guess."""
LEAST_BATCH_S: Final = 1.0
MOST_BATCH_S: Final = 10.0
"""How long a micro-batch may take, about: a longer one costs less per record, but makes everyone else wait."""
LEAST_RANGE_RECORDS: Final = 100_000
MOST_RANGE_RECORDS: Final = 1_000_000
"""Shares of a micro-batch that a topic-partition gets, unless one file alone is larger; the most until it is known how
much a micro-batch gets done."""
RANGE_RECORDS: Final = 500
"""Records that cost as much as a range does by itself: some 200 where it holds a transaction's marker and no record,
some 2,000 where a file comes of it (a thousand of each, JSON of 150 bytes, 2 cores)."""
MOST_TASKS: Final = 64
"""Spark tasks of one micro-batch when `tasks.max` is not set."""
ALONG: Final = 0.5
"""A share of the interval: records as old as that go along with others that are due by age.

A micro-batch costs 0.1 s of CPU, whatever it takes, and a file a quarter of that. So the interval brings two of them at
most, and not one at each tick."""


@dataclass(frozen=True)
class Range:
    """Offsets [start, end) of one topic-partition, and why they are due.

    file_records: how many make a full file, about, and so where the range may be cut short; 0 for nowhere. along: it is
    not due, and goes along with others if there is room.
    """

    start: int
    end: int
    reason: Reason
    file_records: int = field(default=0, compare=False)
    along: bool = field(default=False, compare=False)

    def __len__(self) -> int:
        return self.end - self.start

    def cut(self, most: int) -> "Range":
        """At most so many offsets, in whole files; one file at least."""
        if len(self) <= most or not self.file_records:
            return self
        whole = max(most // self.file_records, 1) * self.file_records
        return replace(self, end=min(self.start + whole, self.end))


Candidate = tuple[str, int, Range]
"""topic, partition, range"""


class Unflushed(NamedTuple):
    """Offsets [start, high) of a topic-partition that is not due, and when the first of them came, epoch milliseconds.

    last_batch: the number of the micro-batch that took it last.
    """

    last_batch: int
    topic: str
    partition: int
    start: int
    high: int
    oldest_ms: int | None


def due_range(
    start: int,
    high: int,
    oldest_ms: int | None,
    bytes_per_record: float | None,
    flush: FlushSettings,
    now_ms: int,
    *,
    draining: bool = False,
    asked_until: int = 0,
    scheduled_end: int | None = None,
) -> Range | None:
    """The range of one topic-partition that is due now, None when nothing is.

    start: first unflushed offset. high: high watermark, or last stable offset (exclusive). bytes_per_record: Parquet
    bytes that a record became lately, None when unknown (then size never makes a range due). draining: what is there
    is due, whatever the thresholds say. asked_until: so is all that is there while something below this offset waits:
    somebody asked for a flush. scheduled_end: what is below it was seen before the last time at which files end by the
    clock, and is due because of that, by itself: no file goes on over that time.
    """
    if scheduled_end is not None and start < scheduled_end <= high:
        whole = records_per_file(bytes_per_record, flush)
        return Range(
            start, scheduled_end, Reason.SCHEDULE, whole if bytes_per_record else min(whole, MOST_RANGE_RECORDS)
        )
    waiting = high - start
    if waiting <= 0:
        return None
    whole = records_per_file(bytes_per_record, flush)
    reason = _reason(waiting, whole, oldest_ms, flush, now_ms, draining=draining, asked=start < asked_until)
    if reason is None:
        return None
    if reason in (Reason.RECORDS, Reason.SIZE):
        waiting = min(max(waiting // whole, 1) * whole, waiting)
    return Range(start, start + waiting, reason, whole if bytes_per_record else min(whole, MOST_RANGE_RECORDS))


def with_along(
    due: Sequence[tuple[int, Candidate]], others: Iterable[Unflushed], flush: FlushSettings, now_ms: int
) -> list[tuple[int, Candidate]]:
    """Those that are due, and if one is due by age those of the others that are half as old."""
    found = [*due]
    if any(span.reason is Reason.INTERVAL for _, (_, _, span) in due):
        earlier = replace(flush, commit_interval_ms=int(flush.commit_interval_ms * ALONG))
        for last_batch, topic, partition, start, high, oldest_ms in others:
            span = due_range(start, high, oldest_ms, None, earlier, now_ms)
            if span is not None:
                found.append((last_batch, (topic, partition, replace(span, along=True))))
    return found


def due_by_bytes(start: int, high: int, waiting_bytes: float, flush: FlushSettings) -> Range | None:
    """All that waits, when it is about as much as a file may have; where it is not known how many records that is.

    waiting_bytes: of Parquet, about.
    """
    if waiting_bytes < NEARLY_FULL * flush.commit_size_bytes:
        return None
    return Range(start, high, Reason.SIZE, records_per_file(waiting_bytes / (high - start), flush))


def records_per_file(bytes_per_record: float | None, flush: FlushSettings) -> int:
    """How many records make a full file, about.

    A little less than `commit.size.bytes` is full, as it is for a file that is open: what a range had beyond that, by a
    footer or a guess, would be a file of its own.
    """
    if not bytes_per_record:
        return flush.commit_records
    return max(1, min(flush.commit_records, int(NEARLY_FULL * flush.commit_size_bytes / bytes_per_record)))


def _reason(
    waiting: int, whole: int, oldest_ms: int | None, flush: FlushSettings, now_ms: int, *, draining: bool, asked: bool
) -> Reason | None:
    if waiting >= flush.commit_records:
        return Reason.RECORDS
    if waiting >= whole:
        return Reason.SIZE
    if draining:
        return Reason.END_OF_INPUT
    if asked:
        return Reason.REQUEST
    if oldest_ms is not None and now_ms - oldest_ms >= flush.commit_interval_ms:
        return Reason.INTERVAL
    return None


def tick_ms(flush: FlushSettings) -> int:
    """How often is looked: a quarter of the commit interval, between 0.25 and 1 s, so within a second of its age."""
    return min(max(flush.commit_interval_ms // 4, 250), 1_000)


def seen_ms(now_ms: float, last_ms: float | None, flush: FlushSettings) -> float:
    """When records count as arrived that a tick finds. last_ms: of the tick before, None for the first.

    While a micro-batch runs there are no ticks: what came meanwhile may be as old as that, and counts so.
    """
    return now_ms if last_ms is None else min(now_ms, last_ms + 2 * tick_ms(flush))


def batch_records(commit_interval_ms: int, slots: int, per_second: float | None = None, *, alone: bool = False) -> int:
    """Offsets that one micro-batch takes, about: what is done in a quarter of the interval, in which all others wait.

    per_second: offsets; None: as many as so many Spark slots may be expected to get done. alone: the connector has one
    topic-partition. One slot reads it, and nobody waits for that, because its records come one after the other in any
    case; so its micro-batches are as long as any may be.
    """
    seconds = min(max(commit_interval_ms / 4_000, LEAST_BATCH_S), MOST_BATCH_S)
    if alone:
        slots, seconds = 1, MOST_BATCH_S
    return int(seconds * (slots * RECORDS_PER_SECOND if per_second is None else per_second))


class Pace:
    """Offsets that micro-batches of a connector get done in a second, as those show that are not small.

    Between two micro-batches nothing is read for a part of a second, and each costs something by itself, so its length
    is to be what it is planned for, whatever a record costs.
    """

    def __init__(self) -> None:
        self.per_second: float | None = None
        """None until it is known."""
        self._taken: tuple[int, float] | None = None

    def begin(self, offsets: int, budget: int, at_s: float) -> None:
        """A micro-batch is taken, of a budget; it shows something if it takes half of that."""
        self._taken = (offsets, at_s) if 2 * offsets >= budget else None

    def end(self, at_s: float) -> None:
        """It is done. One is believed up to twice or half of what was known."""
        if self._taken is None:
            return
        offsets, begun_s = self._taken
        self._taken = None
        found = offsets / max(at_s - begun_s, 0.1)
        before = found if self.per_second is None else self.per_second
        self.per_second = max(min(found, before * 2), before / 2)


def select_batch(
    due_now: Sequence[tuple[int, Candidate]],
    flush: FlushSettings,
    slots: int,
    per_second: float | None = None,
    *,
    alone: bool = False,
) -> list[Candidate]:
    """Those that one micro-batch takes, cut to their shares of it; the rest waits for the next.

    Each comes with the number of the micro-batch that took its topic-partition last (0: none yet); the longest ago
    comes first, so that none starves behind a backlog of others; none goes along in the place of one that is due. What
    short ranges leave goes to long ones.
    per_second, alone: as of `batch_records`.
    """
    budget = left = batch_records(flush.commit_interval_ms, slots, per_second, alone=alone)
    most = MOST_RANGE_RECORDS if per_second is None else max(budget, LEAST_RANGE_RECORDS)
    chosen: list[Candidate] = []
    for _, candidate in sorted(due_now, key=lambda item: (item[1][2].along, item[0], item[1][:2])):
        if left <= 0:
            break
        chosen.append(candidate)
        left -= min(len(candidate[2]), LEAST_RANGE_RECORDS)
    taken: list[Candidate] = []
    for count, (topic, partition, span) in enumerate(sorted(chosen, key=lambda c: (len(c[2]), c[:2]))):
        share = min(max(budget // (len(chosen) - count), LEAST_RANGE_RECORDS), most)
        cut = span.cut(share)
        taken.append((topic, partition, cut))
        budget -= len(cut)
    return taken


def by_task(spans: Sequence[PlannedRange], tasks: int | None) -> list[list[PlannedRange]]:
    """Ranges dealt to at most `tasks` Spark tasks, longest first, each to the task with the least work so far.

    tasks None: one each, but no more than MOST_TASKS.
    """
    piles: list[list[PlannedRange]] = [[] for _ in range(min(tasks or MOST_TASKS, len(spans)))]
    loads = [0] * len(piles)
    for span in sorted(spans, key=lambda s: (s.start - s.end, s.topic, s.partition)):
        lightest = loads.index(min(loads))
        piles[lightest].append(span)
        loads[lightest] += span.end - span.start + RANGE_RECORDS
    return piles


def with_reading(piles: list[list[PlannedRange]], slots: int, cores: int) -> list[list[PlannedRange]]:
    """The same work, where each task reads ahead while it writes if there are cores for that, else reads itself.

    slots: of Spark; cores: of the driver's machine, which runs all tasks when Spark is local. Where every core has a
    task of its own a second thread only makes them wait for Python's lock and for memory: 3.6 µs of CPU per record
    without and 4.0 with it (2 cores, JSON of 150 bytes).
    """
    spare = len(piles) < cores or len(piles) * 2 < slots
    return [[replace(planned, read_ahead=spare) for planned in pile] for pile in piles]
