"""How far one range got, and what of that counts as accepted."""

from collections.abc import Sequence
from dataclasses import dataclass

from parquet_sink.errors import ConnectorError
from parquet_sink.model.failure import Failure
from parquet_sink.model.ranges import Again, Known, PlannedRange
from parquet_sink.model.receipts import Receipt
from parquet_sink.task.outcome import RangeOutcome


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
