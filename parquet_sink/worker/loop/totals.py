"""Sums over the accepted files of one connector, and how each of its topic-partitions stands, for a view."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from parquet_sink.config.report import counted
from parquet_sink.model.events import RecordsDelivered
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PartitionProgress
from parquet_sink.model.receipts import Archiving, Receipt

RATE_WINDOW_S: Final = 10.0


@dataclass(frozen=True)
class PartitionView:
    """One topic-partition. lag: records. oldest_s: age of the oldest unflushed record. rate: accepted records/s.

    Of a range that is accepted in part the age is that of its first record until the planner looks again: a connector
    that failed there must not seem to have nothing that waits.
    away: it has no leader, or one that does not answer. held_at, held_s: as of `herder.values.PartitionProgress`.
    """

    topic: str
    partition: int
    lag: int
    oldest_s: float | None
    last: Receipt | None
    rate: float
    away: bool = False
    held_at: int | None = None
    held_s: float | None = None


@dataclass
class FileTotals:
    """Sums since `since_s` (epoch seconds): over accepted files, of records set aside, and of those without a file.

    last: the last file of each topic-partition.
    """

    since_s: float
    files: int = 0
    rows: int = 0
    size_bytes: int = 0
    set_aside: int = 0
    delivered: int = 0
    archived: int = 0
    not_archived: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    last: dict[PartitionKey, Receipt] = field(default_factory=dict)
    _recent: dict[PartitionKey, deque[tuple[float, int]]] = field(default_factory=dict)

    def add(self, receipt: Receipt) -> None:
        key = (receipt.topic, receipt.partition)
        self.files += 1
        self.rows += receipt.rows
        self.size_bytes += receipt.size_bytes
        self.reasons[receipt.reason] += 1
        self.last[key] = receipt
        self._recent.setdefault(key, deque()).append((receipt.accepted_at or 0.0, receipt.records))

    def add_archived(self, archive: Archiving) -> None:
        self.archived += archive.cause is None
        self.not_archived += archive.cause is not None

    def add_records(self, event: RecordsDelivered) -> None:
        self.delivered += event.records
        self._recent.setdefault((event.topic, event.partition), deque()).append((event.at_s, event.records))

    def rate(self, key: PartitionKey, now_s: float) -> float:
        """Records per second of a topic-partition that were accepted in the last RATE_WINDOW_S."""
        recent = self._recent.get(key, deque())
        while recent and recent[0][0] < now_s - RATE_WINDOW_S:
            recent.popleft()
        window_s = min(max(now_s - self.since_s, 1.0), RATE_WINDOW_S)
        return sum(records for _, records in recent) / window_s

    def is_still(self, progress: PartitionProgress) -> bool:
        """Whether nothing of a topic-partition waits, and nothing of it was accepted in the last RATE_WINDOW_S."""
        return progress.end <= progress.start and not self._recent.get((progress.topic, progress.partition))

    def partitions(
        self, progress: Sequence[PartitionProgress], accepted: Mapping[PartitionKey, int], now_s: float
    ) -> list[PartitionView]:
        """How topic-partitions stand at `now_s`, epoch seconds. accepted: next offsets, where newer."""
        return [self._partition(one, accepted.get((one.topic, one.partition), 0), now_s) for one in progress]

    def _partition(self, progress: PartitionProgress, accepted: int, now_s: float) -> PartitionView:
        key = (progress.topic, progress.partition)
        lag = max(progress.end - max(progress.start, accepted), 0)
        oldest_ms = progress.oldest_ms if lag > 0 else None
        oldest_s = None if oldest_ms is None else max(now_s - oldest_ms / 1000, 0.0)
        return PartitionView(
            topic=progress.topic,
            partition=progress.partition,
            lag=lag,
            oldest_s=oldest_s,
            last=self.last.get(key),
            rate=self.rate(key, now_s),
            away=progress.away,
            held_at=progress.held_at,
            held_s=None if progress.held_ms is None else max(now_s - progress.held_ms / 1000, 0.0),
        )


def describe_totals(totals: FileTotals, *, of_files: bool = True) -> str:
    """What was accepted so far, in words. of_files: whether it goes as files; else as records."""
    aside = f", {totals.set_aside:,} diverted" if totals.set_aside else ""
    if not of_files:
        return f"{counted(totals.delivered, 'record')}{aside}"
    if not totals.files:
        return f"no file yet{aside}"
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in totals.reasons.most_common())
    return f"{counted(totals.files, 'file')} ({reasons}), {totals.rows:,} rows, {format_size(totals.size_bytes)}{aside}"


def format_size(size_bytes: int) -> str:
    """Bytes in a unit that fits, 1,000 by 1,000."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:,.1f} {unit}"
    return f"{size_bytes:,} bytes"


def format_age(seconds: float | None) -> str:
    """An age in words short enough for a column."""
    if seconds is None:
        return "-"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.0f} h"
