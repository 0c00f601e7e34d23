"""Which topic-partitions there are, and where new ones start."""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from parquet_sink.kafka import clients
from parquet_sink.kafka.away import Aside
from parquet_sink.kafka.guard import TopicGuard
from parquet_sink.kafka.offsets import Key
from parquet_sink.kafka.plans import RangePlanner
from parquet_sink.kafka.standing import Context
from parquet_sink.kafka.starts import Starts, topics_of

log = logging.getLogger(__name__)

METADATA_S: Final = 10.0
"""How often new topics and topic-partitions are looked for, unless `metadata.max.age.ms` says otherwise."""


class Discovery:
    """Takes in topic-partitions that are new, lets go of those that were deleted."""

    def __init__(self, context: Context, guard: TopicGuard, planner: RangePlanner) -> None:
        self._context, self._guard, self._planner = context, guard, planner
        self._resolver = Starts(context.settings, context.cluster, context.group, context.ids)
        self._looked = 0.0
        self._aside = Aside(context.cluster, context.now)
        self._late: dict[Key, str] = {}
        """How those start that were away at the start of the query: not as new ones do."""

    def begin(self) -> dict[Key, int]:
        """Where each topic-partition starts: at its committed offset, else where `auto.offset.reset` says.

        Raises OffsetsLost, KafkaFailed.
        """
        keys, reset = self._context.cluster.topic_partitions(), self._first_reset()
        starts = self._resolve(keys, reset)
        self._late = {key: reset for key in keys if key not in starts}
        self._looked = self._context.now()
        return starts

    def _first_reset(self) -> str:
        """What `auto.offset.reset` says; but when the query starts again, what has no offset is new since it began."""
        reset = self._context.settings.kafka.offset_reset
        return "earliest" if reset == "latest" and self._context.state.said("begun") else reset

    def look(self) -> None:
        """Takes in topics and topic-partitions that are new, if it is time; reads them from their first record."""
        settings, now, starts = self._context.settings, self._context.now, self._context.standing.starts
        if back := list(self._aside.ends([key for key in self._context.away if key not in starts])):
            self._take_in(back)
        if now() - self._looked < clients.seconds(settings.kafka, "metadata.max.age.ms", METADATA_S):
            return
        keys = self._context.cluster.topic_partitions()
        self._let_go(starts.keys() - set(keys))
        self._context.away.forget([key for key in self._context.away if key not in keys])
        fresh = [key for key in keys if key not in starts and key not in self._context.away]
        if fresh:
            self._take_in(fresh)
        self._looked = now()

    def _let_go(self, gone: Iterable[Key]) -> None:
        standing = self._context.standing
        for key in sorted(gone):
            log.warning("connector %s: topic %s, topic-partition %d is gone", self._context.settings.name, *key)
            standing.let_go(key)
        self._context.away.forget(gone)
        self._context.ids.let_go(topics_of(standing.gone) - topics_of(standing.starts))

    def _take_in(self, fresh: list[Key]) -> None:
        standing = self._context.standing
        joined: dict[Key, int] = {}
        for reset in sorted({self._late.get(key, "earliest") for key in fresh}):
            joined |= self._resolve([key for key in fresh if self._late.get(key, "earliest") == reset], reset)
        back = sorted(standing.gone.intersection(fresh))
        if back:
            topic, partition = back[0]
            why = (
                f"Topic {topic}, topic-partition {partition} was deleted and made anew; going on at {joined[back[0]]}."
            )
            self._guard.start_again(joined, why)
        self._context.group.take_over(joined, self._planner.planned)
        standing.starts.update(joined)
        if new := {key: offset for key, offset in joined.items() if self._late.pop(key, None) is None}:
            log.info("connector %s: new topic-partitions %s", self._context.settings.name, named(new))

    def _resolve(self, keys: list[Key], reset: str) -> dict[Key, int]:
        """The start of each: its committed offset if Kafka still has it, else by `reset`; absent: those away."""
        self._context.ids.adopt(topics_of(keys) - topics_of(self._context.standing.starts))
        starts, plans = self._resolver.resolve(keys, reset)
        self._context.away.mark((key for key in keys if key not in starts), self._context.cluster.why_away)
        self._context.away.back(starts)
        self._planner.planned = {key: plan for key, plan in self._planner.planned.items() if key not in keys} | plans
        return starts


def named(keys: Mapping[Key, object]) -> str:
    """Topic-partitions for a log line."""
    return ", ".join(f"{topic} {partition}" for topic, partition in sorted(keys))
