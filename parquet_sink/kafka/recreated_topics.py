"""Notices topics that were deleted and made anew, and ends the query for them: the rule is in `kafka.planner`."""

from collections.abc import Iterable, Mapping

from parquet_sink.errors import KafkaFailed
from parquet_sink.kafka.group_offsets import Key
from parquet_sink.kafka.lost_offsets import offsets_deleted, topic_recreated
from parquet_sink.kafka.progress import Context
from parquet_sink.kafka.start_offsets import topics_of


class TopicGuard:
    """Compares topics with those that our offsets belong to."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def confirm(self, topics: Iterable[str]) -> None:
        """Goes on only if these are still the topics that our offsets belong to. Raises OffsetsLost, KafkaFailed."""
        remade = self._context.ids.remade(topics)
        if remade:
            self._begin_anew(remade)

    def _begin_anew(self, topics: list[str]) -> None:
        """These topics were deleted and made anew. With CONTINUE the query starts again at their first records."""
        starts, cluster = self._context.standing.starts, self._context.cluster
        held = [key for key in sorted(starts) if key[0] in topics]
        error = topic_recreated(*held[0], starts[held[0]])
        if self._context.settings.kafka.lost_offsets == "STOP":
            raise error
        self._context.ids.adopt(topics)
        first = cluster.starts([key for key in cluster.topic_partitions() if key in held])
        self.start_again(first, f"{error} Going on at the first record.")

    def start_again(self, starts: Mapping[Key, int], why: str) -> None:
        """Ends the query, which then starts again from the group's offsets: these ones. Raises KafkaFailed."""
        for key in starts:
            self._context.epochs.hold(key, None)
        self._context.group.set_back(starts)
        topics = topics_of(starts)
        for topic, partition in self._context.standing.starts.keys() | starts.keys():
            if topic in topics:
                self._context.state.forget_partition(topic, partition)
        raise KafkaFailed(why)

    def fell_back(self, key: Key, start: int, end: int) -> None:
        """The topic-partition ends below where we stand: deleted and made anew, or truncated.

        With CONTINUE the group is set to its beginning and the query starts again from there. No harm when only the
        last stable offset lies below: someone read further with read_uncommitted.
        """
        if self._context.cluster.highs([key]).get(key, start) >= start:
            return
        self.confirm([key[0]])
        first = self._context.cluster.starts([key])  # raises when it is away: it is alone
        error = offsets_deleted(*key, start, first[key], end)
        if self._context.settings.kafka.lost_offsets == "STOP":
            raise error
        self.start_again(first, f"{error} Going on at {first[key]}.")
