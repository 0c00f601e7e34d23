"""Notices topics that were deleted and recreated, and ends the query for them.

A topic may be deleted and recreated under the same name at any moment, and offsets of the old one must never pass over
records of the new one. Kafka commits by name, and deletes a group's offsets some time after their topic, also when a
new topic has the name by then: one lost its first ten records so, on a busy machine. The new topic may end above, below
or exactly where the old one did. Each topic has an id that no other topic ever has, and only that tells; the rule is:

  1. the id is asked for before the start offsets of a topic are looked up, and these belong to that id from then on
  2. every committed offset carries the id that it belongs to, so also one that is written after the topic was recreated
     tells the next start which topic it is of; an offset of another id counts as lost
  3. the id is asked for again after the ends were, before a range is taken: a start and an end are of one topic
  4. it is asked for again after the flush, before a commit, since the reader may have met the new topic
  5. and every few seconds, ten where there are very many topic-partitions, since a new topic that ends where the old
     one did has nothing due
  6. a reader forgets where it stood, and what it had fetched ahead, when a range belongs to another id
  7. a topic-partition that was seen to be gone is removed; when it is there again it starts as a new one, and an
     offset that Kafka kept for it is believed only if it names the topic that is there

So asking costs one request when ranges are taken, one when they are committed, and one every five or ten seconds; an
idle tick asks nothing. What follows a change is said by `lost.offsets.policy`: STOP ends the connector, CONTINUE begins
at the first record of the new topic. A broker that lags behind the others may give an older id for a moment; by 2 and 5
the change is found all the same, once they agree. Where the cluster gives no ids, an offset past the end of a
topic-partition, and 7, are what is left to notice it by.
"""

from collections.abc import Iterable, Mapping

from parquet_sink.errors import KafkaFailed, OffsetsLost
from parquet_sink.kafka.leader_epochs import offsets_deleted, topic_recreated
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import LostOffsets
from parquet_sink.planner.context import PlanningContext
from parquet_sink.planner.start_offsets import topics_of


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
        """These topics were deleted and recreated. With CONTINUE the query starts again at their first records."""
        starts, cluster = self._context.offsets.starts, self._context.cluster
        held = [key for key in sorted(starts) if key[0] in topics]
        error = topic_recreated(self._context.settings.kafka, *held[0], starts[held[0]])
        if self._context.settings.kafka.lost_offsets == "STOP":
            raise error
        self._context.ids.refresh(topics)
        first = cluster.beginning_offsets([key for key in cluster.topic_partitions() if key in held])
        self.restart_at(first, error, "Going on at the first record.")

    def restart_at(self, starts: Mapping[PartitionKey, int], why: OffsetsLost, how: str) -> None:
        """Ends the query, which then starts again from the group's offsets: these ones. Raises KafkaFailed."""
        for key in starts:
            self._context.epochs.set(key, None)
        self._context.group.reset(starts)
        for key in starts:
            self._context.on_lost(key, LostOffsets.recreated(self._context.offsets.starts[key]))
        topics = topics_of(starts)
        for topic, partition in self._context.offsets.starts.keys() | starts.keys():
            if topic in topics:
                self._context.state.forget_partition(topic, partition)
        self._context.remember(starts)
        raise KafkaFailed(f"{why} {how}").at(why.topic_partition)

    def on_end_below_start(self, key: PartitionKey, start: int, end: int) -> None:
        """The topic-partition ends below where we stand: deleted and recreated, or truncated.

        With CONTINUE the group is set to its beginning and the query starts again from there. No harm when only the
        last stable offset lies below: someone read further with read_uncommitted.
        """
        if self._context.cluster.high_watermarks([key]).get(key, start) >= start:
            return
        self.check([key[0]])
        first = self._context.cluster.beginning_offsets([key])  # raises when it is unavailable: it is alone
        error = offsets_deleted(self._context.settings.kafka, *key, start, first[key], end)
        if self._context.settings.kafka.lost_offsets == "STOP":
            raise error
        self.restart_at(first, error, f"Going on at {first[key]}.")
