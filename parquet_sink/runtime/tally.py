"""What an observer knows of one connector: sums over its receipts, and how each topic-partition stands. Pure."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from parquet_sink.model.progress import PartitionProgress
from parquet_sink.model.receipts import Receipt

RATE_WINDOW_S: Final = 10.0
Key = tuple[str, int]


@dataclass(frozen=True)
class Standing:
    """One topic-partition. lag: records. oldest_s: age of the oldest unflushed record. rate: accepted records/s.

    away: it has no leader, or one that does not answer.
    """

    topic: str
    partition: int
    lag: int
    oldest_s: float | None
    last: Receipt | None
    rate: float
    away: bool = False


@dataclass
class Tally:
    """Sums over the accepted files of one connector since `since_s` (epoch seconds)."""

    since_s: float
    files: int = 0
    rows: int = 0
    size_bytes: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    last: dict[Key, Receipt] = field(default_factory=dict)
    _recent: dict[Key, deque[tuple[float, int]]] = field(default_factory=dict)

    def add(self, receipt: Receipt) -> None:
        """Take in one receipt; what was not accepted does not count."""
        if not receipt.accepted:
            return
        key = (receipt.topic, receipt.partition)
        self.files += 1
        self.rows += receipt.rows
        self.size_bytes += receipt.size_bytes
        self.reasons[receipt.reason] += 1
        self.last[key] = receipt
        self._recent.setdefault(key, deque()).append((receipt.accepted_at or 0.0, receipt.records))

    def rate(self, key: Key, now_s: float) -> float:
        """Records per second of a topic-partition that were accepted in the last RATE_WINDOW_S."""
        recent = self._recent.get(key, deque())
        while recent and recent[0][0] < now_s - RATE_WINDOW_S:
            recent.popleft()
        window_s = min(max(now_s - self.since_s, 1.0), RATE_WINDOW_S)
        return sum(records for _, records in recent) / window_s

    def standings(
        self, watches: Sequence[PartitionProgress], accepted: Mapping[Key, int], now_s: float
    ) -> list[Standing]:
        """How the watched topic-partitions stand. accepted: next offset, where that is newer than the watch."""
        return [self._standing(watch, accepted.get((watch.topic, watch.partition), 0), now_s) for watch in watches]

    def _standing(self, watch: PartitionProgress, accepted: int, now_s: float) -> Standing:
        key = (watch.topic, watch.partition)
        lag = max(watch.end - max(watch.start, accepted), 0)
        waits = lag > 0 and watch.oldest_ms is not None and accepted <= watch.start
        oldest_s = max(now_s - watch.oldest_ms / 1000, 0.0) if waits and watch.oldest_ms is not None else None
        return Standing(*key, lag, oldest_s, self.last.get(key), self.rate(key, now_s), watch.away)


def sums(tally: Tally) -> str:
    """What was accepted so far."""
    if not tally.files:
        return "no file yet"
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in tally.reasons.most_common())
    plural = "" if tally.files == 1 else "s"
    return f"{tally.files:,} file{plural} ({reasons}), {tally.rows:,} rows, {size(tally.size_bytes)}"


def size(size_bytes: int) -> str:
    """Bytes in a unit that fits, 1,000 by 1,000."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= scale:
            return f"{size_bytes / scale:,.1f} {unit}"
    return f"{size_bytes:,} bytes"
