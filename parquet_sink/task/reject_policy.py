"""What becomes of records that have no row: the range stops before the first one, or they are set aside.

The pipeline asks a policy about each rejected record, and has it acknowledge what it set aside before any of those
offsets counts as accepted: the order is in `task.task`.
"""

from dataclasses import dataclass
from typing import Protocol

from parquet_sink.errors import ConnectorError, InvalidRecord
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import VALUES_ONLY, RecordParts
from parquet_sink.model.rejected import Rejected, Stage


@dataclass(frozen=True)
class Stop:
    """The range ends before the record; nothing from it on is accepted. error: what the connector fails with."""

    error: ConnectorError


@dataclass(frozen=True)
class SetAside:
    """The policy takes the record, and the range goes on behind it."""


def stopped_by(rejected: Rejected) -> InvalidRecord:
    """What a connector fails with that stops at a record."""
    return InvalidRecord(
        topic=rejected.topic,
        partition=rejected.partition,
        offset=rejected.offset,
        reason=rejected.reason,
        may_pass=rejected.stage is not Stage.OBFUSCATION,
    )


class RejectPolicy(Protocol):
    """Decides about the rejected records of one Spark task."""

    @property
    def sets_aside(self) -> bool:
        """Whether any record may be set aside. If not, all rows before the first rejected record are delivered.

        If so, rows before and behind a rejected record may share a file. Should the policy stop all the same, the file
        that is open is thrown away, as it is when Kafka or the disk fails: the range is repeated from its start.
        """
        ...

    @property
    def needs(self) -> RecordParts:
        """What of a record it looks at beside its value. `single` is all that is needed for rejected records."""
        ...

    def decide(self, rejected: Rejected) -> Stop | SetAside:
        """In offset order for each range. A later attempt at the range brings the same records again.

        Raises ConnectorError when nothing can be set aside any more: then it is as if the policy said Stop.
        """
        ...

    def flush(self, planned: PlannedRange) -> None:
        """Returns when all records of this range that were set aside are kept for good. Raises ConnectorError if not.

        Called once for each range of which a record was asked about, after its last record, also when the range did
        not end well.
        """
        ...

    def close(self) -> None:
        """The task has ended, well or not; nothing is asked any more. Raises nothing."""
        ...


class StopAtRejected:
    """Nothing is set aside: the connector fails and names the record."""

    sets_aside = False
    needs = VALUES_ONLY

    def decide(self, rejected: Rejected) -> Stop:
        """The error that names the record."""
        return Stop(stopped_by(rejected))

    def flush(self, planned: PlannedRange) -> None:
        """Nothing is pending."""

    def close(self) -> None:
        """Nothing is open."""
