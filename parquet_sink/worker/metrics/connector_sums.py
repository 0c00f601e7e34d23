"""What happened to one connector so far, as sums: for figures that have Kafka Connect's names."""

from collections.abc import Callable
from dataclasses import dataclass, field

from parquet_sink.model.events import (
    ConnectorFailed,
    Event,
    FileAccepted,
    FileFailed,
    OffsetCommitted,
    RangeFlushed,
    RangePostponed,
    RecordsDelivered,
    RecordsSetAside,
    SourcePolled,
)
from parquet_sink.worker.metrics.recent import Recent


@dataclass
class ConnectorSums:
    """clock: epoch seconds. Counts are of records, but `commits`, of offsets, and `retries`. last_error_s: epoch."""

    clock: Callable[[], float]
    read: int = 0
    sent: int = 0
    set_aside: int = 0
    dead_letters: int = 0
    commits: int = 0
    retries: int = 0
    last_error_s: float = 0.0
    recently_read: Recent = field(default_factory=Recent)
    recently_sent: Recent = field(default_factory=Recent)
    recent_commits: Recent = field(default_factory=Recent)
    recent_uploads_s: Recent = field(default_factory=Recent)
    polled: int = 0
    recently_polled: Recent = field(default_factory=Recent)
    recent_polls_s: Recent = field(default_factory=Recent)

    def add(self, event: Event) -> None:
        """Adds what an event of the connector tells."""
        now_s = self.clock()
        match event:
            case FileAccepted():
                self.sent += event.receipt.records
                self.recently_sent.add(now_s, event.receipt.records)
                self.recent_uploads_s.add(now_s, event.receipt.seconds.get("upload", 0.0))
                self.retries += max(sum(one.count for one in event.receipt.answers) - 1, 0)
            case RecordsDelivered():
                self.sent += event.records
                self.recently_sent.add(now_s, event.records)
            case SourcePolled():
                self.polled += event.polled
                self.set_aside += event.passed_over
                self.last_error_s = event.at_s if event.passed_over else self.last_error_s
                self.recently_polled.add(now_s, event.polled)
                self.recent_polls_s.add(now_s, event.longest_poll_s)
            case RangeFlushed():
                self.read += event.read
                self.recently_read.add(now_s, event.read)
            case RangePostponed():
                self.retries += max(sum(one.count for one in event.answers), 1)
            case RecordsSetAside():
                self.set_aside += event.count
                self.dead_letters += event.count if event.dead_letters else 0
                self.last_error_s = event.at_s
            case OffsetCommitted():
                self.commits += 1
                self.recent_commits.add(now_s, 1)
            case FileFailed() | ConnectorFailed():
                self.last_error_s = event.at_s
