"""Whether a quantity stays flat over time. Pure.

The measured time is parted into blocks of equal length, whose medians leave out what comes and goes with a fault or a
garbage collection. A straight line through them has a slope, with an interval of 95 %. A quantity grows when even
the lower end of that interval is more than its tolerance: what chance may explain fails no run. The upper end says what
the run could not rule out: a short run says little, and shows it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

BLOCKS: Final = 12
_STUDENT: Final = {
    3: 3.182,
    4: 2.776,
    5: 2.571,
    6: 2.447,
    7: 2.365,
    8: 2.306,
    9: 2.262,
    10: 2.228,
}
"""Quantiles of Student's distribution for a two-sided interval of 95 %, by degrees of freedom."""

Point = tuple[float, float]
"""seconds, value"""


@dataclass(frozen=True)
class Tolerance:
    """Growth that is allowed: a share of the level in an hour, and at least so much in the whole measured time.

    The least amount is for what takes its place once, as a heap does after a collection, and then stays.
    """

    hourly_share: float
    least: float

    def allowed(self, level: float, hours: float) -> float:
        """Growth over so many hours."""
        return max(self.hourly_share * level * hours, self.least)


@dataclass(frozen=True)
class Slope:
    """level: the median of all points. grown: over the measured time, with the ends of its interval."""

    level: float
    hours: float
    grown: float
    low: float
    high: float
    allowed: float

    @property
    def flat(self) -> bool:
        """Whether the growth is within its tolerance, as far as can be told."""
        return self.low <= self.allowed

    def hourly(self, grown: float) -> float:
        """A growth over the measured time as one in an hour."""
        return grown / self.hours


def slope(points: Sequence[Point], tolerance: Tolerance) -> Slope | None:
    """None when there are too few points, or of too little time, to tell anything."""
    blocks = _blocks(points)
    if len(blocks) < min(_STUDENT) + 2:
        return None
    times, values = zip(*blocks, strict=True)
    middle, mean = fmean(times), fmean(values)
    spread = sum((at - middle) ** 2 for at in times)
    rise = sum((at - middle) * (value - mean) for at, value in blocks) / spread
    rest = sum((value - mean - rise * (at - middle)) ** 2 for at, value in blocks)
    doubt = _STUDENT[len(blocks) - 2] * (rest / (len(blocks) - 2) / spread) ** 0.5
    seconds = points[-1][0] - points[0][0]
    level, hours = median(value for _, value in points), seconds / 3_600
    allowed = tolerance.allowed(level, hours)
    return Slope(level, hours, rise * seconds, (rise - doubt) * seconds, (rise + doubt) * seconds, allowed)


def _blocks(points: Sequence[Point]) -> list[Point]:
    """The middle of each block's time and the median of its values; blocks without points are left out."""
    if len(points) < BLOCKS or points[-1][0] <= points[0][0]:
        return []
    began, length = points[0][0], (points[-1][0] - points[0][0]) / BLOCKS
    parts: list[list[float]] = [[] for _ in range(BLOCKS)]
    for at, value in points:
        parts[min(int((at - began) / length), BLOCKS - 1)].append(value)
    return [(began + (index + 0.5) * length, median(part)) for index, part in enumerate(parts) if part]
