"""Flushes that somebody asked for, in the planner: up to where each topic-partition stood when a request was seen.

What a request finds waiting is due at once, whatever the thresholds say; what comes later is not its. Requests come by
the state store and so does the answer, which a query that is started again goes on from: where a topic-partition ended
is noted once for each request.
"""

from collections.abc import Iterator, Mapping

from parquet_sink.model.flushes import (
    FlushBounds,
    FlushProgress,
    progress_from_json,
    progress_to_json,
    requests_from_json,
)
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.planner.context import PlanningContext
from parquet_sink.state.store import FLUSH, FLUSHED


class RequestedFlushes:
    """Of one connector."""

    def __init__(self, context: PlanningContext) -> None:
        self._context = context
        self._asked: str | None = None
        self._known: dict[str, FlushProgress] = {}
        self._written: str | None = None
        self._until: dict[PartitionKey, int] = {}

    def look(self) -> bool:
        """Takes new requests; whether it is yet to be seen where topic-partitions end."""
        asked = self._context.state.get(FLUSH)
        if asked != self._asked:
            self._asked = asked
            self._take(asked)
        return any(one.until is None for one in self._open())

    def _take(self, asked: str | None) -> None:
        """Those that are asked for now, as far as they got; the others are forgotten."""
        self._written = self._context.state.get(FLUSHED)
        earlier = {one.id: one for one in progress_from_json(self._written or "[]")}
        starts, unavailable = self._context.offsets.starts, self._context.unavailable
        self._known = {
            one.id: earlier.get(one.id) or FlushProgress.seen(one, starts, unavailable)
            for one in requests_from_json(asked or "[]")
        }

    def note(self, ends: Mapping[PartitionKey, int]) -> None:
        """At each tick, once what was accepted is committed. ends: where topic-partitions end now, as far as asked."""
        if not self._known:
            self._until = {}
            return
        starts = self._context.offsets.starts
        self._known = {name: one.noted(ends, starts) if one.open else one for name, one in self._known.items()}
        self._until = {}
        for one in self._open():
            self._until[one.key] = max(one.until or 0, self._until.get(one.key, 0))
        self._publish()

    def _open(self) -> Iterator[FlushBounds]:
        return (one for found in self._known.values() for one in found.partitions if one.open)

    def _publish(self) -> None:
        text = progress_to_json(self._known.values())
        if text != self._written:
            self._written = text
            self._context.state.set(FLUSHED, text)

    def until(self, key: PartitionKey) -> int:
        """Offsets of a topic-partition below this are asked for; 0 for none."""
        return self._until.get(key, 0)

    def forget(self, key: PartitionKey) -> None:
        """This topic-partition is not there any more."""
        self._known = {name: one.without(key) for name, one in self._known.items()}
