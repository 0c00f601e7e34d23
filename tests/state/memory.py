"""The state store within one process: the double for tests of what uses it. `test_store` holds it to the same rules."""

from collections.abc import Mapping, Sequence
from typing import Any

from parquet_sink.model.events import Event
from parquet_sink.model.failure import Failure
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.progress import Accepted, PartitionProgress
from parquet_sink.model.ranges import Known, PlannedRange, ValueSizes
from parquet_sink.state.store import REPORTED, EventBatch, Field, T


class MemoryStore:
    """Implements `state.store.StateStore`. kept_events: the bound of its event log."""

    def __init__(self, kept_events: int = 10_000) -> None:
        self._kept_events = kept_events
        self._fields: dict[str, Any] = {}
        self._progress: dict[tuple[str, int], PartitionProgress] = {}
        self._accepted: dict[tuple[str, int], Accepted] = {}
        self._failure: Failure | None = None
        self._learned: dict[str, Known] = {}
        self._sizes: dict[str, ValueSizes] = {}
        self._planned: dict[tuple[str, int], tuple[str, PlannedRange]] = {}
        self._events: dict[str, Event] = {}
        self._dropped = 0

    def get(self, field: Field[T]) -> T:
        value: T = self._fields.get(field.name, field.default)
        return value

    def set(self, field: Field[T], value: T) -> None:
        self._fields[field.name] = value

    def record_progress(self, progress: Sequence[PartitionProgress]) -> None:
        self._progress.update({(one.topic, one.partition): one for one in progress})

    def progress(self) -> list[PartitionProgress]:
        return [self._progress[key] for key in sorted(self._progress)]

    def begin_batch(self, keys: Sequence[PartitionKey]) -> None:
        self._accepted = {key: one for key, one in self._accepted.items() if key not in keys}
        self.set(REPORTED, False)

    def record_accepted(self, ranges: Sequence[Accepted]) -> None:
        self.set(REPORTED, True)
        self._accepted.update({(one.topic, one.partition): one for one in ranges})

    def accepted(self) -> list[Accepted]:
        return [self._accepted[key] for key in sorted(self._accepted)]

    def forget_partition(self, topic: str, partition: int) -> None:
        self._accepted.pop((topic, partition), None)
        self._progress.pop((topic, partition), None)

    def record_failure(self, failure: Failure) -> None:
        self._failure = self._failure or failure

    def failure(self) -> Failure | None:
        return self._failure

    def clear_for_restart(self) -> None:
        self._failure = None
        self._accepted.clear()

    def learn(self, topic: str, known: Known) -> None:
        self._learned[topic] = self._learned.get(topic, Known()).updated(known)

    def learned(self) -> dict[str, Known]:
        return dict(self._learned)

    def bytes_per_record(self) -> dict[str, float | None]:
        return {topic: known.bytes_per_record for topic, known in self._learned.items()}

    def learn_sizes(self, sizes: Mapping[str, ValueSizes]) -> None:
        self._sizes.update(sizes)

    def sizes(self) -> dict[str, ValueSizes]:
        return dict(self._sizes)

    def record_planned(self, ranges: Sequence[PlannedRange], recipe: str) -> None:
        for one in ranges:
            known = self._learned.get(one.topic, Known())
            planned = PlannedRange(one.topic, one.partition, one.start, one.end, one.reason, known=known)
            self._planned[one.topic, one.partition] = (recipe, planned)

    def planned(self, recipe: str) -> dict[tuple[str, int], PlannedRange]:
        return {key: planned for key, (made_by, planned) in self._planned.items() if made_by == recipe}

    def append_events(self, events: Sequence[Event]) -> None:
        for event in events:
            self._events.setdefault(event.to_json(), event)
        surplus = max(len(self._events) - self._kept_events, 0)
        self._dropped += surplus
        self._events = dict(list(self._events.items())[surplus:])

    def events_after(self, position: int) -> EventBatch:
        events = tuple(self._events.values())[max(position - self._dropped, 0) :]
        last = self._dropped + len(self._events)
        return EventBatch(events, max(last, position), max(self._dropped - position, 0) if events else 0)

    def close(self) -> None:
        """Nothing is kept open."""
