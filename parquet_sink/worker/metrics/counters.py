"""Counters and histograms for Prometheus, and what each event adds to them.

Those whose labels are known before anything happens begin with 0 when their connector does: Prometheus sees no growth
in a series that begins with 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from parquet_sink.files.rotation import Reason
from parquet_sink.model.events import (
    ConnectorFailed,
    ConnectorRestarting,
    ConnectorWaiting,
    Event,
    EventsDropped,
    FileAccepted,
    FileArchived,
    FileFailed,
    FileNotified,
    FilePassedOver,
    FlushIntervalExceeded,
    OffsetCommitted,
    OffsetsPassedOver,
    RangeFlushed,
    RangePostponed,
    RecordsDelivered,
    RecordsSetAside,
)
from parquet_sink.model.ranges import AttemptCount, LossCause, Trying
from parquet_sink.model.receipts import Archiving, Receipt
from parquet_sink.model.rejected import Stage, stage_name
from parquet_sink.targets.outcome import Verdict
from parquet_sink.worker.metrics.labels import TopicLabels, label

FRESHNESS_S: Final = (0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 14_400, 86_400)
UPLOAD_S: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
FILE_BYTES: Final = (1e4, 1e5, 1e6, 4e6, 16e6, 64e6, 256e6, 1e9)
FAILED: Final = "failed"
PASSED_OVER: Final = "passed_over"
ARCHIVED: Final = "archived"
TAKEN: Final = "taken"
GIVEN_UP: Final = "given_up"
REASONS: Final = [reason for reason in Reason if reason is not Reason.BATCH]
"""Files of DataFrames are no connector's."""
STAGES: Final = sorted({stage_name(stage) for stage in Stage})


@dataclass(frozen=True)
class Declared:
    """A counter or histogram. known: values of its labels beside the connector that are known beforehand."""

    series: Counter | Histogram
    labels: tuple[str, ...]
    known: tuple[tuple[str, ...], ...]


