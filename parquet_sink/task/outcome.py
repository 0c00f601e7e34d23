"""What a Spark task reports to the driver of a range, by value; the events and history records that it brings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from parquet_sink import __version__
from parquet_sink.history.records import Origin, Sender, UploadRecord, range_record, upload_record
from parquet_sink.history.writer import HistoryWriter, writer_for
from parquet_sink.model.events import (
    Event,
    FileAccepted,
    FileFailed,
    FileNotified,
    FilePassedOver,
    OffsetsPassedOver,
    RangeFailed,
    RangeFlushed,
    RangePostponed,
    RecordsDelivered,
    RecordsSetAside,
)
from parquet_sink.model.ranges import Again, LearnedSchema, LossCause, LostOffsets, PlannedRange
from parquet_sink.model.receipts import Failure, Receipt
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.settings import address_of


@dataclass(frozen=True)
class RangeOutcome:
    """How far a range got. Everything of it below `accepted_until` (exclusive) is accepted or has no row.

    again: set when the rest will be tried again; failure: why it will not. Never both. ended_at_s: epoch seconds.
    diverted: records below `accepted_until` that this attempt diverted, None for none. waiting: the file at which it
    ended to be tried again, None where there is none. read: records that Kafka had. lost: offsets that it no longer
    had, and that are passed over. delivered: what this attempt gave to a record sink, as far as that has it durably.
    value_bytes: of all values that were read.
    """

    planned: PlannedRange
    accepted_until: int
    receipts: tuple[Receipt, ...]
    failure: Failure | None
    learned: LearnedSchema
    again: Again | None = None
    ended_at_s: float = 0.0
    diverted: RecordsSetAside | None = None
    waiting: Receipt | None = None
    read: int = 0
    lost: tuple[LostOffsets, ...] = ()
    delivered: RecordsDelivered | None = None
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


def sender_of(settings: SinkSettings, origin: Origin = Origin.RUN) -> Sender:
    """What the history says of all files that are sent with these settings."""
    table, target = settings.target.target_table, address_of(settings.target)
    return Sender(table, target, settings.fingerprint, __version__, origin)


def history_of(settings: SinkSettings) -> HistoryWriter:
    """The history of the connector, to be written by this process."""
    return writer_for(settings.name, Path(settings.history_file), settings.history)


def record_outcomes(history: HistoryWriter, sender: Sender, outcomes: Sequence[RangeOutcome]) -> None:
    """Notes the files of ranges, and the ranges of which anything is done with. Raises nothing."""
    begun = [one for one in outcomes if one.accepted_until > one.planned.start]
    ranges = [range_record(one.planned, sender, one.ended_at_s, one.accepted_until) for one in begun]
    history.add(_all_uploads(outcomes, sender), ranges)


def record_uploads(history: HistoryWriter, sender: Sender, outcomes: Sequence[RangeOutcome]) -> None:
    """Notes the files alone, of what are no ranges of Kafka's records. Raises nothing."""
    history.add(_all_uploads(outcomes, sender))


def _all_uploads(outcomes: Sequence[RangeOutcome], sender: Sender) -> list[UploadRecord]:
    return [record for outcome in outcomes for record in _uploads(outcome, sender)]


def _uploads(outcome: RangeOutcome, sender: Sender) -> Iterator[UploadRecord]:
    """In offset order; not a file that was passed over and whose records could not be diverted: it comes again."""
    for receipt in (*outcome.receipts, *([] if outcome.waiting is None else [outcome.waiting])):
        if receipt.passed_over is None or receipt.next_offset <= outcome.accepted_until:
            yield upload_record(receipt, sender, outcome.ended_at_s, outcome.planned.topic_id)


def events_of(connector: str, outcome: RangeOutcome) -> Iterator[Event]:
    """Its files in offset order, each with the notice that a task posted; what is lost or was diverted; then the range.

    The same outcome always gives equal events.
    """
    for receipt in outcome.receipts:
        if receipt.passed_over is None or receipt.next_offset <= outcome.accepted_until:  # else it comes again
            event = file_event(receipt, outcome.ended_at_s)
            yield event
            if receipt.notice is not None:
                yield FileNotified(connector, event.at_s, receipt.notice.notice_id, receipt.notice.cause)
    planned = outcome.planned
    for one in _passed_over(outcome):
        yield OffsetsPassedOver(connector, outcome.ended_at_s, planned.topic, planned.partition, *one)
    yield from filter(None, (outcome.diverted, outcome.delivered))
    yield _end_of_range(connector, outcome)


def _end_of_range(connector: str, outcome: RangeOutcome) -> Event:
    """How the range ended: failed, to come again, or done."""
    planned = outcome.planned
    if outcome.failure is not None:
        return RangeFailed(
            connector=connector,
            at_s=outcome.ended_at_s,
            topic=planned.topic,
            partition=planned.partition,
            start=planned.start,
            end=planned.end,
            accepted_until=outcome.accepted_until,
            failure=outcome.failure,
        )
    if outcome.again is not None:
        again, tries = outcome.again, outcome.again.tries
        answers = () if outcome.waiting is None else outcome.waiting.answers
        reason = tries.log[-1].cause if tries.log else ""
        return RangePostponed(
            connector=connector,
            at_s=outcome.ended_at_s,
            topic=planned.topic,
            partition=planned.partition,
            start=planned.start,
            end=planned.end,
            accepted_until=outcome.accepted_until,
            attempts=tries.attempts,
            elapsed_s=tries.elapsed_s,
            wait_s=again.wait_s,
            trying=tries.trying,
            answers=answers,
            reason=reason,
        )
    accepted = [receipt for receipt in outcome.receipts if receipt.accepted]
    records, rows = sum(one.records for one in accepted), sum(one.rows for one in accepted)
    records += 0 if outcome.delivered is None else outcome.delivered.records
    size_bytes = sum(one.size_bytes for one in accepted)
    return RangeFlushed(
        connector=connector,
        at_s=outcome.ended_at_s,
        topic=planned.topic,
        partition=planned.partition,
        start=planned.start,
        end=planned.end,
        files=len(accepted),
        records=records,
        rows=rows,
        size_bytes=size_bytes,
        read=outcome.read,
        gaps=outcome.gaps,
    )


def _passed_over(outcome: RangeOutcome) -> Iterator[LostOffsets]:
    """What is lost for good by this outcome.

    A range that comes again meets its losses again, but not what retention took below where it is accepted: whoever
    reads it again takes that for delivered.
    """
    done = outcome.failure is None and outcome.again is None
    for one in outcome.lost:
        if done:
            yield one
        elif one.cause is LossCause.RETENTION and one.start < outcome.accepted_until:
            yield one._replace(end=min(one.end, outcome.accepted_until))


def file_event(receipt: Receipt, ended_at_s: float) -> Event:
    """What became of a file. ended_at_s: epoch seconds, for a receipt that does not say when it was accepted."""
    at_s = ended_at_s if receipt.accepted_at is None else receipt.accepted_at
    refused = FileFailed if receipt.passed_over is None else FilePassedOver
    kind = FileAccepted if receipt.accepted else refused
    return kind(receipt.connector, at_s, receipt.topic, receipt.partition, receipt)
