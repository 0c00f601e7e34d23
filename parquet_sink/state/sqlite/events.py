"""The event log in SQLite: a row for each event, whose number is its position; the oldest beyond a bound go."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from parquet_sink.model.events import Event, event_from_json
from parquet_sink.state.sqlite.database import Database
from parquet_sink.state.store import EventBatch

KEPT_EVENTS: Final = 10_000
"""About 7 MB. The program reads them several times a second."""


class SqliteEvents(Database):
    """Implements `state.store.EventLog`. Positions have no gaps: writers take turns, and only the oldest rows go."""

    def append_events(self, events: Sequence[Event]) -> None:
        if not events:
            return
        bodies = [event.to_json() for event in events]
        with self._transaction() as db:
            db.executemany(
                "insert into event (digest, body) values (?, ?) on conflict (digest) do nothing",
                [(sha256(body.encode()).digest()[:16], body) for body in bodies],
            )
            db.execute("delete from event where id <= (select max(id) from event) - ?", (KEPT_EVENTS,))

    def events_after(self, position: int) -> EventBatch:
        rows = self._db.execute("select id, body from event where id > ? order by id", (position,)).fetchall()
        if not rows:
            return EventBatch((), position)
        events = tuple(event_from_json(body) for _, body in rows)
        return EventBatch(events, rows[-1][0], rows[0][0] - position - 1)
