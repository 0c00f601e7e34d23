"""Says when the flush interval cannot be kept: records wait for micro-batches that take longer than it."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from parquet_sink.model.events import FlushIntervalExceeded
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.planner.context import PlanningContext

log = logging.getLogger(__name__)

EXCEEDED: Final = 2.0
"""Times the interval after which a range is taken too late; a tick, and the micro-batch before, take their time."""
TICKS_S: Final = 1.0
LOG_S: Final = 600.0
"""A line of the log for what goes on, each so often."""


class LateFlushes:
    """Compares the ages of ranges with the interval when they are taken.

    What waited while nothing was to be taken is not late: what was there at the start, what came during a pause, or
    while uploads fail, which is told elsewhere. Ages count from the end of that.
    """

    def __init__(self, context: PlanningContext) -> None:
        self._context = context
        self._since_s = context.now()
        self._running: tuple[int, float] | None = None
        self._told = FlushIntervalExceeded(context.settings.name, 0.0, 0, 0.0, 0.0, 0, 0.0)
        self._logged_s = -LOG_S
        self._ranges, self._batch_s = 0, 0.0

    def tick(self, *, excused: bool) -> None:
        """At each, before ranges are taken: the micro-batch before is done. excused: what waits now is not late."""
        now_s = self._context.now()
        if self._running is not None:
            self._ranges, self._batch_s = self._running[0], now_s - self._running[1]
            self._running = None
        if excused:
            self._since_s = now_s

    def taken(self, ranges: Sequence[PlannedRange], oldest_ms: Mapping[PartitionKey, int]) -> None:
        """These make the next micro-batch. oldest_ms: when the first record of each was seen."""
        if not ranges:
            return
        now_s = self._context.now()
        self._running = len(ranges), now_s
        interval_s = self._context.settings.flush.commit_interval_ms / 1_000
        seen_s = [oldest_ms.get((one.topic, one.partition), now_s * 1_000) / 1_000 for one in ranges]
        waited = [now_s - max(at_s, self._since_s) for at_s in seen_s]
        late = [seconds for seconds in waited if seconds > EXCEEDED * interval_s + TICKS_S]
        told = FlushIntervalExceeded(
            connector=self._context.settings.name,
            at_s=now_s,
            partitions=len(late),
            waited_s=max(late, default=0.0),
            interval_s=interval_s,
            batch_ranges=self._ranges,
            batch_s=self._batch_s,
        )
        if late or self._told.partitions:
            self._context.state.append_events([told])
        if late and (not self._told.partitions or now_s - self._logged_s >= LOG_S):
            self._logged_s = now_s
            log.warning("connector %s: %s", told.connector, told.described)
        self._told = replace(told)
