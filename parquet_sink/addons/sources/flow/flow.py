"""The flow of a source: it goes on from its offset storage, where positions are stored once brokers acknowledged."""

import logging
import zlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from parquet_sink.addons.sources.flow.positions import SourcePositions
from parquet_sink.addons.sources.offsets.connect_form import text_of
from parquet_sink.addons.sources.offsets.file import FileStorage
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.addons.sources.standard_input import StandardInput
from parquet_sink.errors import ConnectorError
from parquet_sink.model.instance import Instance
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

log = logging.getLogger(__name__)


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
