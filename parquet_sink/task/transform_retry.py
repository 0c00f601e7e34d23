"""When a range is tried again because a transform could not work, as Kafka Connect retries transforms."""

from collections.abc import Callable
from dataclasses import dataclass
from random import random
from typing import Final

from parquet_sink.model.ranges import Again, Tries, Trying

FIRST_PAUSE_MS: Final = 300
_MOST_DOUBLINGS: Final = 40


@dataclass(frozen=True)
class TransformRetry:
    """timeout_ms: since the first failure; 0: not at all, -1: without end. longest_ms: the longest pause."""

    timeout_ms: int
    longest_ms: int

    def again(self, tries: Tries, chance: Callable[[], float] = random) -> Again | None:
        """The next try, after a failure behind `tries`; None: no more. chance: from 0 up to 1."""
        if tries.trying is not Trying.TRANSFORM:
            tries = Tries(trying=Trying.TRANSFORM)
        left_ms = self.timeout_ms - 1000 * tries.elapsed_s
        if self.timeout_ms >= 0 and left_ms <= 0:
            return None
        pause_ms = float(FIRST_PAUSE_MS * 2 ** min(tries.attempts, _MOST_DOUBLINGS))
        if pause_ms > self.longest_ms:
            pause_ms = chance() * self.longest_ms
        if self.timeout_ms >= 0:
            pause_ms = min(pause_ms, left_ms)
        return Again(Tries(tries.attempts + 1, tries.elapsed_s, Trying.TRANSFORM), pause_ms / 1000)
