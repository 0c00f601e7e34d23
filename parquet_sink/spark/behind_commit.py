"""What a program does behind the commit, beside a query whose sink writes Parquet: archives files, posts notices."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from parquet_sink.archive.archive import Archive
from parquet_sink.archive.archiver import Archiver
from parquet_sink.archive.settings import ArchiveSettings
from parquet_sink.archive.waiting import WaitingFolder
from parquet_sink.files import naming
from parquet_sink.history.writer import HistoryWriter
from parquet_sink.model.events import Event, FileArchived, FileNotified
from parquet_sink.model.receipts import Archiving
from parquet_sink.settings.sink import SinkSettings

if TYPE_CHECKING:
    from parquet_sink.notify.webhook import WebhookSender

log = logging.getLogger(__name__)

LOOK_S: Final = 0.05


class BehindCommit:
    """Of one connector, from `start` to `close`. Whoever holds its lock on this machine does it."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._archiver: Archiver | None = None
        self._webhook: WebhookSender | None = None
        self._news: SimpleQueue[Event] = SimpleQueue()

    def start(self) -> None:
        self._archiver = self._made_archiver()
        if self._archiver is not None:
            self._archiver.start()
        notify = self._settings.notify
        if notify is not None and notify.url is not None:
            from parquet_sink.notify.webhook import WebhookSender  # loads requests, for few connectors

            self._webhook = WebhookSender(notify, self._notified)
            self._webhook.start()

    def news(self) -> Sequence[Event]:
        """What happened since this was asked last."""
        return [self._news.get() for _ in range(self._news.qsize())]

    def at_rest(self, within_s: float) -> bool:
        """As `worker.loop.flow.Flow` has it."""
        finished = [one.finished(within_s) for one in (self._archiver, self._webhook) if one is not None]
        return all(finished) and self._news.empty()

    def close(self) -> None:
        for one in (self._archiver, self._webhook):
            if one is not None:
                one.close()

    def _made_archiver(self) -> Archiver | None:
        """Not started yet; None where nothing is archived behind the connector.

        Also for what waits of a time when the archive was not required; without an archive it waits for nothing.
        """
        settings, archive = self._settings, self._settings.archive
        waiting = WaitingFolder(naming.waiting_folder(settings.files.tmp_dir, settings.name))
        if archive is None:
            if count := waiting.clear():
                log.warning("connector %s: %d files waited for an archive, and there is none now", settings.name, count)
            return None
        if archive.required and not waiting.files():
            return None
        history = HistoryWriter(settings.name, Path(settings.history_file), settings.history)

        def note(file_name: str, outcome: Archiving) -> None:
            history.note_archived(file_name, outcome)
            self._news.put(FileArchived(settings.name, outcome.at_ms / 1000, file_name, outcome))

        return Archiver(archive, settings.retry, _opened, note)

    def _notified(self, notice_id: str, cause: str | None) -> None:
        self._news.put(FileNotified(self._settings.name, time.time(), notice_id, cause))


def count_waiting(settings: SinkSettings) -> int:
    """Return how many files wait for the archive, and notices for the webhook, in the connector's folder here."""
    files = WaitingFolder(naming.waiting_folder(settings.files.tmp_dir, settings.name)).files()
    return count_notices(settings) + len(files)


def count_notices(settings: SinkSettings) -> int:
    """Return how many notices wait for the webhook in the connector's folder here."""
    if settings.notify is None or settings.notify.url is None:
        return 0
    from parquet_sink.notify.waiting import NoticeFolder  # for few connectors

    return len(NoticeFolder(settings.notify.waiting).notices())


@contextmanager
def behind_commit(settings: SinkSettings) -> Iterator[None]:
    """Within, it is done; at the end what waits has as long as the connector has for a stop."""
    behind = BehindCommit(settings)
    behind.start()
    try:
        yield
    finally:
        while not behind.at_rest(settings.stop_timeout_ms / 1000):
            behind.news()
            time.sleep(LOOK_S)
        behind.close()


def _opened(settings: ArchiveSettings) -> Archive:
    from parquet_sink.archive.archive import open_archive  # loads Arrow, for few connectors

    return open_archive(settings)
