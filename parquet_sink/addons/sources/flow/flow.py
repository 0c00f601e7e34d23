"""The flow of a source: it goes on from its offset storage, where positions are stored once brokers acknowledged.

Standard input, where a source reads it, is copied to a file as it comes: the program reads it, and tasks in other
processes read the file. Lines that were read and not sent when the program ends are lost, as in Kafka Connect; nothing
tells where they were.
"""

import logging
import os
import select
import threading
import zlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final
from weakref import WeakSet

from parquet_sink.addons.sources.flow.positions import SourcePositions
from parquet_sink.addons.sources.offsets.connect_form import text_of
from parquet_sink.addons.sources.offsets.file import FileStorage
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.errors import ConnectorError, SourceFailed
from parquet_sink.files.storage import storage_trouble
from parquet_sink.model.instance import Instance
from parquet_sink.process import lease
from parquet_sink.process.logs import concerning
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import DRAINED, SENT, STARTED
from parquet_sink.worker.loop.flow import Flow
from parquet_sink.worker.loop.restarts import Positions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TICK_MS: Final = 500
_KNOWING: Final["WeakSet[SparkSession]"] = WeakSet()
"""Sessions that know the data source of sources; Spark warns of one that is registered twice."""

CHUNK: Final = 1 << 16
LOOK_S: Final = 0.2
"""How soon a reader of standard input that is closed ends."""

log = logging.getLogger(__name__)


class StandardInput:
    """The file is made again at `start`, for this user alone. One connector of a process may read it."""

    _reader: ClassVar["StandardInput | None"] = None
    _taking: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: str, connector: str, descriptor: int = 0) -> None:
        self._path, self.connector, self._descriptor = path, connector, descriptor
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Raises SourceFailed when another connector reads it, StorageFailed when the file cannot be made."""
        with StandardInput._taking:
            other = StandardInput._reader
            if other is not None and other is not self:
                raise SourceFailed(
                    f"Connector {self.connector} reads standard input, and so does connector {other.connector}; name "
                    "a file in [file] of one of them."
                )
            StandardInput._reader = self
        with storage_trouble(os.path.dirname(self._path), "copy standard input to a file"):
            spool = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        self._thread = threading.Thread(target=self._copy, args=(spool,), name="standard-input", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until standard input has ended, or is read no more."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Somebody else may read it."""
        self._closing.set()
        self.wait()
        with StandardInput._taking:
            if StandardInput._reader is self:
                StandardInput._reader = None

    def _copy(self, spool: int) -> None:
        try:
            while not self._closing.is_set():
                ready, _, _ = select.select([self._descriptor], [], [], LOOK_S)
                if ready and not self._take(spool):
                    return
        except OSError as error:
            log.warning("connector %s: standard input is read no more: %s", self.connector, error.strerror)
        finally:
            os.close(spool)

    def _take(self, spool: int) -> bool:
        """Whether there may be more."""
        data = os.read(self._descriptor, CHUNK)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(spool, rest) :]
        return bool(data)


class SourceFlow(Flow):
    """Of one source."""

    origin = "the positions that are stored"
    given_up = "what it had sent is sent again at the next start"

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._folder = ""
        self._input: StandardInput | None = None

    def make_ready(self) -> None:
        """A file of positions is looked at; a topic is asked for by the planner, which waits for brokers.

        Standard input is read from here on. Raises StorageFailed, SourceFailed.
        """
        storage = self._settings.storage
        if storage is not None and storage.file is not None:
            FileStorage(storage.file).check()
        if self._settings.spool is not None:
            self._input = StandardInput(self._settings.spool, self._settings.name)
            self._input.start()

    def start_query(self, spark: "SparkSession", folder: Path, *, until_caught_up: bool) -> "StreamingQuery":
        from parquet_sink.addons.sources.flow.stream import SourceStream
        from parquet_sink.spark.query import start

        if spark not in _KNOWING:
            spark.dataSource.register(SourceStream)
            _KNOWING.add(spark)
        self._folder = str(folder)
        if until_caught_up and self._input is not None:
            self._input.wait()
        formats = SourceStream.name(), SourceStream.name()
        return start(spark, self._settings.name, folder, formats, None if until_caught_up else TICK_MS)

    def settle(self, instance: Instance, state: SqliteStore) -> None:
        """Stores what the last micro-batch sent, if its planner did not. Failures are logged."""
        if state.get(SENT) is None:
            return
        if not lease.holds(self._settings.owned.lease):
            log.warning("connector %s: its positions are not stored: %s", self._settings.name, lease.OVER)
            return
        with concerning(self._settings.name), closing(self._opened()) as positions:
            try:
                positions.read()
                positions.store(state)
            except ConnectorError as error:
                log.warning("connector %s: %s What it sent is sent again.", self._settings.name, error)

    def positions(self, instance: Instance, state: SqliteStore) -> Positions:
        """A number for each place: whether it moved is all that is asked."""
        with closing(self._opened()) as stored:
            try:
                stored.read()
            except ConnectorError:  # which the next start of the query reports
                return Positions()
            places = stored.places.items()
            return Positions({(part, 0): zlib.crc32(text_of(place).encode()) for part, place in places})

    def _opened(self) -> SourcePositions:
        return SourcePositions(self._settings, self._folder)

    def has_begun(self, state: SqliteStore) -> bool:
        return state.get(STARTED)

    def in_flight(self, state: SqliteStore) -> bool:
        return state.get(STARTED) and not state.get(DRAINED)

    def close(self) -> None:
        """Standard input is read no more."""
        if self._input is not None:
            self._input.close()
