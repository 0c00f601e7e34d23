"""What differs between the kinds of connectors in a run: one `Flow` for each, so that a connector's life has no branch.

A flow starts its streaming query on Spark, settles once that has ended, and tells what a stop leaves behind. Where it
goes on is told by what is stored outside (the group's offsets, a source's offset storage), never by Spark.
"""

from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.archive.archiver import Archiver
from parquet_sink.history.writer import HistoryWriter
from parquet_sink.model.events import Event, FileArchived
from parquet_sink.model.instance import Instance
from parquet_sink.settings.connector import ConnectorSettings, TopicSettings
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.state.sqlite.store import SqliteStore
from parquet_sink.state.store import DRAINED
from parquet_sink.worker.loop import group_commit
from parquet_sink.worker.loop.archiving import archiver_of
from parquet_sink.worker.loop.restarts import Positions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class Flow(Protocol):
    """Of one connector. Methods but `start_query` may be called in any thread, one at a time.

    origin: where a query goes on, in words. given_up: what becomes of a flush that a stop gives up, in words.
    """

    @property
    def origin(self) -> str: ...
    @property
    def given_up(self) -> str: ...

    def make_ready(self) -> None:
        """What it needs on this machine beside its folder and state store. Raises ConnectorError."""

    def start_query(self, spark: "SparkSession", folder: Path, *, until_caught_up: bool) -> "StreamingQuery":
        """folder: the connector's run folder, as `spark.handoff.write` made it. In a thread that knows the session."""
        ...

    def settle(self, instance: Instance, state: SqliteStore) -> None:
        """After the query ended: what was delivered is stored where it goes on from. Failures are logged."""

    def positions(self, instance: Instance, state: SqliteStore) -> Positions:
        """Where it stands, to tell whether it got anywhere since the last failure."""
        ...

    def has_begun(self, state: SqliteStore) -> bool:
        """Whether a query found out where it goes on."""
        ...

    def in_flight(self, state: SqliteStore) -> bool:
        """Whether a flush may be in progress, of a query that runs."""
        ...

    def left(self, state: SqliteStore) -> str | None:
        """What a stop leaves undelivered, for the log; None for nothing."""
        ...

    def news(self) -> Sequence[Event]:
        """What happened beside the query since this was asked last."""
        ...

    def at_rest(self, within_s: float) -> bool:
        """Whether nothing is done beside the query, of a connector that has ended, and there is no news of it.

        within_s: how long it may take from when this is asked first.
        """
        ...

    def close(self) -> None:
        """Ends what is done beside the query; it may not have been made ready."""


class TopicFlow:
    """Of any sink: it goes on from its group's offsets, to which what was accepted is committed."""

    origin = "the group's offsets"
    given_up = "its records are delivered again at the next start"

    def __init__(self, settings: TopicSettings) -> None:
        self._settings = settings

    def settle(self, instance: Instance, state: SqliteStore) -> None:
        group_commit.commit_accepted(self._settings, instance, state)

    def positions(self, instance: Instance, state: SqliteStore) -> Positions:
        return group_commit.positions(self._settings, instance, state)

    def has_begun(self, state: SqliteStore) -> bool:
        """The planner looked for the first time."""
        return bool(state.progress())

    def make_ready(self) -> None:
        """Nothing beside its folder and state store."""

    def start_query(self, spark: "SparkSession", folder: Path, *, until_caught_up: bool) -> "StreamingQuery":
        from parquet_sink.spark.query import start_query

        return start_query(spark, self._settings, folder, until_caught_up=until_caught_up)

    def in_flight(self, state: SqliteStore) -> bool:
        """Not before it has begun, nor once it says so."""
        return self.has_begun(state) and not state.get(DRAINED)

    def left(self, state: SqliteStore) -> str | None:
        behind = group_commit.undelivered(state)
        return group_commit.stopped_message(behind) if behind else None

    def news(self) -> Sequence[Event]:
        return ()

    def at_rest(self, within_s: float) -> bool:
        return True

    def close(self) -> None:
        """Nothing is done beside the query."""


class ParquetFlow(TopicFlow):
    """Of a sink that writes Parquet files."""

    given_up = "its files are sent again at the next start, under the same names"

    def __init__(self, settings: SinkSettings) -> None:
        super().__init__(settings)
        self._sink = settings
        self._archiver: Archiver | None = None
        self._archived: SimpleQueue[FileArchived] = SimpleQueue()

    def make_ready(self) -> None:
        """The folder of parked records; the history: a torn one is made anew before the first upload; the archive."""
        settings = self._sink
        if settings.errors.parks:
            from parquet_sink.parked.folder import ParkedFolder  # loads Arrow, for few connectors

            ParkedFolder(settings.parked_folder, settings.name, settings.parked.max_bytes).prepare()
        history = HistoryWriter(settings.name, Path(settings.history_file), settings.history)
        history.check()
        history.close()
        self._archiver = archiver_of(settings, self._archived.put)
        if self._archiver is not None:
            self._archiver.start()

    def news(self) -> Sequence[Event]:
        return [self._archived.get() for _ in range(self._archived.qsize())]

    def at_rest(self, within_s: float) -> bool:
        finished = self._archiver is None or self._archiver.finished(within_s)
        return finished and self._archived.empty()

    def close(self) -> None:
        if self._archiver is not None:
            self._archiver.close()


def flow_of(settings: ConnectorSettings) -> Flow:
    """The flow of a connector. Raises TypeError for settings of no kind that runs."""
    if isinstance(settings, SinkSettings):
        return ParquetFlow(settings)
    if isinstance(settings, SourceSettings):
        from parquet_sink.addons.sources.flow.flow import SourceFlow  # loads what sources alone need

        return SourceFlow(settings)
    if isinstance(settings, RecordSinkSettings):
        return TopicFlow(settings)
    raise TypeError(f"{type(settings).__name__} are settings of no kind of connector that runs")
