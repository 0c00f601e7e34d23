"""The event log within one process: the double for tests of what uses it. `test_store` holds it to the same rules."""

from collections.abc import Sequence

from parquet_sink.model.events import Event
from parquet_sink.state.store import EventBatch


class MemoryEvents:
    """Implements `state.store.EventLog`. kept: its bound."""

    def __init__(self, kept: int = 10_000) -> None:
        self._kept, self._dropped = kept, 0
        self._events: dict[str, Event] = {}

    def append_events(self, events: Sequence[Event]) -> None:
        for event in events:
            self._events.setdefault(event.identity or event.to_json(), event)
        surplus = max(len(self._events) - self._kept, 0)
        self._dropped += surplus
        self._events = dict(list(self._events.items())[surplus:])

    def events_after(self, position: int) -> EventBatch:
        events = tuple(self._events.values())[max(position - self._dropped, 0) :]
        last = self._dropped + len(self._events)
        return EventBatch(events, max(last, position), max(self._dropped - position, 0) if events else 0)
