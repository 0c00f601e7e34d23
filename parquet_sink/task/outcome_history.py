"""What the outcomes of ranges leave in the history of uploads."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from parquet_sink import __version__
from parquet_sink.history.records import Origin, Sender, UploadRecord, range_record, upload_record
from parquet_sink.history.writer import HistoryWriter, writer_for
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.settings import address_of
from parquet_sink.task.outcome import RangeOutcome


def sender_of(settings: SinkSettings, origin: Origin = Origin.RUN) -> Sender:
    """What the history tells of all files that are sent with these settings."""
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
    """In offset order; not a file that was passed over and whose records could not be set aside: it comes again."""
    for receipt in (*outcome.receipts, *([] if outcome.waiting is None else [outcome.waiting])):
        if receipt.passed_over is None or receipt.next_offset <= outcome.accepted_until:
            yield upload_record(receipt, sender, outcome.ended_at_s, outcome.planned.topic_id)
