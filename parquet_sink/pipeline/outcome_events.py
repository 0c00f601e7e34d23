"""The events that the outcome of a range tells of."""

from collections.abc import Iterator

from parquet_sink.model.events import (
    Event,
    FileAccepted,
    FileFailed,
    FilePassedOver,
    OffsetsPassedOver,
    RangeFailed,
    RangeFlushed,
    RangePostponed,
    RecordsDelivered,
    RecordsSetAside,
)
from parquet_sink.model.lost import LossCause, LostOffsets
from parquet_sink.model.receipts import Receipt
from parquet_sink.pipeline.outcome import RangeOutcome


def events_of(connector: str, outcome: RangeOutcome) -> Iterator[Event]:
    """Its files in offset order, what is lost or was set aside, then the range.

    The same outcome always gives equal events.
    """
    for receipt in outcome.receipts:
        if receipt.passed_over is None or receipt.next_offset <= outcome.accepted_until:  # else it comes again
            yield _of_file(connector, receipt, outcome.ended_at_s)
    planned = outcome.planned
    about = (connector, outcome.ended_at_s, planned.topic, planned.partition, planned.start, planned.end)
    for one in _passed_over(outcome):
        yield OffsetsPassedOver(connector, outcome.ended_at_s, planned.topic, planned.partition, *one)
    if (aside := outcome.set_aside) is not None:
        counted = (aside.count, aside.first, aside.last, aside.stages, aside.reason)
        kept = (aside.place, aside.dead_letters)
        yield RecordsSetAside(connector, outcome.ended_at_s, planned.topic, planned.partition, *counted, *kept)
    if (delivered := outcome.delivered) is not None:
        where = (connector, outcome.ended_at_s, planned.topic, planned.partition)
        yield RecordsDelivered(*where, delivered.records, delivered.first, delivered.last, delivered.place)
    accepted = [receipt for receipt in outcome.receipts if receipt.accepted]
    if outcome.failure is not None:
        yield RangeFailed(*about, outcome.accepted_until, outcome.failure)
    elif outcome.again is not None:
        again, tries = outcome.again, outcome.again.tries
        answers = () if outcome.waiting is None else outcome.waiting.answers
        sofar = (outcome.accepted_until, tries.attempts, tries.elapsed_s, again.wait_s)
        reason = tries.log[-1].cause if tries.log else ""
        yield RangePostponed(*about, *sofar, tries.trying, answers, reason)
    else:
        records, rows = sum(one.records for one in accepted), sum(one.rows for one in accepted)
        records += 0 if delivered is None else delivered.records
        size_bytes = sum(one.size_bytes for one in accepted)
        yield RangeFlushed(*about, len(accepted), records, rows, size_bytes, outcome.read, outcome.gaps)


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


def _of_file(connector: str, receipt: Receipt, ended_at_s: float) -> Event:
    at_s = ended_at_s if receipt.accepted_at is None else receipt.accepted_at
    refused = FileFailed if receipt.passed_over is None else FilePassedOver
    kind = FileAccepted if receipt.accepted else refused
    return kind(connector, at_s, receipt.topic, receipt.partition, receipt)
