"""Files of an archive that a replay may send in place of what Kafka no longer has; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from parquet_sink.archive.archive import ArchivedFile, path_of
from parquet_sink.files.naming import NameParts, parts_of
from parquet_sink.history.records import RangeRecord, UploadRecord
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.replay.spans import Span, overlap, without


@dataclass(frozen=True)
class Copy:
    """A file of an archive. where: there. Offsets are inclusive.

    Of one that the history has forgotten rows are taken to be as many as records, and digest and oldest_ms are None.
    """

    where: str
    name: str
    topic: str
    partition: int
    first: int
    last: int
    rows: int
    records: int
    size_bytes: int
    digest: str | None = None
    oldest_ms: int | None = None

    @property
    def span(self) -> Span:
        return self.first, self.last + 1


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
            found.setdefault(key, []).append(_of_upload(one.where, known[one.where]))
        elif parts.last_offset < lowest.get(key, parts.last_offset + 1):
            found.setdefault(key, []).append(_of_name(one.where, name, parts))
    return {key: sorted(mine, key=lambda one: one.first) for key, mine in found.items()}


def _of_upload(where: str, one: UploadRecord) -> Copy:
    return Copy(
        where=where,
        name=one.file_name,
        topic=one.topic,
        partition=one.partition,
        first=one.first_offset,
        last=one.last_offset,
        rows=one.rows,
        records=one.records,
        size_bytes=one.size_bytes,
        digest=one.digest,
        oldest_ms=one.oldest_ms,
    )


def _of_name(where: str, name: str, one: NameParts) -> Copy:
    return Copy(
        where=where,
        name=name,
        topic=one.topic,
        partition=one.partition,
        first=one.first_offset,
        last=one.last_offset,
        rows=one.records,
        records=one.records,
        size_bytes=one.size_bytes,
    )


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
