"""Ranges without a planner: what must be tried again is tried again here, as the planner would have it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from parquet_sink.model.ranges import PlannedRange, Trying
from parquet_sink.model.receipts import Receipt
from parquet_sink.task.outcome import RangeOutcome

Flush = Callable[[Sequence[PlannedRange]], Sequence[RangeOutcome]]


def flush_to_the_end(
    flush: Flush,
    ranges: Sequence[PlannedRange],
    *,
    sleep: Callable[[float], None],
    monotonic: Callable[[], float],
) -> tuple[list[RangeOutcome], list[Receipt]]:
    """The last outcome of each range, and receipts of all attempts at them. flush: one attempt at some of them."""
    outcomes: dict[tuple[str, int], RangeOutcome] = {}
    receipts: list[Receipt] = []
    left = list(ranges)
    while left:
        began_s = monotonic()
        found = flush(left)
        took_s = monotonic() - began_s
        outcomes.update({(one.planned.topic, one.planned.partition): one for one in found})
        receipts += [receipt for one in found for receipt in one.receipts]
        again = [one for one in found if one.again is not None]
        wait_s = max((one.again.wait_s for one in again if one.again is not None), default=0.0)
        if again:
            sleep(wait_s)
        left = [_next_attempt(one, took_s, wait_s) for one in again]
    return [outcomes[one.topic, one.partition] for one in ranges], receipts


def _next_attempt(outcome: RangeOutcome, took_s: float, wait_s: float) -> PlannedRange:
    """Attempts at uploading count their own time; that of transforms counts from task to task."""
    planned = outcome.planned
    assert outcome.again is not None
    tries = outcome.again.tries
    timed = tries.trying is not Trying.TRANSFORM or planned.tries.trying is not Trying.TRANSFORM
    tries = replace(tries, elapsed_s=tries.elapsed_s + (0.0 if timed else took_s) + wait_s)
    return replace(planned, accepted=outcome.accepted_until, tries=tries)
