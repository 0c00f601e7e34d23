"""An archive compared with the history: names first, then the bytes of each file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from parquet_sink.archive.archive import Archive, ArchivedFile, topic_folder
from parquet_sink.archive.comparison import Comparison, Known, compared, expected
from parquet_sink.archive.settings import ArchiveSettings
from parquet_sink.archive.waiting import WaitingFolder
from parquet_sink.history.records import UploadRecord
from parquet_sink.history.sqlite import SqliteHistory
from parquet_sink.history.store import HistoryQuery


@dataclass(frozen=True)
class Altered:
    """A file that is not what was accepted. how: in words."""

    where: str
    how: str


@dataclass(frozen=True)
class Verified:
    """altered: of `comparison.known`. read_bytes: how much of the archive was read. silent: of `Others`."""

    comparison: Comparison
    altered: tuple[Altered, ...]
    read_bytes: int
    silent: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the archive has all that it should have, unaltered, and nothing else."""
        return not (self.comparison.missing or self.comparison.alien or self.altered or self.silent)


@dataclass(frozen=True)
class Others:
    """What other workers know of the connector. waiting: where files will be. silent: why some do not answer."""

    uploads: tuple[UploadRecord, ...] = ()
    waiting: frozenset[str] = frozenset()
    silent: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, gathered: Mapping[str, Any]) -> "Others":
        """Return what `worker.rest.other_histories` gathered."""
        uploads = tuple(map(UploadRecord.from_dict, gathered["uploads"]))
        return cls(uploads, frozenset(gathered["waiting"]), tuple(gathered["silent"]))


NOBODY: Final = Others()


def files_of(archive: Archive, topic: str | None) -> Iterator[ArchivedFile]:
    """What the archive has of the connector, or of one topic. Raises ArchiveUnusable."""
    found = archive.files()
    return found if topic is None else (one for one in found if one.where.startswith(f"{topic_folder(topic)}/"))


def compare(
    settings: ArchiveSettings,
    archive: Archive,
    history: SqliteHistory | None,
    topic: str | None,
    others: Others = NOBODY,
) -> Comparison:
    """By names alone. history: of this machine, None where there is none. Raises ArchiveUnusable, HistoryUnusable.

    The archive is looked at before the history, and what waits before either: a connector that runs meanwhile moves
    files in the other direction.
    """
    waiting = frozenset(one.file.where for one in WaitingFolder(settings.waiting).files())
    archived = list(files_of(archive, topic))
    query = HistoryQuery(topic=topic)
    uploads = sorted((*others.uploads, *(() if history is None else history.files(query))), key=lambda one: one.at_ms)
    ranges = () if history is None else history.ranges(query)
    found = compared(archived, expected(uploads, topic), ranges, waiting | others.waiting, archive.name)
    return found if not found.missing else _again(found, archive, topic)


def _again(found: Comparison, archive: Archive, topic: str | None) -> Comparison:
    """Files that were archived since the archive was looked at are not missing."""
    there = {one.where: one for one in files_of(archive, topic)}
    wanted = expected(found.missing)
    late = [Known(there[where], upload) for where, upload in wanted.items() if where in there]
    found.known += late
    came = {one.upload.file_name for one in late}
    found.missing = [one for one in found.missing if one.file_name not in came]
    return found


def altered(archive: Archive, known: Sequence[Known], read: Callable[[int], None], *, quick: bool) -> list[Altered]:
    """Those whose size is another, or whose bytes; quick: by size alone. read: told of so many bytes that were read.

    Raises ArchiveUnusable.
    """
    found = []
    for one in known:
        how = _how(archive, one, quick=quick)
        if how is not None:
            found.append(Altered(one.archived.where, how))
        read(one.archived.size_bytes)
    return found


def _how(archive: Archive, one: Known, *, quick: bool) -> str | None:
    was, now = one.upload.size_bytes, one.archived.size_bytes
    if was != now:
        return f"it has {now:,} bytes, and had {was:,} when it was accepted"
    if quick or one.upload.digest is None:
        return None
    digest = archive.digest(one.archived.where)
    if digest is None:
        return "it was removed while it was looked at"
    if digest != one.upload.digest:
        return f"its SHA-256 is {digest}, and was {one.upload.digest} when it was accepted"
    return None
