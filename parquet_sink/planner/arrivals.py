"""When records of a topic-partition arrived, in bounded memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

MARKS: Final = 512
"""Arrival marks kept for one topic-partition; older neighbours are merged, which only makes records seem older."""


@dataclass(frozen=True)
class Arrivals:
    """When offsets were first seen: (end offset exclusive, epoch milliseconds), both rising."""

    marks: tuple[tuple[int, int], ...] = ()

    def observed(self, high: int, now_ms: int) -> "Arrivals":
        """With everything below `high` seen by `now_ms`."""
        last = self.marks[-1][0] if self.marks else -1
        if high <= last:
            return self
        marks = (*self.marks, (high, now_ms))
        return Arrivals(marks if len(marks) <= MARKS else _merged(marks))

    def after(self, start: int) -> "Arrivals":
        """Without marks whose records are all below `start`, the first unflushed offset."""
        if not self.marks or self.marks[0][0] > start:
            return self
        return replace(self, marks=tuple(m for m in self.marks if m[0] > start))

    def oldest_ms(self, start: int) -> int | None:
        """When the record at `start` was seen; None when nothing at or above it was."""
        return next((ms for high, ms in self.marks if high > start), None)


def _merged(marks: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Half as many marks; each pair keeps the earlier time, so ages never shrink."""
    pairs = [marks[i : i + 2] for i in range(0, len(marks), 2)]
    return tuple((pair[-1][0], pair[0][1]) for pair in pairs)
