"""What is looked after while nothing happens: other hands on the group, and offsets that Kafka would forget."""

from typing import Final

from parquet_sink.planner.context import PlanningContext
from parquet_sink.planner.range_plans import RangePlans
from parquet_sink.planner.recreated_topics import RecreatedTopics
from parquet_sink.planner.start_offsets import topics_of

CHECK_S: Final = 5.0
"""How often an idle connector looks whether another instance took its group over, or a topic was made anew."""
RECOMMIT_S: Final = 3_600.0
"""How often all offsets are committed again, moved or not: Kafka forgets those of a group without members, each by its
own age (`offsets.retention.minutes`, a week by default)."""


class GroupMonitor:
    """Looks every few seconds, and signs all offsets every hour."""

    def __init__(self, context: PlanningContext, recreated: RecreatedTopics, plans: RangePlans) -> None:
        self._context, self._recreated, self._plans = context, recreated, plans
        self._checked = self._recommitted = 0.0

    def start(self) -> None:
        """All offsets were signed just now."""
        self._checked = self._recommitted = self._context.now()

    def check(self) -> None:
        """Looks and signs if it is time. Raises OffsetsLost, AnotherInstance, KafkaFailed."""
        starts, group, now = self._context.offsets.starts, self._context.group, self._context.now
        if now() - self._checked >= CHECK_S:
            self._recreated.check(topics_of(starts))
            group.verify()
            self._checked = now()
        if now() - self._recommitted >= RECOMMIT_S:
            self._recreated.check(topics_of(starts))
            group.recommit(starts, self._plans.plans())
            self._recommitted = now()
