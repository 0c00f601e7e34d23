"""What is looked after while nothing happens: other hands on the group, and offsets that Kafka would forget."""

from typing import Final

from parquet_sink.kafka.progress import Context
from parquet_sink.kafka.range_plans import RangePlanner
from parquet_sink.kafka.recreated_topics import TopicGuard
from parquet_sink.kafka.start_offsets import topics_of

CHECK_S: Final = 5.0
"""How often an idle connector looks whether another instance took its group over, or a topic was made anew."""
SIGN_S: Final = 3_600.0
"""How often all offsets are committed again, moved or not: Kafka forgets those of a group without members, each by its
own age (`offsets.retention.minutes`, a week by default)."""


class Vigil:
    """Looks every few seconds, and signs all offsets every hour."""

    def __init__(self, context: Context, guard: TopicGuard, planner: RangePlanner) -> None:
        self._context, self._guard, self._planner = context, guard, planner
        self._checked = self._signed = 0.0

    def begin(self) -> None:
        """All offsets were signed just now."""
        self._checked = self._signed = self._context.now()

    def keep(self) -> None:
        """Looks and signs if it is time. Raises OffsetsLost, AnotherInstance, KafkaFailed."""
        starts, group, now = self._context.standing.starts, self._context.group, self._context.now
        if now() - self._checked >= CHECK_S:
            self._guard.confirm(topics_of(starts))
            group.check()
            self._checked = now()
        if now() - self._signed >= SIGN_S:
            self._guard.confirm(topics_of(starts))
            group.renew(starts, self._planner.plans())
            self._signed = now()
