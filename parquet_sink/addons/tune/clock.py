"""When a simulated connector looks: the ticks of its query, those that find nothing left out."""

from bisect import bisect_left
from math import ceil, floor

from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.planner.admission import seen_ms, tick_ms


class Ticks:
    """As Spark triggers them: at multiples of the period, and at once after a micro-batch that took longer.

    Only ticks at which something may be due are visited; those between are known to come, and count as looks all the
    same. jitter_ms: by how much the planner's clock differs from one tick to the next, at most.
    """

    def __init__(self, flush: FlushSettings, jitter_ms: float) -> None:
        self._flush, self._period, self._jitter = flush, tick_ms(flush), jitter_ms
        self._visited: list[float] = []
        self._free: list[float] = []
        self.count = 0
        self.next_ms = 0.0

    def clock_ms(self, tick_ms: float) -> float:
        """What the planner's clock shows in this tick, whole milliseconds."""
        return float(floor(tick_ms + self._jitter * ((floor(tick_ms) * 2_654_435_761 & 0xFFFF) / 0xFFFF)))

    def at(self, wake_ms: float) -> float:
        """The first tick to come at which the planner's clock shows `wake_ms`, or more."""
        tick = self.next_ms
        if wake_ms - self._jitter > tick:
            tick = max(tick, self._aligned(wake_ms - self._jitter))
        while self.clock_ms(tick) < wake_ms:
            tick = self._after(tick)
        return tick

    def visit(self, tick_ms: float, free_ms: float) -> None:
        """This tick was looked at, and the next may come from `free_ms` on."""
        self.count += 1 + max(round((tick_ms - self.next_ms) / self._period), 0)
        self._visited.append(tick_ms)
        self.next_ms = max(free_ms, self._after(tick_ms))
        self._free.append(self.next_ms)

    @property
    def regular(self) -> bool:
        """Whether the next tick comes so soon after the last that what is new at it is as old as it seems."""
        return self.next_ms == seen_ms(self.next_ms, self._visited[-1], self._flush)

    def seen_ms(self, wanted: float) -> float:
        """When a record counts as arrived that is there from a time on (`admission.seen_ms`).

        That is what the planner's clock shows in the first tick from then on; visited or not, or the next to come.
        """
        i = bisect_left(self._visited, wanted)
        earliest = self._free[i - 1] if i else 0.0
        if i and wanted <= earliest:
            tick = min(earliest, self._visited[i]) if i < len(self._visited) else earliest
            return seen_ms(self.clock_ms(tick), self.clock_ms(self._visited[i - 1]), self._flush)
        tick = earliest if wanted <= earliest else self._aligned(wanted)
        return self.clock_ms(min(tick, self._visited[i]) if i < len(self._visited) else tick)

    def _aligned(self, at_ms: float) -> float:
        return ceil(at_ms / self._period) * float(self._period)

    def _after(self, tick_ms: float) -> float:
        return floor(tick_ms / self._period) * float(self._period) + self._period