class Counters:
    """All of them, in one registry. Names and texts are an interface: docs/reference/metrics.md is made of them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry, self._topics = registry, TopicLabels()
        self.declared: list[Declared] = []
        self.read = self._by_topic("records_read", "Records read from Kafka, counted when their range is done.")
        self.records = self._by_topic("records", "Records in accepted files, or delivered without a file.")
        self.rows = self._by_topic("rows", "Rows in accepted files; more than records where lists are exploded.")
        self.bytes = self._by_topic("uploaded_bytes", "Bytes of accepted files.")
        self.gaps = self._by_topic(
            "offset_gaps", "Offsets without a record: transaction markers, aborted or compacted records. No loss."
        )
        self.files = self._counter("files", "Accepted files, by the reason they were closed for.", "reason", REASONS)
        self.refused = self._counter(
            "refused_files",
            "Files that were not accepted: the connector failed, or they were passed over (error.policy=CONTINUE).",
            "fate",
            (FAILED, PASSED_OVER),
        )
        self.archived = self._counter(
            "archived_files",
            "Accepted files at the archive: archived, or failed (not there, and not tried again).",
            "outcome",
            (ARCHIVED, FAILED),
        )
        self.notices = self._counter(
            "notices", "Notices of accepted files at the webhook: taken, or given up.", "outcome", (TAKEN, GIVEN_UP)
        )
        self.uploads = self._counter(
            "uploads",
            "Upload attempts. refused: for good; retriable: certainly not taken; unknown: perhaps taken.",
            "outcome",
            Verdict,
        )
        self.answers = self._counter(
            "upload_answers", "Upload attempts by HTTP status; an empty status is no answer.", "status"
        )
        self.upload_retries = self._counter("upload_retries", "Attempts at files that were not accepted before.")
        self.range_retries = self._counter(
            "range_retries",
            "Ranges put off to be tried again. transform: converters and schema registry, too; put: a record sink.",
            "trying",
            Trying,
        )
        self.rejects = self._counter(
            "rejects",
            "Records without a row that were diverted, by Kafka Connect's name of the stage.",
            "stage",
            STAGES,
        )
        self.dead_letters = self._counter(
            "dead_letters", "Records written to the dead-letter topic; a repeated range writes its own again."
        )
        self.parked = self._counter("parked_records", "Records that were parked.")
        self.losses = self._counter(
            "losses", "Times that records were gone from Kafka before they were delivered.", "cause", LossCause
        )
        self.lost = self._counter(
            "lost_offsets", "Offsets skipped in losses, as far as their number is known.", "cause", LossCause
        )
        self.commits = self._counter("offset_commits", "Offsets of topic-partitions committed to the consumer group.")
        self.restarts = self._counter("restarts", "Restarts of the connector's query.")
        self.failures = self._counter("failures", "Times that the connector failed.")
        self.outages = self._counter("broker_outages", "Reports that no broker answers, one every 30 s.")
        self.exceeded = self._counter(
            "flush_interval_exceeded", "Ranges that had waited for more than twice the flush interval when taken up."
        )
        self.dropped = self._counter("dropped_events", "Events lost before they were counted: totals are too low.")
        self._add_histograms()

    def _add_histograms(self) -> None:
        self.freshness = self._histogram(
            "freshness_seconds",
            "Age of a file's oldest record, by Kafka's timestamp, when the file was accepted.",
            FRESHNESS_S,
        )
        self.upload_s = self._histogram(
            "upload_seconds", "Time until a file was accepted, with all attempts and the waits between.", UPLOAD_S
        )
        self.write_s = self._histogram("write_seconds", "Time to write a file.", UPLOAD_S)
        self.file_bytes = self._histogram("file_bytes", "Sizes of accepted files.", FILE_BYTES)

    def begin(self, connector: str) -> None:
        """The series of a connector that are known beforehand: at 0, unless they are there already."""
        for one in self.declared:
            for values in one.known:
                one.series.labels(label(connector), *values)

    def forget(self, connector: str) -> None:
        for one in self.declared:
            one.series.remove_by_labels({"connector": label(connector)})
        self._topics.forget(connector)

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

    def _of_connector(self, event: Event) -> None:
        name = label(event.connector)
        match event:
            case ConnectorRestarting():
                self.restarts.labels(name).inc()
            case ConnectorFailed():
                self.failures.labels(name).inc()
            case ConnectorWaiting():
                self.outages.labels(name).inc()
            case OffsetCommitted():
                self.commits.labels(name).inc()
            case FileNotified():
                self.notices.labels(name, TAKEN if event.given_up is None else GIVEN_UP).inc()
            case FlushIntervalExceeded():
                self.exceeded.labels(name).inc(event.partitions)
            case EventsDropped():
                self.dropped.labels(name).inc(event.count)

    def _accepted(self, event: FileAccepted) -> None:
        receipt = event.receipt
        name, topic = label(event.connector), self._topics.of(event.connector, event.topic)
        self.records.labels(name, topic).inc(receipt.records)
        self.rows.labels(name, topic).inc(receipt.rows)
        self.bytes.labels(name, topic).inc(receipt.size_bytes)
        self.files.labels(name, receipt.reason).inc()
        self.file_bytes.labels(name).observe(receipt.size_bytes)
        self.upload_s.labels(name).observe(receipt.seconds.get("upload", 0.0))
        self.write_s.labels(name).observe(receipt.seconds.get("write", 0.0))
        if receipt.oldest_ms is not None:
            self.freshness.labels(name).observe(max(event.at_s - receipt.oldest_ms / 1000, 0.0))
        self._attempts(name, receipt.answers, receipt.attempts)
        if receipt.archive is not None:
            self._archived(event.connector, receipt.archive)

    def _archived(self, connector: str, archive: Archiving) -> None:
        outcome = ARCHIVED if archive.cause is None else FAILED
        self.archived.labels(label(connector), outcome).inc()

    def _delivered(self, event: RecordsDelivered) -> None:
        topic = self._topics.of(event.connector, event.topic)
        self.records.labels(label(event.connector), topic).inc(event.records)

    def _refused(self, connector: str, receipt: Receipt, fate: str) -> None:
        name = label(connector)
        self.refused.labels(name, fate).inc()
        self._attempts(name, receipt.answers, receipt.attempts)

    def _postponed(self, event: RangePostponed) -> None:
        name = label(event.connector)
        self.range_retries.labels(name, event.trying).inc()
        self._attempts(name, event.answers, event.attempts)

    def _attempts(self, name: str, answers: Iterable[AttemptCount], attempts: int) -> None:
        """answers: to those that were made now. attempts: with those that were made at the same file before."""
        made = 0
        for one in answers:
            made += one.count
            self.uploads.labels(name, one.verdict).inc(one.count)
            status = "" if one.status is None else str(one.status)
            self.answers.labels(name, status).inc(one.count)
        if made:
            self.upload_retries.labels(name).inc(made if attempts > made else made - 1)

    def _set_aside(self, event: RecordsSetAside) -> None:
        name = label(event.connector)
        for stage, count in event.stages.items():
            self.rejects.labels(name, stage).inc(count)
        (self.dead_letters if event.dead_letters else self.parked).labels(name).inc(event.count)

    def _flushed(self, event: RangeFlushed) -> None:
        name, topic = label(event.connector), self._topics.of(event.connector, event.topic)
        self.read.labels(name, topic).inc(event.read)
        self.gaps.labels(name, topic).inc(event.gaps)

    def _lost(self, event: OffsetsPassedOver) -> None:
        name = label(event.connector)
        self.losses.labels(name, event.cause).inc()
        self.lost.labels(name, event.cause).inc(event.end - event.start)

    def _by_topic(self, name: str, text: str) -> Counter:
        labels = ("connector", "topic")
        made = Counter(f"parquet_sink_{name}", text, labels, registry=self._registry)
        self.declared.append(Declared(made, labels, ()))
        return made

    def _counter(self, name: str, text: str, kind: str | None = None, values: Iterable[str] = ()) -> Counter:
        """kind: its label beside the connector, with these values."""
        labels = ("connector",) if kind is None else ("connector", kind)
        made = Counter(f"parquet_sink_{name}", text, labels, registry=self._registry)
        known = ((),) if kind is None else tuple((str(value),) for value in values)
        self.declared.append(Declared(made, labels, known))
        return made

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        labels = ("connector",)
        made = Histogram(f"parquet_sink_{name}", text, labels, registry=self._registry, buckets=buckets)
        self.declared.append(Declared(made, labels, ((),)))
        return made
