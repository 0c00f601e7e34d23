"""What an archive has beside what the history says it should have; pure.

A file of the archive is

    known      the history has it as accepted
    earlier    of offsets before all that the history has of its topic-partition: forgotten there by now
    later      of offsets behind all that the history has: accepted, and not noted yet
    a frame    rows of a DataFrame, which leave no history
    alien      none of these

and a file that the history has as accepted is missing when the archive does not have it, unless it waits for the
archive, or was accepted before the first one that was archived.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from parquet_sink.archive.archive import ArchivedFile, path_of
from parquet_sink.files.naming import NameParts, is_frame_file, parts_of
from parquet_sink.history.records import Origin, RangeRecord, UploadOutcome, UploadRecord
from parquet_sink.model.partitions import PartitionKey


@dataclass(frozen=True)
class Known:
    """A file that both have."""

    archived: ArchivedFile
    upload: UploadRecord


@dataclass(frozen=True)
class Gap:
    """Offsets, both within, of neighbouring files that are missing. causes: why, as far as the history says."""

    topic: str
    partition: int
    first: int
    last: int
    files: tuple[str, ...]
    causes: tuple[str, ...] = ()


@dataclass
class Comparison:
    """earlier_uploads: accepted before there was the archive. waiting: of those that the history has."""

    known: list[Known] = field(default_factory=list)
    missing: list[UploadRecord] = field(default_factory=list)
    alien: list[ArchivedFile] = field(default_factory=list)
    earlier: list[ArchivedFile] = field(default_factory=list)
    later: list[ArchivedFile] = field(default_factory=list)
    frames: list[ArchivedFile] = field(default_factory=list)
    waiting: int = 0
    earlier_uploads: int = 0

    @property
    def gaps(self) -> list[Gap]:
        """What is missing, neighbouring files as one."""
        there = [(one.upload, True) for one in self.known]
        return _gaps(sorted(there + [(one, False) for one in self.missing], key=lambda one: _order(one[0])))


def expected(uploads: Iterable[UploadRecord], topic: str | None = None) -> dict[str, UploadRecord]:
    """The files that an archive should have, by where they are there: the last acceptance of each."""
    own = (Origin.RUN, Origin.PARKED)
    return {
        path_of(one.topic, one.file_name): one
        for one in uploads
        if one.outcome is UploadOutcome.ACCEPTED and one.origin in own and topic in (None, one.topic)
    }


def compared(
    archived: Iterable[ArchivedFile],
    wanted: Mapping[str, UploadRecord],
    ranges: Iterable[RangeRecord],
    waiting: frozenset[str],
    archive: str,
) -> Comparison:
    """wanted: of `expected`. ranges: of the history, which say how far it goes. waiting: where files will be.

    archive: its name, as the history has it.
    """
    found, reach = Comparison(), _reach(wanted.values(), ranges)
    there: set[str] = set()
    for one in archived:
        there.add(one.where)
        if one.where in wanted:
            found.known.append(Known(one, wanted[one.where]))
        else:
            _place(one, reach, found).append(one)
    began_ms = min(
        (one.at_ms for where, one in wanted.items() if where in there or _was_in(one, archive)), default=None
    )
    for where in [where for where in wanted if where not in there]:
        _absent(where, wanted[where], waiting, began_ms, found)
    return found


def _reach(uploads: Iterable[UploadRecord], ranges: Iterable[RangeRecord]) -> dict[PartitionKey, tuple[int, int]]:
    """The lowest and highest offset that the history has of each topic-partition."""
    reach: dict[PartitionKey, tuple[int, int]] = {}
    spans = [((one.topic, one.partition), one.first_offset, one.last_offset) for one in uploads]
    spans += [((one.topic, one.partition), one.start, one.done_until - 1) for one in ranges]
    for key, first, last in spans:
        low, high = reach.get(key, (first, last))
        reach[key] = min(low, first), max(high, last)
    return reach


def _place(one: ArchivedFile, reach: Mapping[PartitionKey, tuple[int, int]], found: Comparison) -> list[ArchivedFile]:
    """The list that a file belongs to which the history does not have."""
    name = one.where.rpartition("/")[2]
    parts = parts_of(name)
    if parts is None:
        return found.frames if is_frame_file(name) else found.alien
    if one.where != path_of(parts.topic, name) or one.size_bytes != parts.size_bytes:
        return found.alien
    return _beyond(parts, reach, found)


def _beyond(parts: NameParts, reach: Mapping[PartitionKey, tuple[int, int]], found: Comparison) -> list[ArchivedFile]:
    low, high = reach.get((parts.topic, parts.partition), (parts.last_offset + 1, parts.last_offset + 1))
    if parts.last_offset < low:
        return found.earlier
    return found.later if parts.first_offset > high else found.alien


def _was_in(one: UploadRecord, archive: str) -> bool:
    """Whether the history has anything of a file at the archive."""
    return one.archive is not None and one.archive.place == archive


def _absent(where: str, upload: UploadRecord, waiting: frozenset[str], began_ms: int | None, found: Comparison) -> None:
    """began_ms: when the first file was accepted that was to be archived."""
    if where in waiting:
        found.waiting += 1
    elif began_ms is None or upload.at_ms < began_ms:
        found.earlier_uploads += 1
    else:
        found.missing.append(upload)


def _gaps(files: Sequence[tuple[UploadRecord, bool]]) -> list[Gap]:
    """files: in order, with whether each is there."""
    runs = groupby(files, key=lambda one: (_key(one[0]), one[1]))
    return [_gap([upload for upload, _ in run]) for (_, there), run in runs if not there]


def _order(one: UploadRecord) -> tuple[str, int, int]:
    return one.topic, one.partition, one.first_offset


def _gap(run: Sequence[UploadRecord]) -> Gap:
    causes = dict.fromkeys(one.archive.cause for one in run if one.archive is not None and one.archive.cause)
    first, last = min(one.first_offset for one in run), max(one.last_offset for one in run)
    return Gap(*_key(run[0]), first, last, tuple(one.file_name for one in run), tuple(map(str, causes)))


def _key(one: UploadRecord) -> PartitionKey:
    return one.topic, one.partition
