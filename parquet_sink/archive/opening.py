"""Archives by their settings: opened anew, or kept by a process with what it remembers of files on their way there."""

from typing import Final

from parquet_sink.archive.accepted import AcceptedFiles
from parquet_sink.archive.settings import ArchiveSettings, BucketPlace
from parquet_sink.archive.store import ArchiveStore
from parquet_sink.archive.target import ArchivedTarget, ThenArchivedTarget
from parquet_sink.archive.waiting import WaitingFolder
from parquet_sink.process.per_process import PerProcess
from parquet_sink.targets.target import Target


def open_archive(settings: ArchiveSettings) -> ArchiveStore:
    """An archive for the caller, who closes it. Raises as `targets.opening.open_target`."""
    if isinstance(settings.place, BucketPlace):  # each loads only what it needs
        from parquet_sink.archive.bucket import BucketArchive

        return BucketArchive(settings.place, settings.connector)
    from parquet_sink.archive.directory import DirectoryArchive

    return DirectoryArchive(settings.place, settings.connector)


def _open(settings: ArchiveSettings) -> tuple[ArchiveStore, AcceptedFiles]:
    return open_archive(settings), AcceptedFiles()


_archives: Final = PerProcess(_open)


def archived(target: Target, settings: ArchiveSettings | None) -> Target:
    """The target as it is where there is no archive; else one whose accepted files are archived."""
    if settings is None:
        return target
    archive, accepted = _archives.get(settings)
    if settings.required:
        return ArchivedTarget(target, archive, accepted)
    return ThenArchivedTarget(target, archive, WaitingFolder(settings.waiting, settings.max_waiting_bytes))
