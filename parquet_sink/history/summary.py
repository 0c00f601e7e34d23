"""Figures of uploads, hour by hour."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from parquet_sink.history.records import Origin, UploadOutcome, UploadRecord
from parquet_sink.history.store import HourSummary, Percentiles

HOUR_MS: Final = 3_600_000


@dataclass
class _Hour:
    """What was found so far of one hour."""

    files: int = 0
    repeated: int = 0
    rows: int = 0
    records: int = 0
    size_bytes: int = 0
    attempts: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    freshness_ms: list[float] = field(default_factory=list)
    upload_s: list[float] = field(default_factory=list)

    def add(self, one: UploadRecord) -> None:
        self.attempts += one.attempts
        if one.outcome is not UploadOutcome.ACCEPTED:
            self.others[str(one.outcome)] += 1
            return
        self.files += 1
        self.repeated += one.repeat > 0
        self.rows += one.rows
        self.records += one.records
        self.size_bytes += one.size_bytes
        self.reasons[one.reason] += 1
        self.upload_s.append(one.upload_s)
        if one.freshness_ms is not None and one.origin is Origin.RUN and not one.repeat:
            self.freshness_ms.append(one.freshness_ms)

    def summary(self, hour_ms: int) -> HourSummary:
        return HourSummary(
            hour_ms=hour_ms,
            files=self.files,
            repeated=self.repeated,
            rows=self.rows,
            records=self.records,
            size_bytes=self.size_bytes,
            attempts=self.attempts,
            reasons=dict(self.reasons),
            others=dict(self.others),
            freshness_ms=percentiles(self.freshness_ms),
            upload_s=percentiles(self.upload_s),
        )


def summarised(records: Iterable[UploadRecord]) -> list[HourSummary]:
    """One for each hour in which something happened, in order of time."""
    hours: dict[int, _Hour] = {}
    for one in records:
        hours.setdefault(one.at_ms - one.at_ms % HOUR_MS, _Hour()).add(one)
    return [hour.summary(at_ms) for at_ms, hour in sorted(hours.items())]


def percentiles(values: Sequence[float]) -> Percentiles | None:
    """By nearest rank: each is one of the values. None without values."""
    if not values:
        return None
    ordered = sorted(values)

    def at(share: int) -> float:
        return ordered[max(ceil(share * len(ordered) / 100), 1) - 1]

    return Percentiles(at(50), at(95), at(99), ordered[-1])
