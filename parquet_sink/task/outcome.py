"""What a Spark task reports to the driver, by value."""

from dataclasses import dataclass

from parquet_sink.model.failure import Failure
from parquet_sink.model.ranges import Again, Known, LostOffsets, PlannedRange
from parquet_sink.model.receipts import Receipt
from parquet_sink.model.rejected import SetAsideCount


@dataclass(frozen=True)
class Delivered:
    """Records of a topic-partition that went without a file. first, last: their offsets. place: where, in words."""

    records: int
    first: int
    last: int
    place: str


@dataclass(frozen=True)
class RangeOutcome:
    """How far a range got. Everything of it below `accepted_until` (exclusive) is accepted or has no row.

    again: set when the rest will be tried again; failure: why it will not. Never both. ended_at_s: epoch seconds.
    set_aside: records below `accepted_until` that this attempt set aside, None for none. waiting: the file at which it
    ended to be tried again, None where there is none. read: records that Kafka had. lost: offsets that it no longer
    had, and that are passed over. delivered: what this attempt gave to a record sink, as far as that has it durably.
    value_bytes: of all values that were read.
    """

    planned: PlannedRange
    accepted_until: int
    receipts: tuple[Receipt, ...]
    failure: Failure | None
    learned: Known
    again: Again | None = None
    ended_at_s: float = 0.0
    set_aside: SetAsideCount | None = None
    waiting: Receipt | None = None
    read: int = 0
    lost: tuple[LostOffsets, ...] = ()
    delivered: Delivered | None = None
    value_bytes: int = 0

    @property
    def sizes(self) -> tuple[int, int, float] | None:
        """Records, bytes of their values, and of Parquet for them; None where not all of the range became files.

        Of Parquet without footers, as they were in the last file; in small files they are most of the bytes.
        """
        whole = self.failure is None and self.again is None and self.accepted_until >= self.planned.end
        per_record = self.learned.bytes_per_record
        if not whole or self.planned.accepted > self.planned.start or not self.value_bytes or per_record is None:
            return None
        file_bytes = sum(one.size_bytes for one in self.receipts if one.passed_over is None)
        return self.read, self.value_bytes, min(file_bytes, per_record * self.read)

    @property
    def gaps(self) -> int:
        """Offsets of the whole range at which there was no record: markers, aborted or compacted records."""
        lost = sum(one.end - one.start for one in self.lost if one.start >= self.planned.start)
        return max(self.planned.end - self.planned.start - self.read - lost, 0)
