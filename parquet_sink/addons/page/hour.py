"""Files of each connector in the last hour, by reason, and how fresh they were: what the first screen shows."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from parquet_sink.addons.page.charts import kind_of
from parquet_sink.history.records import Origin, UploadRecord
from parquet_sink.history.store import percentiles
from parquet_sink.model.events import ConnectorStarting, Event, FileAccepted, FileFailed, FilePassedOver, RangePostponed

SLOT_S: Final = 300
SLOTS: Final = 12
_MOST_FRESH: Final = 2_000
"""Files of a connector whose freshness is kept, the latest."""


@dataclass
class _Hour:
    slots: dict[int, Counter[str]] = field(default_factory=dict)
    fresh: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_MOST_FRESH))
    seeded: bool = False

    def add(self, at_s: float, kind: str, fresh_s: float | None) -> None:
        slot = int(at_s // SLOT_S)
        self.slots.setdefault(slot, Counter())[kind] += 1
        if fresh_s is not None:
            self.fresh.append((at_s, fresh_s))
        for old in [one for one in self.slots if one < slot - 2 * SLOTS]:
            del self.slots[old]


class LastHour:
    """A `worker.loop.events.Listener`; any thread may ask. clock: epoch seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._begun_s = clock()
        self._hours: dict[str, _Hour] = {}
        self._started: dict[str, float] = {}
        self._lock = threading.Lock()

    def on_event(self, event: Event) -> None:
        if isinstance(event, FileAccepted):
            receipt = event.receipt
            at_s = receipt.accepted_at or event.at_s
            fresh_s = None if receipt.oldest_ms is None else at_s - receipt.oldest_ms / 1000
            self._add(event.connector, at_s, kind_of(receipt.reason), fresh_s)
        elif isinstance(event, ConnectorStarting):
            self._started[event.connector] = event.at_s
        elif isinstance(event, FileFailed | FilePassedOver | RangePostponed):
            self._add(event.connector, event.at_s, "failed", None)

    def _add(self, connector: str, at_s: float, kind: str, fresh_s: float | None) -> None:
        with self._lock:
            self._hours.setdefault(connector, _Hour()).add(at_s, kind, fresh_s)

    def started(self, connector: str) -> float | None:
        """When it was started last, epoch seconds; None where this process did not start it."""
        return self._started.get(connector)

    def refresh(self, connectors: Sequence[object]) -> None:
        """Nothing is shown."""

    def close(self, connectors: Sequence[object]) -> None:
        """Nothing ends."""

    def keep(self, names: Iterable[str]) -> None:
        """Forgets all others: they were deleted."""
        with self._lock:
            for gone in {*self._hours, *self._started}.difference(names):
                self._hours.pop(gone, None)
                self._started.pop(gone, None)

    def to_seed(self, names: Iterable[str]) -> list[str]:
        """Connectors whose history was not looked at yet; they count as looked at from now on."""
        with self._lock:
            hours = [(name, self._hours.setdefault(name, _Hour())) for name in names]
            found = [name for name, one in hours if not one.seeded]
            for _, one in hours:
                one.seeded = True
        return found

    @property
    def begun_ms(self) -> int:
        return int(self._begun_s * 1000)

    def seed(self, connector: str, records: Iterable[UploadRecord]) -> None:
        """What the history has of the time before this process: events tell the rest."""
        for one in records:
            if one.at_ms < self.begun_ms and one.origin is Origin.RUN:
                fresh_s = None if one.freshness_ms is None or one.repeat else one.freshness_ms / 1000
                self._add(connector, one.at_ms / 1000, kind_of(one.reason, one.outcome), fresh_s)

    def of(self, connector: str) -> dict[str, Any]:
        """slots: counts by kind of file, five minutes each, the oldest first. p50, p99: seconds, None without files."""
        now_s = self._clock()
        last = int(now_s // SLOT_S)
        with self._lock:
            found = self._hours.get(connector) or _Hour()
            slots = [dict(found.slots.get(slot, ())) for slot in range(last - SLOTS + 1, last + 1)]
            fresh = [fresh_s for at_s, fresh_s in found.fresh if at_s >= now_s - SLOTS * SLOT_S]
        spread = percentiles(fresh)
        return {
            "slots": slots,
            "files": sum(count for one in slots for kind, count in one.items() if kind != "failed"),
            "failed": sum(one.get("failed", 0) for one in slots),
            "p50": None if spread is None else spread.p50,
            "p99": None if spread is None else spread.p99,
        }
