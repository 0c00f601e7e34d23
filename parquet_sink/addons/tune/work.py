"""A simulated micro-batch: files of its ranges, Spark tasks on slots, uploads beside them."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from parquet_sink.addons.tune.model import Durations, Machine, Sizes
from parquet_sink.files.rotation import (
    GROUP_MEMORY_BYTES,
    GROUP_ROWS,
    Fill,
    GroupLimits,
    Limits,
    Reason,
    next_group,
    should_rotate,
)
from parquet_sink.targets.uploader import MOST_PARALLEL

GROUP = GroupLimits(GROUP_MEMORY_BYTES, GROUP_ROWS)
File = tuple[int, float, Reason]
"""Records, bytes, and why it was closed."""


def files_of(records: int, reason: Reason, limits: Limits, sizes: Sizes, per_record: float | None) -> Iterator[File]:
    """The files of a range with so many records, in order, as `files.accumulator` makes them of rows.

    reason: of the range. per_record: Parquet bytes of a record as they were learned before, None when unknown.
    """
    in_memory = max(sizes.memory_bytes or sizes.record_bytes, 1.0)
    held, left = 0, records
    while left:
        on_disk = Fill(held, int(sizes.file_bytes(held))) if held else Fill(0, 0)
        end = next_group(on_disk, limits, GROUP, footer_bytes=int(sizes.overhead), parquet_bytes_per_row=per_record)
        taken = min(left, end.rows, max(ceil(end.memory_bytes / in_memory), 1), limits.records - held)
        held, left = held + taken, left - taken
        size = sizes.file_bytes(held)
        per_record = max((size - sizes.overhead) / held, 0.01)
        closed = should_rotate(Fill(held, int(size)), limits)
        if closed is not None or not left:
            yield held, size, closed or reason
            held = 0


def learned(records: int, sizes: Sizes) -> float:
    """Parquet bytes per record that a file with so many teaches."""
    return max((sizes.file_bytes(records) - sizes.overhead) / records, 0.01)


@dataclass(frozen=True, slots=True)
class Sent:
    """A file at the target. first: its first offset."""

    key: int
    first: int
    records: int
    size_bytes: float
    reason: Reason
    accepted_ms: float


class Slots:
    """When each of Spark's slots is free again; connectors share them."""

    def __init__(self, count: int) -> None:
        self._free = [0.0] * count

    def busy(self, at_ms: float) -> int:
        """How many are not free then."""
        return sum(free > at_ms for free in self._free)

    def take(self, at_ms: float) -> float:
        """Takes the slot that is free first; when it is the task's, at `at_ms` or later."""
        return max(heapq.heappop(self._free), at_ms)

    def give(self, at_ms: float) -> None:
        """It is free from then on."""
        heapq.heappush(self._free, at_ms)


@dataclass(frozen=True)
class RangeFiles:
    """A range, and the files it becomes. key: of its topic-partition."""

    key: int
    start: int
    files: tuple[File, ...]


def run_batch(
    piles: Sequence[Sequence[RangeFiles]], begin_ms: float, slots: Slots, machine: Machine, durations: Durations
) -> tuple[list[Sent], float]:
    """Runs one pile of ranges on each task; the files in order of each topic-partition, and when all is done.

    Tasks that share a core take turns on it: what they compute takes as much longer as there are more of them.
    """
    at_once = min(len(piles) + slots.busy(begin_ms), machine.slots)
    slower = max(at_once / machine.cores, 1.0)
    sent: list[Sent] = []
    done = begin_ms
    for pile in piles:
        at = slots.take(begin_ms)
        ended = at
        for file, ended_ms in _task(pile, at, slower, durations):
            ended = max(ended, ended_ms)
            if file is not None:
                sent.append(file)
        slots.give(ended)
        done = max(done, ended)
    return sent, done


def _task(
    pile: Sequence[RangeFiles], at_ms: float, slower: float, durations: Durations
) -> Iterator[tuple[Sent | None, float]]:
    """What one task ends, and when: files are written one after the other, and sent while the next are written."""
    threads = [at_ms] * MOST_PARALLEL
    record_ms = durations.record_us * slower / 1000
    now = at_ms
    for one in pile:
        now += durations.range_ms * slower
        first, begun, accepted = one.start, now, now
        for records, size, reason in one.files:
            now = max(now + records * record_ms, begun)  # no more than one file waits behind the one that is sent
            begun = max(now, accepted, heapq.heappop(threads))
            accepted = begun + durations.upload_ms + size / durations.upload_bytes_per_s * 1000
            heapq.heappush(threads, accepted)
            yield Sent(one.key, first, records, size, reason, accepted), accepted
            first += records
    yield None, now
