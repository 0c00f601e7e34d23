"""Whether a query that failed is started again, and after how long.

Progress is what counts, not time: a range that fails after minutes of work, again and again, is no better than one that
fails at once. And it is the progress of what failed: other topic-partitions may well go on meanwhile.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.receipts import Failure, Restart
from parquet_sink.settings.connector import RestartSettings

NOTICED_S: Final = 2.0
"""What is less is not worth a new start of the query: it waits that long."""
WINDOW_S: Final = 600.0
"""Failures with no range in flight count together when they come within so many seconds."""
PAUSE_S: Final = 2.0
"""The first pause before something unavailable is asked again; the n-th is n times as long."""
BUSY_MS: Final = 1_800_000
BUSY_PAUSE_S: Final = 30.0
"""A machine that is too busy to start a process is waited for half an hour, with pauses of half a minute at most."""


@dataclass(frozen=True)
class Positions:
    """Where a connector stood when its query failed.

    next_offsets: of each topic-partition, the next offset to deliver. in_flight: those whose range was being flushed.
    """

    next_offsets: Mapping[PartitionKey, int] = field(default_factory=dict)
    in_flight: Collection[PartitionKey] = ()


@dataclass
class RestartBudget:
    """Counts failures without progress, of the topic-partitions to blame."""

    bounds: RestartSettings = field(default_factory=RestartSettings)
    _failures: dict[PartitionKey, tuple[int, int]] = field(default_factory=dict)
    """Next offset at the last failure, and how many failures in a row were there."""
    _idle_failures_s: list[float] = field(default_factory=list)
    _next_offsets: dict[PartitionKey, int] = field(default_factory=dict)

    def pause_s(self, now_s: float, failed: PartitionKey | None, at: Positions) -> float | None:
        """Notes a failure, of this topic-partition or of all that were in flight. Seconds until the next start.

        None: the budget is used up.
        """
        blamed = [key for key in (at.in_flight if failed is None else (failed,)) if key in at.next_offsets]
        failures = max((self._count(key, at.next_offsets[key]) for key in blamed), default=0)
        if not blamed:
            failures = self._count_idle(now_s, at)
        self._next_offsets = dict(at.next_offsets)
        if 0 <= self.bounds.most < failures:
            return None
        return min(self.bounds.pause_ms * failures, self.bounds.longest_ms) / 1_000

    def _count(self, key: PartitionKey, next_offset: int) -> int:
        before, count = self._failures.get(key, (next_offset, 0))
        count = count + 1 if next_offset == before else 1
        self._failures[key] = (next_offset, count)
        return count

    def _count_idle(self, now_s: float, at: Positions) -> int:
        """Nothing was in flight, as far as is known: any movement is progress, and so is a while without failure."""
        moved = any(offset != self._next_offsets.get(key, offset) for key, offset in at.next_offsets.items())
        recent = [] if moved else [then for then in self._idle_failures_s if now_s - then < WINDOW_S]
        self._idle_failures_s = [*recent, now_s]
        return len(self._idle_failures_s)


@dataclass
class WaitBudget:
    """How long something unavailable is waited for; it begins again after WINDOW_S without a failure."""

    first_s: float = PAUSE_S
    _failures_s: list[float] = field(default_factory=list)

    def pause_s(self, now_s: float, limit_ms: int, longest_s: float) -> float | None:
        """Notes a failure. Seconds until the next start, growing up to `longest_s`; None: `limit_ms` are over.

        limit_ms: since the first failure; -1 is no limit.
        """
        if self._failures_s and now_s - self._failures_s[-1] >= WINDOW_S:
            self._failures_s.clear()
        self._failures_s.append(now_s)
        if 0 <= limit_ms <= 1000 * (now_s - self._failures_s[0]):
            return None
        return min(self.first_s * len(self._failures_s), longest_s)


class RestartPolicy:
    """Decides by the reaction of a failure. registry_wait_ms: how long the registry is waited for, -1 without end.

    registry_pause_ms: the longest pause meanwhile. waits: for brokers as long as the bounds say also at the start,
    since nobody would start the connector again.
    """

    def __init__(
        self,
        registry_wait_ms: int,
        registry_pause_ms: int,
        bounds: RestartSettings | None = None,
        *,
        waits: bool = False,
    ) -> None:
        self._waits, self._bounds = waits, bounds or RestartSettings()
        self._registry_wait_ms, self._registry_pause_s = registry_wait_ms, registry_pause_ms / 1000
        self._restarts = RestartBudget(self._bounds)
        self._registry, self._machine = WaitBudget(), WaitBudget()
        self._brokers = WaitBudget(self._bounds.pause_ms / 1_000)

    def pause_s(
        self, failure: Failure, now_s: float, positions: Callable[[], Positions], *, started: bool
    ) -> float | None:
        """Seconds until the query is started again; None: the connector fails.

        positions: asked for only where progress counts. started: whether the query had found out where its
        topic-partitions start. Until then Kafka is waited for within the query, and another start knows no better,
        unless the connector waits.
        """
        reaction = failure.reaction
        if self._waits and not started and reaction.restart is Restart.BOUNDED and not reaction.at_start:
            return self._brokers.pause_s(now_s, self._bounds.away_ms, self._bounds.longest_ms / 1_000)
        if reaction.restart is Restart.NEVER or not (started or reaction.at_start):
            return None
        if reaction.restart is Restart.MACHINE:
            return self._machine.pause_s(now_s, BUSY_MS, BUSY_PAUSE_S)
        if reaction.restart is Restart.REGISTRY:
            pause_s = self._registry.pause_s(now_s, self._registry_wait_ms, self._registry_pause_s)
            if pause_s is not None:
                return pause_s
        return self._restarts.pause_s(now_s, failure.topic_partition, positions())


class ClockSteps:
    """Notices that the time of day (epoch seconds) was set back, by a clock that nobody sets (monotonic seconds).

    Spark waits for a query's next trigger until a time of day: set back by an hour, it would wait an hour longer.
    """

    def __init__(self, wall_s: float, monotonic_s: float) -> None:
        self._ahead_s = wall_s - monotonic_s

    def back_s(self, wall_s: float, monotonic_s: float) -> float:
        """By how many seconds the time of day was set back since it was asked last; 0 when it was not, or by little."""
        before, self._ahead_s = self._ahead_s, wall_s - monotonic_s
        back_s = before - self._ahead_s
        return back_s if back_s >= NOTICED_S else 0.0
