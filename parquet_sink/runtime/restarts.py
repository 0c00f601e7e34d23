"""How often a query that failed is started again: a bounded number of times without progress. Pure.

Progress is what counts, not time: a range that fails after minutes of work, again and again, is no better than one that
fails at once. And it is the progress of what failed: other topic-partitions may well go on meanwhile.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

MOST: Final = 5
"""Times a query is started again without progress before its connector fails."""
WINDOW_S: Final = 600.0
"""Failures with no range in flight count together when they come within so many seconds."""
PAUSE_S: Final = 2.0
"""The first pause; the n-th is n times as long."""
_NAMED: Final = re.compile(r"[Tt]opic (\S+), topic-partition (\d+)")

Key = tuple[str, int]


@dataclass(frozen=True)
class Standing:
    """Where a connector stood when its query failed.

    positions: next offset to deliver, of each topic-partition. unfinished: those whose range was in flight.
    """

    positions: Mapping[Key, int] = field(default_factory=dict)
    unfinished: Collection[Key] = ()


@dataclass
class Restarts:
    """What failures have been, and whether one more start may help."""

    _failed_at: dict[Key, tuple[int, int]] = field(default_factory=dict)
    """Position at its last failure, and how many failures in a row were there."""
    _idle: list[float] = field(default_factory=list)
    _positions: dict[Key, int] = field(default_factory=dict)

    def pause_s(self, now_s: float, message: str, standing: Standing) -> float | None:
        """Seconds until the next start; None: no more of them."""
        blamed = [key for key in _blamed(message, standing) if key in standing.positions]
        failures = max((self._failed_again(key, standing.positions[key]) for key in blamed), default=0)
        if not blamed:
            failures = self._failed_idle(now_s, standing)
        self._positions = dict(standing.positions)
        return PAUSE_S * failures if failures <= MOST else None

    def _failed_again(self, key: Key, position: int) -> int:
        before, times = self._failed_at.get(key, (position, 0))
        times = times + 1 if position == before else 1
        self._failed_at[key] = (position, times)
        return times

    def _failed_idle(self, now_s: float, standing: Standing) -> int:
        """Nothing was in flight, as far as is known: any movement is progress, and so is a while without failure."""
        moved = any(position != self._positions.get(key, position) for key, position in standing.positions.items())
        recent = [] if moved else [at for at in self._idle if now_s - at < WINDOW_S]
        self._idle = [*recent, now_s]
        return len(self._idle)


@dataclass
class Patience:
    """How long the schema registry is waited for; it begins anew when the registry was there for a while."""

    _failed_at: list[float] = field(default_factory=list)

    @property
    def pause_s(self) -> float:
        """Seconds until the next start; it grows as for other failures."""
        return PAUSE_S * len(self._failed_at)

    def lasts(self, now_s: float, patience_ms: int) -> bool:
        """Notes a failure; whether `patience_ms` (-1: without end) is not over."""
        if self._failed_at and now_s - self._failed_at[-1] >= WINDOW_S:
            self._failed_at.clear()
        self._failed_at.append(now_s)
        return patience_ms < 0 or 1000 * (now_s - self._failed_at[0]) < patience_ms


def _blamed(message: str, standing: Standing) -> Collection[Key]:
    """The topic-partition that the failure names; else all that were in flight."""
    named = _NAMED.search(message)
    return [(named[1], int(named[2]))] if named else standing.unfinished
