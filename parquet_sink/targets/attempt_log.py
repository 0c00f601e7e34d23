"""What came of each attempt at one file, noted as it is made."""

from collections import Counter
from collections.abc import Callable

from parquet_sink.model.ranges import LONGEST_CAUSE, Attempt, AttemptCount, logged
from parquet_sink.targets.outcome import Outcome


class AttemptLog:
    """attempts: those so far, with earlier ones. monotonic: seconds. now: epoch seconds."""

    def __init__(self, earlier: tuple[Attempt, ...], monotonic: Callable[[], float], now: Callable[[], float]) -> None:
        self.attempts = earlier
        self._counts: Counter[tuple[str, int | None]] = Counter()
        self._monotonic, self._now = monotonic, now

    @property
    def counts(self) -> tuple[AttemptCount, ...]:
        """How those came out that were made here, without the earlier ones; none is left out."""
        return tuple(AttemptCount(*answer, count) for answer, count in self._counts.items())

    def add(self, attempt: Callable[[], Outcome]) -> Outcome:
        """Makes an attempt and notes what came of it; gives that back."""
        at_ms, began_s = round(self._now() * 1000), self._monotonic()
        outcome = attempt()
        self._counts[str(outcome.verdict), outcome.status] += 1
        seconds, cause = self._monotonic() - began_s, outcome.cause[:LONGEST_CAUSE]
        self.attempts = logged(self.attempts, Attempt(at_ms, seconds, str(outcome.verdict), outcome.status, cause))
        return outcome
