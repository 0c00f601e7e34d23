"""What a micro-batch does with its time: Spark tasks on slots, ranges one after the other, uploads beside them."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from parquet_sink.addons.tune.files import File
from parquet_sink.addons.tune.model import Durations, Machine
from parquet_sink.files.rotation import Reason
from parquet_sink.targets.uploader import MOST_PARALLEL


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
