"""Brings events to listeners: of the program at once, of a connector's processes from its event log, then its news.

Each event is handed on once, in the order of its log; events of one topic-partition are therefore in the order in which
they happened. When the bounded log dropped some before they were read, an `EventsDropped` with their number comes
first.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol
from weakref import WeakKeyDictionary

from parquet_sink.errors import code_place
from parquet_sink.model.events import Event, EventsDropped
from parquet_sink.state.store import EventLog
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker_config.event_listeners import EventListener

log = logging.getLogger(__name__)


class Listener(Protocol):
    """Takes events, one by one, and may show how connectors stand each time."""

    def on_event(self, event: Event) -> None: ...
    def refresh(self, connectors: Sequence[Connector]) -> None: ...
    def close(self, connectors: Sequence[Connector]) -> None: ...


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
        self._log("%s cannot be drawn (%s); log lines replace it, and the run goes on", error)
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


class _Custom:
    """A `Listener` around one of a user's own. Raises what it does without its words, which may hold a secret."""

    def __init__(self, inner: EventListener) -> None:
        self._inner = inner

    def on_event(self, event: Event) -> None:
        self._call(lambda: self._inner.on_event(event))

    def refresh(self, connectors: Sequence[Connector]) -> None:
        """It gets events alone."""

    def close(self, connectors: Sequence[Connector]) -> None:
        self._call(self._inner.close)

    def _call(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 -- whatever another's code raises
            raise RuntimeError(f"it failed with {code_place(error)}; correct its class.") from None


def isolated(listeners: Mapping[str, EventListener]) -> list[Listener]:
    """Those of a worker file, by name; none harms the run, or another."""
    return [Isolated(f"event listener {name}", partial(_Custom, one)) for name, one in listeners.items()]


class EventDispatcher:
    """Hands events to listeners. `listeners` must raise nothing: see `worker.loop.events`. clock: epoch seconds."""

    def __init__(self, listeners: Sequence[Listener], clock: Callable[[], float] = time.time) -> None:
        self._listeners, self._clock = listeners, clock
        self._positions: WeakKeyDictionary[EventLog, int] = WeakKeyDictionary()
        """Up to where each event log was read."""
        self._unreadable: set[tuple[str, str]] = set()

    def emit(self, event: Event) -> None:
        for listener in self._listeners:
            listener.on_event(event)

    def poll(self, connectors: Sequence[Connector]) -> None:
        """Hands on what happened since the last time, then lets listeners show how things stand. Raises nothing."""
        self.read(connectors)
        for listener in self._listeners:
            listener.refresh(connectors)

    def close(self, connectors: Sequence[Connector]) -> None:
        """Hands on the last events, and closes the listeners. Raises nothing."""
        self.read(connectors)
        for listener in self._listeners:
            listener.close(connectors)

    def read(self, connectors: Sequence[Connector]) -> None:
        """Hands on what happened since the last time. Raises nothing."""
        for connector in connectors:
            try:
                events = self._new_events(connector)
            except Exception as error:  # noqa: BLE001 -- the run is worth more than its log lines; the next look tries again
                self._warn_unreadable(connector.settings.name, error)
                events = ()
            for event in (*events, *connector.news()):
                self.emit(event)

    def _new_events(self, connector: Connector) -> Sequence[Event]:
        name, state = connector.settings.name, connector.state
        if state is None:
            return ()
        batch = state.events_after(self._positions.get(state, 0))
        self._positions[state] = batch.position
        if not batch.dropped:
            return batch.events
        return EventsDropped(name, self._clock(), batch.dropped), *batch.events

    def _warn_unreadable(self, name: str, error: Exception) -> None:
        words = f"its events cannot be read: {type(error).__name__}: {error}"
        if (name, words) not in self._unreadable:
            self._unreadable.add((name, words))
            log.warning("connector %s: %s", name, words)
