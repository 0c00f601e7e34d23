"""Files of a replay in the history of the connector, best effort."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from parquet_sink import __version__
from parquet_sink.errors import HistoryUnusable
from parquet_sink.files import naming
from parquet_sink.history.records import Origin, Sender, upload_record
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite.store import SqliteHistory, write_history
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.receipts import Receipt
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.replay.run import Watcher

log = logging.getLogger(__name__)


class Noted(Watcher):
    """Adds each file to the history. target: where they go. A history that cannot be written is told once."""

    def __init__(self, settings: SinkSettings, target: str) -> None:
        self._connector = settings.name
        self._sender = Sender(settings.target.target_table, target, settings.fingerprint, __version__, Origin.REPLAY)
        self._path = Path(naming.history_file(settings.files.tmp_dir, settings.name))
        self._settings = HistorySettings()
        self._store: SqliteHistory | None = None
        self._usable = True

    def flushed(self, planned: PlannedRange, receipts: Sequence[Receipt]) -> None:
        if not receipts or not self._usable:
            return
        now_s = time.time()
        try:
            if self._store is None:
                self._store = write_history(self._path, self._settings)
            self._store.append_files([upload_record(one, self._sender, now_s, planned.topic_id) for one in receipts])
        except HistoryUnusable as error:
            self._usable = False
            log.warning("connector %s: %s What the replay sends is not in the history.", self._connector, error)

    def close(self) -> None:
        """Prunes what is too much, and lets go of the file."""
        store, self._store = self._store, None
        if store is None:
            return
        try:
            store.prune(int(time.time() * 1000))
        except HistoryUnusable as error:
            log.debug("connector %s: %s", self._connector, error)
        finally:
            store.close()
