"""Notices topics that were deleted and made anew, and ends the query for them. The rule: `kafka.planning.planner`."""

from collections.abc import Iterable, Mapping

from parquet_sink.errors import KafkaFailed
from parquet_sink.kafka.group.offsets import Key
from parquet_sink.kafka.lost_offsets import offsets_deleted, topic_recreated
from parquet_sink.kafka.planning.context import PlanningContext
from parquet_sink.kafka.planning.start_offsets import topics_of


class RecreatedTopics:
    """Compares topics with those that our offsets belong to."""

    def __init__(self, context: PlanningContext) -> None:
        self._context = context

    def check(self, topics: Iterable[str]) -> None:
        """Goes on only if these are still the topics that our offsets belong to. Raises OffsetsLost, KafkaFailed."""
        recreated = self._context.ids.recreated(topics)
        if recreated:
            self._restart_at_first(recreated)

    def _restart_at_first(self, topics: list[str]) -> None:
        """These topics were deleted and made anew. With CONTINUE the query starts again at their first records."""
        starts, cluster = self._context.offsets.starts, self._context.cluster
        held = [key for key in sorted(starts) if key[0] in topics]
        error = topic_recreated(*held[0], starts[held[0]])
        if self._context.settings.kafka.lost_offsets == "STOP":
            raise error
        self._context.ids.refresh(topics)
        first = cluster.beginning_offsets([key for key in cluster.topic_partitions() if key in held])
        self.restart_at(first, f"{error} Going on at the first record.")

    def restart_at(self, starts: Mapping[Key, int], why: str) -> None:
        """EndOffsets the query, which then starts again from the group's offsets: these ones. Raises KafkaFailed."""
        for key in starts:
            self._context.epochs.set(key, None)
        self._context.group.reset(starts)
        topics = topics_of(starts)
        for topic, partition in self._context.offsets.starts.keys() | starts.keys():
            if topic in topics:
                self._context.state.forget_partition(topic, partition)
        raise KafkaFailed(why)

    def on_end_below_start(self, key: Key, start: int, end: int) -> None:
        """The topic-partition ends below where we stand: deleted and made anew, or truncated.

        With CONTINUE the group is set to its beginning and the query starts again from there. No harm when only the
        last stable offset lies below: someone read further with read_uncommitted.
        """
        if self._context.cluster.high_watermarks([key]).get(key, start) >= start:
            return
        self.check([key[0]])
        first = self._context.cluster.beginning_offsets([key])  # raises when it is away: it is alone
        error = offsets_deleted(*key, start, first[key], end)
        if self._context.settings.kafka.lost_offsets == "STOP":
            raise error
        self.restart_at(first, f"{error} Going on at {first[key]}.")
