"""Which Spark task reads which ranges."""

from collections.abc import Sequence
from typing import Final

from parquet_sink.model.ranges import PlannedRange

MOST_TASKS: Final = 64
"""Spark tasks of one micro-batch when `tasks.max` is not set."""


def by_task(spans: Sequence[PlannedRange], tasks: int | None) -> list[list[PlannedRange]]:
    """Ranges dealt to at most `tasks` Spark tasks, longest first, each to the task with the least so far.

    tasks None: one each, but no more than MOST_TASKS.
    """
    piles: list[list[PlannedRange]] = [[] for _ in range(min(tasks or MOST_TASKS, len(spans)))]
    loads = [0] * len(piles)
    for span in sorted(spans, key=lambda s: (s.start - s.end, s.topic, s.partition)):
        lightest = loads.index(min(loads))
        piles[lightest].append(span)
        loads[lightest] += span.end - span.start
    return piles
