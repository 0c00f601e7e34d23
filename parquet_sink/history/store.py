"""What is asked of the history of uploads, and what it answers.

    with closing(read_history(path)) as history:                    # parquet_sink.history.sqlite
        for record in history.files(HistoryQuery(topic="orders")):
            ...

It is written by whatever sends files of a connector (the committer beside Spark's driver, replays), best effort: a
history that cannot be written is told once and stops nobody. Losing it loses the history, never a record.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from typing import Any, Final

from parquet_sink.history.records import Origin, UploadOutcome, UploadRecord

HOUR_MS: Final = 3_600_000


@dataclass(frozen=True)
class HistoryQuery:
    """Which records are meant: those to which all that is given applies.

    first_offset, last_offset: those that have any offset between these, both inclusive; equal for one offset.
    since_ms, until_ms: those whose outcome was known from since_ms on and before until_ms, epoch milliseconds.
    file_names: of these names only. newest: at most so many, the latest; answers are in order of time all the same.
    Of ranges only topic, topic-partition, offsets and time count.
    """

    topic: str | None = None
    partition: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    outcomes: frozenset[UploadOutcome] = frozenset()
    file_names: frozenset[str] = frozenset()
    newest: int | None = None

    @classmethod
    def offset(cls, topic: str, partition: int, offset: int) -> "HistoryQuery":
        """What has this one offset."""
        return cls(topic, partition, offset, offset)


ALL = HistoryQuery()


@dataclass(frozen=True)
class UploadsPage:
    """Some uploads, in the order that was asked for. more: where the next ones begin, None behind the last."""

    uploads: tuple[UploadRecord, ...]
    more: str | None = None


@dataclass(frozen=True)
class Percentiles:
    """Of a number of values, by nearest rank."""

    p50: float
    p95: float
    p99: float
    most: float


@dataclass(frozen=True)
class HourSummary:
    """The uploads whose outcome was known within one hour. hour_ms: its begin, epoch milliseconds, UTC.

    files, rows, records, size_bytes, reasons, freshness and uploads are those of accepted files; repeated: of those,
    files of a name that was accepted before. others: how many had each other outcome. attempts: of all files.
    freshness_ms: age of the oldest record at acceptance, of files that brought their records for the first time; None
    where none has timestamps. upload_s: seconds of all attempts and waits of a file, None without files.
    """

    hour_ms: int
    files: int
    repeated: int
    rows: int
    records: int
    size_bytes: int
    attempts: int
    reasons: Mapping[str, int]
    others: Mapping[str, int]
    freshness_ms: Percentiles | None
    upload_s: Percentiles | None

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "HourSummary":
        """Of `dataclasses.asdict`. Raises KeyError or TypeError for anything else."""
        spreads = ("freshness_ms", "upload_s")
        read = {name: None if found[name] is None else Percentiles(**found[name]) for name in spreads}
        return cls(**{**found, **read})


@dataclass(frozen=True)
class HistoryExtent:
    """How much is kept. first_ms, last_ms: of the uploads within, None for none. size_bytes: on disk."""

    files: int
    ranges: int
    first_ms: int | None
    last_ms: int | None
    size_bytes: int


def summarised(records: Iterable[UploadRecord]) -> list[HourSummary]:
    """One for each hour in which something happened, in order of time. records: in that order."""
    hours = groupby(records, lambda one: one.at_ms - one.at_ms % HOUR_MS)
    return [_summary(hour_ms, list(found)) for hour_ms, found in hours]


def _summary(hour_ms: int, records: Sequence[UploadRecord]) -> HourSummary:
    accepted = [one for one in records if one.outcome is UploadOutcome.ACCEPTED]
    fresh = [one.freshness_ms for one in accepted if one.origin is Origin.RUN and not one.repeat]
    return HourSummary(
        hour_ms=hour_ms,
        files=len(accepted),
        repeated=sum(one.repeat > 0 for one in accepted),
        rows=sum(one.rows for one in accepted),
        records=sum(one.records for one in accepted),
        size_bytes=sum(one.size_bytes for one in accepted),
        attempts=sum(one.attempts for one in records),
        reasons=dict(Counter(one.reason for one in accepted)),
        others=dict(Counter(str(one.outcome) for one in records if one.outcome is not UploadOutcome.ACCEPTED)),
        freshness_ms=percentiles([ms for ms in fresh if ms is not None]),
        upload_s=percentiles([one.upload_s for one in accepted]),
    )


def percentiles(values: Sequence[float]) -> Percentiles | None:
    """By nearest rank: each is one of the values. None without values."""
    if not values:
        return None
    ordered = sorted(values)

    def at(share: int) -> float:
        return ordered[max(ceil(share * len(ordered) / 100), 1) - 1]

    return Percentiles(at(50), at(95), at(99), ordered[-1])
