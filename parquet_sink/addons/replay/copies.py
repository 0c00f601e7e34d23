"""Files by their offsets, and those of an archive that a replay may send in place of what Kafka no longer has; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from parquet_sink.archive.archive import ArchivedFile, path_of
from parquet_sink.files.naming import parts_of
from parquet_sink.history.records import RangeRecord, UploadRecord
from parquet_sink.model.partitions import PartitionKey

Span = tuple[int, int]
"""Offsets [start, end)."""


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same offsets as few spans, in order; empty ones are left out."""
    found: list[Span] = []
    for start, end in sorted(one for one in spans if one[0] < one[1]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def common(one: Span, spans: Sequence[Span]) -> list[Span]:
    """What a span has of others."""
    cut = [(max(start, one[0]), min(end, one[1])) for start, end in spans]
    return [(start, end) for start, end in cut if start < end]


def without(spans: Sequence[Span], taken: Span) -> list[Span]:
    """The spans but what is taken."""
    found: list[Span] = []
    for start, end in spans:
        found += [one for one in ((start, min(end, taken[0])), (max(start, taken[1]), end)) if one[0] < one[1]]
    return found


def overlap(one: Span, other: Span) -> bool:
    """Whether two spans share an offset."""
    return one[0] < other[1] and other[0] < one[1]


@dataclass(frozen=True)
class ReplayFile:
    """A file as it was accepted, is sent now, or would be. Offsets are inclusive.

    digest: SHA-256, hexadecimal; None when it was not kept.
    """

    topic: str
    partition: int
    name: str
    first: int
    last: int
    rows: int
    records: int
    size_bytes: int
    digest: str | None = None

    @property
    def key(self) -> PartitionKey:
        return self.topic, self.partition

    @property
    def span(self) -> Span:
        return self.first, self.last + 1


@dataclass(frozen=True, kw_only=True)
class Copy(ReplayFile):
    """A file of an archive. where: there. oldest_ms: timestamp of its oldest record, epoch milliseconds.

    Of one that the history has forgotten rows are taken to be as many as records, and digest and oldest_ms are None.
    """

    where: str
    oldest_ms: int | None = None

    @property
    def file(self) -> ReplayFile:
        """As it was accepted."""
        return ReplayFile(*(getattr(self, one.name) for one in fields(ReplayFile)))


def file_of(one: UploadRecord) -> ReplayFile:
    """A file of the history."""
    return ReplayFile(
        topic=one.topic,
        partition=one.partition,
        name=one.file_name,
        first=one.first_offset,
        last=one.last_offset,
        rows=one.rows,
        records=one.records,
        size_bytes=one.size_bytes,
        digest=one.digest,
    )


def copies_of(
    archived: Iterable[ArchivedFile], files: Mapping[PartitionKey, Sequence[UploadRecord]]
) -> dict[PartitionKey, list[Copy]]:
    """The files of an archive in order of offsets. files: of the history, of the topics that have the names now.

    As far as the history goes back only those that it has; before that, by their names.
    """
    known = {path_of(one.topic, one.file_name): one for mine in files.values() for one in mine}
    lowest = {key: min(one.first_offset for one in mine) for key, mine in files.items() if mine}
    found: dict[PartitionKey, list[Copy]] = {}
    for one in archived:
        name = one.where.rpartition("/")[2]
        parts = parts_of(name)
        if parts is None or (one.where, one.size_bytes) != (path_of(parts.topic, name), parts.size_bytes):
            continue
        key = parts.topic, parts.partition
        if one.where in known:
            upload = known[one.where]
            copy = Copy(**vars(file_of(upload)), where=one.where, oldest_ms=upload.oldest_ms)
        elif parts.last_offset < lowest.get(key, parts.last_offset + 1):
            sums = (parts.records, parts.records, parts.size_bytes)
            copy = Copy(*key, name, parts.first_offset, parts.last_offset, *sums, where=one.where)
        else:
            continue
        found.setdefault(key, []).append(copy)
    return {key: sorted(mine, key=lambda one: one.first) for key, mine in found.items()}


def taken(
    wanted: Sequence[Span],
    copies: Sequence[Copy],
    low: int,
    thinned: bool | None,
    ranges: Sequence[RangeRecord],
    files: Sequence[UploadRecord],
) -> tuple[list[Copy], list[Span]]:
    """The copies that are sent, and what of `wanted` is left for Kafka. low, thinned: see `replay.plan.Held`.

    A file depends on all of its range, so those of a range of which anything is gone, or may be, come from the archive
    as far as it has them. Where it has all of them, offsets between them had no row.
    """
    cut = [(one.start, one.done_until or one.end) for one in ranges if one.start < low or thinned]
    mine = [
        one
        for one in copies
        if any(overlap(one.span, span) for span in wanted)
        and (one.first < low or thinned or any(overlap(one.span, span) for span in cut))
    ]
    left, names = list(wanted), {one.name for one in mine}
    for one in mine:
        left = without(left, one.span)
    for span in cut:
        within = [one for one in files if overlap((one.first_offset, one.last_offset + 1), span)]
        if within and all(one.file_name in names for one in within):
            left = without(left, span)
    return mine, left


def since(copies: Sequence[Copy], at_ms: int, low: int) -> int:
    """The first offset of the first copy whose oldest record is of then or later; `low` where there is none."""
    return min((one.first for one in copies if one.oldest_ms is not None and one.oldest_ms >= at_ms), default=low)
