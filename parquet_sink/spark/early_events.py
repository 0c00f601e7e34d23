"""Files that a running Spark task got accepted are in the event log within half a second, not first at the task's end.

What the task reports in the end has the same events, which the log keeps once (`Event.identity`); so does a task that
takes the place of one that died. So nothing depends on what is told early: the first error ends it for the task.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from threading import Lock, Timer
from typing import Any, Final, Self

from parquet_sink.model.events import Event
from parquet_sink.model.receipts import Receipt
from parquet_sink.process.logs import beside_program
from parquet_sink.spark.handoff import Handoff
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.task.outcome import file_event

log = logging.getLogger(__name__)

EVERY_S: Final = 0.5
"""So long a file waits for others, or for the end of the task, which then tells of it."""


class EarlyEvents:
    """Of one task, from `with` to its end. append: adds events to the connector's log.

    `on_receipt` is called in any thread, takes no time and raises nothing: `append` is called by a timer's thread.
    """

    def __init__(self, append: Callable[[Sequence[Event]], None], every_s: float = EVERY_S) -> None:
        self._append, self._every_s = append, every_s
        self._waiting: list[Event] = []
        self._timer: Timer | None = None
        self._over = False
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """What waits is told of by the task."""
        with self._lock:
            self._over, timer = True, self._timer
        if timer is not None:
            timer.cancel()

    def on_receipt(self, receipt: Receipt) -> None:
        """A file was sent; one that was not accepted is told of with its range."""
        if not receipt.accepted:
            return
        with self._lock:
            self._waiting.append(file_event(receipt, time.time()))
            if self._timer is None and not self._over:
                self._timer = Timer(self._every_s, self._tell)
                self._timer.daemon = True
                self._timer.start()

    def _tell(self) -> None:
        with self._lock:
            events, self._waiting, self._timer = self._waiting, [], None
            if self._over:
                return
        try:
            self._append(events)
        except Exception as error:  # noqa: BLE001 - whatever it is, the task goes on and tells in the end
            self._over = True
            log.debug("events of a running task cannot be reported: %s", error)


def early_events(given: Handoff[Any]) -> EarlyEvents:
    """Of a task of this connector. Other machines tell nothing early: the state store is out of reach there."""

    def append(events: Sequence[Event]) -> None:
        if beside_program():
            with closing(SqliteStore(given.state_path, given.state_ids)) as state:
                state.append_events(events)

    return EarlyEvents(append)
