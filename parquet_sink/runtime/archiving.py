"""The thread of a connector that archives behind it, with what it needs of the program."""

from pathlib import Path

from parquet_sink.archive.archiver import Archiver
from parquet_sink.archive.settings import ArchiveSettings
from parquet_sink.archive.store import ArchiveStore
from parquet_sink.history.writer import HistoryWriter
from parquet_sink.pipeline.settings import SinkSettings


def archiver_of(settings: SinkSettings, archive: ArchiveSettings) -> Archiver:
    """Not started yet. What becomes of files it notes in the connector's history."""
    history = HistoryWriter(settings.name, Path(settings.history_file), settings.history)
    return Archiver(archive, settings.retry, _opened, history.note_archived)


def _opened(settings: ArchiveSettings) -> ArchiveStore:
    from parquet_sink.archive.opening import open_archive  # loads Arrow, for few connectors

    return open_archive(settings)
