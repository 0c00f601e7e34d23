"""How far one range got, what of that counts as accepted, and what ends or repeats it."""

import logging
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import random
from typing import Final

from parquet_sink.errors import ConnectorError
from parquet_sink.files.lock import PartitionClaim
from parquet_sink.kafka.dead_letter_headers import stage_name
from parquet_sink.model.failure import Failure
from parquet_sink.model.ranges import Again, Known, PlannedRange, Tries, Trying
from parquet_sink.model.receipts import Receipt
from parquet_sink.model.rejected import Rejected, SetAsideCount
from parquet_sink.task.outcome import RangeOutcome

log = logging.getLogger(__name__)

FIRST_PAUSE_MS: Final = 300
_MOST_DOUBLINGS: Final = 40
CLAIM_WAIT_S: Final = 5.0


class SetAsideTally:
    """Of one range. Records come in any order. place: where they are kept, in words. dead_letters: if in a topic."""

    def __init__(self, place: str = "", *, dead_letters: bool = False) -> None:
        self._place, self._dead_letters = place, dead_letters
        self._offsets: dict[str, array[int]] = {}
        self._first: Rejected | None = None

    def add(self, rejected: Rejected) -> None:
        """A record that the policy took."""
        self._offsets.setdefault(stage_name(rejected.stage), array("q")).append(rejected.offset)
        if self._first is None or rejected.offset < self._first.offset:
            self._first = rejected

    def below(self, offset: int) -> SetAsideCount | None:
        """Those below an offset; None when there are none."""
        if self._first is None or self._first.offset >= offset:
            return None
        stages: dict[str, int] = {}
        last = self._first.offset
        for stage, found in self._offsets.items():
            ordered = sorted(found)
            if count := bisect_left(ordered, offset):
                stages[stage], last = count, max(last, ordered[count - 1])
        first = self._first
        return SetAsideCount(
            count=sum(stages.values()),
            first=first.offset,
            last=last,
            stages=stages,
            reason=first.reason,
            place=self._place,
            dead_letters=self._dead_letters,
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


@dataclass
class RangeProgress:
    """Of one attempt at a range.

    reached: everything below is in a file, was set aside, or has no row. failure: why the connector cannot go on, the
    first reason. again: when the range is to be tried again. thrown_away: whether rows were thrown away that no file
    has. set_aside_from: the first record that was set aside, by itself or with a refused file; not_kept: why that is
    not kept for good. read: records that Kafka had.
    """

    planned: PlannedRange
    reached: int
    failure: Failure | None = None
    again: Again | None = None
    thrown_away: bool = False
    set_aside_from: int | None = None
    not_kept: Failure | None = None
    read: int = 0

    def reach(self, offset: int) -> None:
        """Everything below this offset is done with."""
        self.reached = max(self.reached, offset)

    def fail(self, error: ConnectorError) -> None:
        """The first reason counts."""
        self.failure = self.failure or error.failure()

    def set_aside(self, offset: int) -> None:
        """The policy took the record at this offset, or is to take those of a file that begins there."""
        self.set_aside_from = offset if self.set_aside_from is None else min(self.set_aside_from, offset)

    def outcome(self, receipts: Sequence[Receipt], learned: Known, now: float) -> RangeOutcome:
        """What the driver is told. receipts: of the range's files, in offset order. now: epoch seconds."""
        refused = next((one.failure for one in receipts if one.failure is not None), None)
        again = refused.again if refused is not None else self.again
        failure = self.failure
        if refused is not None:
            failure = refused if again is None else None
        if self.not_kept is not None:
            failure, again = failure or self.not_kept, None
        done = tuple(one for one in receipts if one.failure is None or one.failure.again is None)
        waiting = next((one for one in receipts if one not in done), None)
        return RangeOutcome(
            planned=self.planned,
            accepted_until=self._accepted_until(receipts),
            receipts=done,
            failure=failure,
            learned=learned,
            again=again,
            ended_at_s=now,
            waiting=waiting,
            read=self.read,
        )

    def _accepted_until(self, receipts: Sequence[Receipt]) -> int:
        """What an earlier attempt reached is never taken back."""
        until = self._delivered_until(receipts)
        if self.not_kept is not None and self.set_aside_from is not None:
            until = min(until, self._file_before(self.set_aside_from, receipts))
        return max(until, self.planned.accepted)

    @staticmethod
    def _file_before(offset: int, receipts: Sequence[Receipt]) -> int:
        """Where the file begins that has rows on both sides of an offset, for it comes again as a whole."""
        return next((one.first_offset for one in receipts if one.first_offset < offset < one.next_offset), offset)

    def _delivered_until(self, receipts: Sequence[Receipt]) -> int:
        """What was reached, unless a file on the way there was not accepted, or was thrown away."""
        refused = next((one for one in receipts if one.failure is not None), None)
        if refused is not None:
            return max(refused.next_offset, self.planned.start)
        if self.thrown_away:
            return max((one.next_offset for one in receipts), default=self.planned.start)
        return self.reached


def claim(of: PartitionClaim, progress: RangeProgress, connector: str) -> bool:
    """Whether it is ours now. If not, `progress` says why: an earlier attempt holds it still, or the disk failed."""
    try:
        if of.acquire():
            return True
    except ConnectorError as error:
        progress.fail(error)
        return False
    progress.again = Again(progress.planned.tries, CLAIM_WAIT_S)
    log.warning(
        "connector %s: topic %s, topic-partition %d: an earlier attempt has not ended yet; trying again in %g s",
        connector,
        progress.planned.topic,
        progress.planned.partition,
        CLAIM_WAIT_S,
    )
    return False
