"""What each event adds to the figures."""

from collections.abc import Iterable

from parquet_sink.model.archiving import Archiving
from parquet_sink.model.attempts import AttemptCount
from parquet_sink.model.events import (
    ConnectorFailed,
    ConnectorRestarting,
    ConnectorWaiting,
    Event,
    EventsDropped,
    FileAccepted,
    FileArchived,
    FileFailed,
    FilePassedOver,
    FlushIntervalExceeded,
    OffsetCommitted,
    OffsetsPassedOver,
    RangeFlushed,
    RangePostponed,
    RecordsDelivered,
    RecordsSetAside,
)
from parquet_sink.model.receipts import Receipt
from parquet_sink.worker.metrics.counted import ARCHIVED, FAILED, PASSED_OVER, Counted
from parquet_sink.worker.metrics.labels import TopicLabels, label


class Counting:
    """Adds events to figures, one by one."""

    def __init__(self, counted: Counted) -> None:
        self._counted, self._topics = counted, TopicLabels()

    def add(self, event: Event) -> None:
        """Events that no figure is about change nothing."""
        match event:
            case FileAccepted():
                self._accepted(event)
            case FileArchived():
                self._archived(event.connector, event.archive)
            case RecordsDelivered():
                self._delivered(event)
            case FileFailed():
                self._refused(event.connector, event.receipt, FAILED)
            case FilePassedOver():
                self._refused(event.connector, event.receipt, PASSED_OVER)
            case RecordsSetAside():
                self._set_aside(event)
            case RangeFlushed():
                self._flushed(event)
            case RangePostponed():
                self._postponed(event)
            case OffsetsPassedOver():
                self._lost(event)
            case _:
                self._of_connector(event)

    def begin(self, connector: str) -> None:
        """This connector is there, whether or not anything happens to it."""
        self._counted.begin(connector)

    def forget(self, connector: str) -> None:
        """This connector is not there any more."""
        self._counted.forget(connector)
        self._topics.forget(connector)

    def _of_connector(self, event: Event) -> None:
        name, counted = label(event.connector), self._counted
        match event:
            case ConnectorRestarting():
                counted.restarts.labels(name).inc()
            case ConnectorFailed():
                counted.failures.labels(name).inc()
            case ConnectorWaiting():
                counted.outages.labels(name).inc()
            case OffsetCommitted():
                counted.commits.labels(name).inc()
            case FlushIntervalExceeded():
                counted.exceeded.labels(name).inc(event.partitions)
            case EventsDropped():
                counted.dropped.labels(name).inc(event.count)

    def _accepted(self, event: FileAccepted) -> None:
        receipt, counted = event.receipt, self._counted
        name, topic = label(event.connector), self._topics.of(event.connector, event.topic)
        counted.records.labels(name, topic).inc(receipt.records)
        counted.rows.labels(name, topic).inc(receipt.rows)
        counted.bytes.labels(name, topic).inc(receipt.size_bytes)
        counted.files.labels(name, receipt.reason).inc()
        counted.file_bytes.labels(name).observe(receipt.size_bytes)
        counted.upload_s.labels(name).observe(receipt.seconds.get("upload", 0.0))
        counted.write_s.labels(name).observe(receipt.seconds.get("write", 0.0))
        if receipt.oldest_ms is not None:
            counted.freshness.labels(name).observe(max(event.at_s - receipt.oldest_ms / 1000, 0.0))
        self._attempts(name, receipt.answers, receipt.attempts)
        if receipt.archive is not None:
            self._archived(event.connector, receipt.archive)

    def _archived(self, connector: str, archive: Archiving) -> None:
        outcome = ARCHIVED if archive.cause is None else FAILED
        self._counted.archived.labels(label(connector), outcome).inc()

    def _delivered(self, event: RecordsDelivered) -> None:
        topic = self._topics.of(event.connector, event.topic)
        self._counted.records.labels(label(event.connector), topic).inc(event.records)

    def _refused(self, connector: str, receipt: Receipt, fate: str) -> None:
        name = label(connector)
        self._counted.refused.labels(name, fate).inc()
        self._attempts(name, receipt.answers, receipt.attempts)

    def _postponed(self, event: RangePostponed) -> None:
        name = label(event.connector)
        self._counted.range_retries.labels(name, event.trying).inc()
        self._attempts(name, event.answers, event.attempts)

    def _attempts(self, name: str, answers: Iterable[AttemptCount], attempts: int) -> None:
        """answers: to those that were made now. attempts: with those that were made at the same file before."""
        made = 0
        for one in answers:
            made += one.count
            self._counted.uploads.labels(name, one.verdict).inc(one.count)
            status = "" if one.status is None else str(one.status)
            self._counted.answers.labels(name, status).inc(one.count)
        if made:
            self._counted.upload_retries.labels(name).inc(made if attempts > made else made - 1)

    def _set_aside(self, event: RecordsSetAside) -> None:
        name, counted = label(event.connector), self._counted
        for stage, count in event.stages.items():
            counted.rejects.labels(name, stage).inc(count)
        (counted.dead_letters if event.dead_letters else counted.parked).labels(name).inc(event.count)

    def _flushed(self, event: RangeFlushed) -> None:
        name, topic = label(event.connector), self._topics.of(event.connector, event.topic)
        self._counted.read.labels(name, topic).inc(event.read)
        self._counted.gaps.labels(name, topic).inc(event.gaps)

    def _lost(self, event: OffsetsPassedOver) -> None:
        name = label(event.connector)
        self._counted.losses.labels(name, event.cause).inc()
        self._counted.lost.labels(name, event.cause).inc(event.end - event.start)
