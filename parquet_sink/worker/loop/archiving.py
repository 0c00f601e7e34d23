"""The thread of a connector that archives behind it, with what it needs of the program."""

import logging
from collections.abc import Callable
from pathlib import Path

from parquet_sink.archive.archive import Archive
from parquet_sink.archive.archiver import Archiver
from parquet_sink.archive.settings import ArchiveSettings
from parquet_sink.archive.waiting import WaitingFolder
from parquet_sink.files import naming
from parquet_sink.history.writer import HistoryWriter
from parquet_sink.model.events import FileArchived
from parquet_sink.model.receipts import Archiving
from parquet_sink.settings.sink import SinkSettings

log = logging.getLogger(__name__)


def archiver_of(settings: SinkSettings, tell: Callable[[FileArchived], None]) -> Archiver | None:
    """Not started yet; None where nothing is archived behind the connector.

    What becomes of files goes to the history, and to `tell`, in any thread. Also for what waits of a time when the
    archive was not required; without an archive it waits for nothing.
    """
    waiting = WaitingFolder(naming.waiting_folder(settings.files.tmp_dir, settings.name))
    if settings.archive is None:
        if count := waiting.clear():
            log.warning("connector %s: %d files waited for an archive, and there is none now", settings.name, count)
        return None
    if settings.archive.required and not waiting.files():
        return None
    history = HistoryWriter(settings.name, Path(settings.history_file), settings.history)

    def note(file_name: str, archive: Archiving) -> None:
        history.note_archived(file_name, archive)
        tell(FileArchived(settings.name, archive.at_ms / 1000, file_name, archive))

    return Archiver(settings.archive, settings.retry, _opened, note)


def _opened(settings: ArchiveSettings) -> Archive:
    from parquet_sink.archive.archive import open_archive  # loads Arrow, for few connectors

    return open_archive(settings)
