"""When a range is tried again because a record sink could not take its records."""

from dataclasses import dataclass

from parquet_sink.model.ranges import Again, Tries, Trying
from parquet_sink.settings.connector import RestartSettings


@dataclass(frozen=True)
class PutRetry:
    """By the keys that say how a connector is started again: so often without progress, the n-th pause n times as long.

    bounds: `most` and the pauses of it count.
    """

    bounds: RestartSettings

    def again(self, tries: Tries) -> Again | None:
        """The next try, after a failure behind `tries`; None: no more."""
        if tries.trying is not Trying.PUT:
            tries = Tries(trying=Trying.PUT)
        failures = tries.attempts + 1
        if 0 <= self.bounds.most < failures:
            return None
        pause_ms = min(self.bounds.pause_ms * failures, self.bounds.longest_ms)
        return Again(Tries(failures, tries.elapsed_s, Trying.PUT), pause_ms / 1_000)
