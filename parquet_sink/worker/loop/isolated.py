"""A listener whose errors end nothing: neither the run, nor other listeners."""

import logging
from collections.abc import Callable, Sequence

from parquet_sink.model.events import Event
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.events import Listener

log = logging.getLogger(__name__)


class Isolated:
    """A `Listener` around the one that `make` gives; it raises nothing.

    After its first error `fallback` takes its place, beginning with the event at which it happened. Without a fallback,
    or when that one fails, each cause is logged once, and the next event is tried again. name: for the log.
    """

    def __init__(self, name: str, make: Callable[[], Listener], fallback: Callable[[], Listener] | None = None) -> None:
        self._name, self._fallback = name, fallback
        self._logged: set[str] = set()
        self._listener: Listener | None = None
        try:
            self._listener = make()
        except Exception as error:  # noqa: BLE001 -- whatever it is, the run is worth more
            self._replace(error)

    def on_event(self, event: Event) -> None:
        self._do(lambda listener: listener.on_event(event))

    def refresh(self, connectors: Sequence[Connector]) -> None:
        self._do(lambda listener: listener.refresh(connectors))

    def close(self, connectors: Sequence[Connector]) -> None:
        self._do(lambda listener: listener.close(connectors))

    def _do(self, act: Callable[[Listener], None]) -> None:
        if self._listener is None:
            return
        try:
            act(self._listener)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the run is worth more
            if self._fallback is None:
                self._log("%s: %s", error)
                return
            self._replace(error)
            self._do(act)

    def _replace(self, error: Exception) -> None:
        failed, self._listener = self._listener, None
        fallback, self._fallback = self._fallback, None
        if fallback is None:
            self._log("%s cannot begin (%s); the run goes on without it", error)
            return
        self._log("%s cannot be drawn (%s); log lines go on in its place, and the run with them", error)
        if failed is not None:
            try:
                failed.close(())
            except Exception as again:  # noqa: BLE001 -- it is replaced already
                log.debug("%s failed again: %s", self._name, again)
        self._listener, self._name = fallback(), "log lines"

    def _log(self, text: str, error: Exception) -> None:
        words = f"{type(error).__name__}: {error}"
        if words not in self._logged:
            self._logged.add(words)
            log.warning(text, self._name, words)
            log.debug("a listener failed", exc_info=error)
