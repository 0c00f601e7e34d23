"""Flushes that were asked for of a connector that runs: handed to its planner, and what came of them."""

from dataclasses import dataclass, field, replace
from typing import Final
from uuid import uuid4

from parquet_sink.model.events import FileAccepted, RecordsDelivered
from parquet_sink.model.flushes import (
    FlushBounds,
    FlushProgress,
    FlushRequest,
    progress_from_json,
    requests_to_json,
)
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import FLUSH, FLUSHED
from parquet_sink.worker.herder.errors import FlushRefused, UnknownFlush
from parquet_sink.worker.herder.values import FlushedPartition, FlushReport, FlushState

MOST_OPEN: Final = 20
"""Flushes of one connector that are under way; one more is refused. So many are remembered once they are done, too."""


@dataclass
class _Sums:
    files: int = 0
    rows: int = 0
    size_bytes: int = 0
    records: int = 0


@dataclass
class _Asked:
    """position: in the event log, up to where `went` counts what went out."""

    request: FlushRequest
    position: int
    went: list[tuple[PartitionKey, int, _Sums]] = field(default_factory=list)
    """Topic-partition, last offset (inclusive), and what went out with it, be it the flush's or not."""
    done: FlushReport | None = None


class RunFlushes:
    """Of one run. Only the worker's one loop uses it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._asked: dict[str, _Asked] = {}

    @property
    def text(self) -> str | None:
        """The field FLUSH."""
        return requests_to_json(one.request for one in self._asked.values()) if self._asked else None

    def ask(self, state: SqliteStore, partitions: tuple[PartitionKey, ...] | None) -> FlushReport:
        """partitions: None for all. Raises FlushRefused when too many are under way."""
        known = _progress(state)
        under_way = [name for name in self._asked if name not in known or known[name].open]
        if len(under_way) >= MOST_OPEN:
            raise FlushRefused(f"Connector {self._name} has {MOST_OPEN} flushes under way; wait for one of them.")
        done = [name for name in self._asked if name not in under_way]
        for name in done[: max(len(done) - MOST_OPEN + 1, 0)]:
            del self._asked[name]
        request = FlushRequest(uuid4().hex[:12], partitions)
        self._asked[request.id] = _Asked(request, state.last_position())
        state.set(FLUSH, self.text)
        return FlushReport(request.id, self._name, FlushState.WAITING)

    def report(self, state: SqliteStore, flush_id: str) -> FlushReport:
        """Raises UnknownFlush."""
        asked = self._asked.get(flush_id)
        if asked is None:
            raise UnknownFlush(self._name, flush_id)
        if asked.done is not None:
            return asked.done
        _follow(asked, state)
        found = _progress(state).get(flush_id)
        if found is None:
            return FlushReport(flush_id, self._name, FlushState.WAITING)
        partitions = tuple(_partition(one, asked.went) for one in found.partitions)
        report = FlushReport(flush_id, self._name, FlushState.WAITING if found.open else FlushState.DONE, partitions)
        if not found.open:
            asked.done, asked.went = report, []
        return report


def _progress(state: SqliteStore) -> dict[str, FlushProgress]:
    return {one.id: one for one in progress_from_json(state.get(FLUSHED) or "[]")}


def _follow(asked: _Asked, state: SqliteStore) -> None:
    """Adds what went out since."""
    if state.last_position() < asked.position:  # the state file was made anew
        asked.position = 0
    found = state.events_after(asked.position)
    asked.position = found.position
    for event in found.events:
        if isinstance(event, FileAccepted):
            receipt = event.receipt
            sums = _Sums(1, receipt.rows, receipt.size_bytes)
            asked.went.append(((event.topic, event.partition), receipt.last_offset, sums))
        elif isinstance(event, RecordsDelivered):
            asked.went.append(((event.topic, event.partition), event.last, _Sums(records=event.records)))


def _partition(one: FlushBounds, went: list[tuple[PartitionKey, int, _Sums]]) -> FlushedPartition:
    state = FlushState.GONE if one.gone else FlushState.WAITING if one.open else FlushState.DONE
    total = FlushedPartition(one.topic, one.partition, one.start, one.until, one.reached, state)
    for key, last, sums in went:
        if key == one.key and one.start <= last < max(one.reached, one.start):
            total = replace(
                total,
                files=total.files + sums.files,
                rows=total.rows + sums.rows,
                size_bytes=total.size_bytes + sums.size_bytes,
                records=total.records + sums.records,
            )
    return total
