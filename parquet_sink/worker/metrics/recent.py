"""Amounts of the last minute, as Kafka's own rates, means and maxima have it. Pure."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

WINDOW_S: Final = 60


@dataclass
class Recent:
    """Of one kind of thing; takes a bucket for each second, however much happens. Seconds come from one clock."""

    _buckets: deque[tuple[int, int, float, float]] = field(default_factory=deque)
    """Second, how often, sum, maximum."""

    def add(self, now_s: float, amount: float) -> None:
        """It happened now, so much of it."""
        second, times, total, most = int(now_s), 1, amount, amount
        if self._buckets and self._buckets[-1][0] >= second:
            second, before, sum_before, most_before = self._buckets.pop()
            times, total, most = before + 1, sum_before + amount, max(most_before, amount)
        self._buckets.append((second, times, total, most))
        self._drop(now_s)

    def rate(self, now_s: float) -> float:
        """Of the sum, in a second."""
        self._drop(now_s)
        return sum(total for _, _, total, _ in self._buckets) / WINDOW_S

    def mean(self, now_s: float) -> float:
        """Of the amounts; 0 when there are none."""
        self._drop(now_s)
        times = sum(times for _, times, _, _ in self._buckets)
        return sum(total for _, _, total, _ in self._buckets) / times if times else 0.0

    def maximum(self, now_s: float) -> float:
        """Of the amounts; 0 when there are none."""
        self._drop(now_s)
        return max((most for _, _, _, most in self._buckets), default=0.0)

    def _drop(self, now_s: float) -> None:
        while self._buckets and self._buckets[0][0] <= now_s - WINDOW_S:
            self._buckets.popleft()
