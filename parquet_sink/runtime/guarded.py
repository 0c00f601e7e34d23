"""What watches a run never ends it: an error in a view is told, and log lines take its place."""

import logging
from collections.abc import Callable, Sequence

from parquet_sink.runtime.connector import Connector
from parquet_sink.runtime.lines import LogLines
from parquet_sink.runtime.worker import Observer

log = logging.getLogger(__name__)


class Guarded:
    """An `Observer` around that of `make` (None: log lines). After its first error `LogLines` go on in its place.

    An error of the log lines themselves (the state file, or the log's disk) is told once for each cause, and the next
    look tries again.
    """

    def __init__(self, make: Callable[[], Observer] | None = None) -> None:
        self._told: set[str] = set()
        self._lines = LogLines()
        self._view: Observer = self._lines
        try:
            self._view = make() if make is not None else self._lines
        except Exception as error:  # noqa: BLE001 -- whatever it is, the run is worth more
            self._replace(error)

    def look(self, connectors: Sequence[Connector]) -> None:
        """Lets the view look; raises nothing."""
        try:
            self._view.look(connectors)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the run is worth more
            self._failed(error, connectors)

    def close(self, connectors: Sequence[Connector]) -> None:
        """Lets the view close; raises nothing."""
        try:
            self._view.close(connectors)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the run is worth more
            self._failed(error, connectors)

    def _failed(self, error: Exception, connectors: Sequence[Connector]) -> None:
        if self._view is self._lines:
            self._tell("log lines: %s", error)
            return
        view = self._view
        self._replace(error)
        self._silently(lambda: view.close(()))
        self._silently(lambda: self._lines.pass_over(connectors))

    def _replace(self, error: Exception) -> None:
        self._view = self._lines
        self._tell("the live view cannot be drawn (%s); log lines go on in its place, and the run with them", error)

    def _tell(self, text: str, error: Exception) -> None:
        words = f"{type(error).__name__}: {error}"
        if words not in self._told:
            self._told.add(words)
            log.warning(text, words)
            log.debug("an observer failed", exc_info=error)

    def _silently(self, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception as error:  # noqa: BLE001 -- whatever it is, the run is worth more
            log.debug("an observer failed again: %s", error)
