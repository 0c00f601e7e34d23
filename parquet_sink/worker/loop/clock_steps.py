"""Notices that the time of day was set back.

Spark waits for a query's next trigger until a time of day. When the clock is set back by an hour, it would wait an hour
longer. Pure: the clocks are read by the caller.
"""

from typing import Final

NOTICED_S: Final = 2.0
"""What is less is not worth a new start of the query: it waits that long."""


class ClockSteps:
    """Compares the time of day (epoch seconds) with a clock that nobody sets (monotonic seconds)."""

    def __init__(self, wall_s: float, monotonic_s: float) -> None:
        self._ahead_s = wall_s - monotonic_s

    def back_s(self, wall_s: float, monotonic_s: float) -> float:
        """By how many seconds the time of day was set back since it was asked last; 0 when it was not, or by little."""
        before, self._ahead_s = self._ahead_s, wall_s - monotonic_s
        back_s = before - self._ahead_s
        return back_s if back_s >= NOTICED_S else 0.0
