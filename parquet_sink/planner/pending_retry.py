"""A range whose rest is not accepted yet, and when its next attempt is due."""

from dataclasses import dataclass, replace

from parquet_sink.model.progress import Accepted
from parquet_sink.model.ranges import PlannedRange, Trying


@dataclass(frozen=True)
class PendingRetry:
    """A range whose rest is not accepted yet, and when (by the planner's clock) it may be tried again."""

    planned: PlannedRange
    tried_s: float
    due_s: float

    def now(self, seconds: float) -> PlannedRange:
        """The work of the next attempt; the time since the first counts on."""
        tries = self.planned.tries
        elapsed_s = tries.elapsed_s + max(seconds - self.tried_s, 0.0)
        return replace(self.planned, tries=replace(tries, elapsed_s=elapsed_s))


def pending_retry(
    planned: PlannedRange, found: Accepted | None, now_s: float, taken_s: float | None = None
) -> PendingRetry | None:
    """What is left of a range after a micro-batch; None when nothing is, or it is not ours to try again.

    taken_s: when the micro-batch was planned, by the same clock. A transform's tries take as long as all that is done
    for them; uploads are timed where they are made.
    """
    if found is None or (found.start, found.end) != (planned.start, planned.end) or found.again is None:
        return None
    if found.next_offset >= planned.end:
        return None
    tries = found.again.tries
    if taken_s is not None and tries.trying is planned.tries.trying is Trying.TRANSFORM:
        tries = replace(tries, elapsed_s=tries.elapsed_s + max(now_s - taken_s, 0.0))
    repeated = planned.repeated or (planned.tries.may_be_there and not tries.log)  # else its first file tells itself
    tried = replace(planned, accepted=found.next_offset, tries=tries, repeated=repeated)
    return PendingRetry(tried, now_s, now_s + found.again.wait_s)
