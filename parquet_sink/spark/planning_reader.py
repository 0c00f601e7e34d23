"""What the readers of both kinds of connectors share: the state of a query, and how it is read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from parquet_sink.errors import RunFilesLost, SinkError
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.spark import handoff
from parquet_sink.state.sqlite import SqliteStore


class PlanningReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One per query and process. What `read` needs is pickled with it; the rest is made where it is used."""

    def __init__(self, given: handoff.Handoff[ConnectorSettings]) -> None:
        self._state_path, self._state_ids = given.state_path, given.state_ids
        self._state: SqliteStore | None = None
        self._draining = False

    def prepareForTriggerAvailableNow(self) -> None:
        self._draining = True

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def _opened(self) -> SqliteStore:
        if self._state is None:
            self._state = SqliteStore(self._state_path, self._state_ids)
        return self._state

    @contextmanager
    def _failures_recorded(self) -> Iterator[None]:
        """Records an error raised within in the state store, because Spark turns exceptions into text."""
        try:
            with self._opened().losses_told():
                yield
        except RunFilesLost:  # there is nothing to record it in
            raise
        except SinkError as error:
            self._opened().record_failure(error.failure())
            raise

    def __getstate__(self) -> dict[str, Any]:
        state = {"_state_path": self._state_path, "_state_ids": self._state_ids, "_state": None}
        return state | {"_draining": self._draining}
