"""Which topic-partitions there are, and where new ones start."""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from parquet_sink.errors import BrokerAway, TopicGone
from parquet_sink.kafka import client_options
from parquet_sink.kafka.ages import Ages
from parquet_sink.kafka.group_offsets import Key
from parquet_sink.kafka.progress import Context
from parquet_sink.kafka.range_plans import RangePlanner
from parquet_sink.kafka.start_offsets import Starts, topics_of
from parquet_sink.kafka.unavailable import Aside
from parquet_sink.state.store import STARTED

log = logging.getLogger(__name__)

METADATA_S: Final = 10.0
"""How often new topics and topic-partitions are looked for, unless `metadata.max.age.ms` says otherwise."""
MISSING_LOG_S: Final = 600.0


class Discovery:
    """Takes in topic-partitions that are new, lets go of those that were deleted; the others go on."""

    def __init__(self, context: Context, planner: RangePlanner, ages: Ages) -> None:
        self._context, self._planner, self._ages = context, planner, ages
        self._resolver = Starts(context.settings, context.cluster, context.group, context.ids, context.epochs)
        self._looked = self._reminded = 0.0
        self._aside = Aside(context.cluster, context.now)
        self._late: dict[Key, str] = {}
        """How those start that were away at the start of the query: not as new ones do."""

    def begin(self) -> dict[Key, int]:
        """Where each topic-partition starts: at its committed offset, else where `auto.offset.reset` says.

        A topic that the connector names must be there at its first start. Raises OffsetsLost, KafkaFailed.
        """
        again = bool(self._context.state.get(STARTED))
        keys, reset = self._context.cluster.topic_partitions(missing_too=again), self._first_reset(again)
        try:
            starts = self._resolve(keys, reset)
        except TopicGone as error:
            raise BrokerAway(str(error)) from None
        self._late = {key: reset for key in keys if key not in starts}
        self._looked = self._context.now()
        return starts

    def _first_reset(self, again: bool) -> str:
        """What `auto.offset.reset` says; but when the query starts again, what has no offset is new since it began."""
        reset = self._context.settings.kafka.offset_reset
        return "earliest" if reset == "latest" and again else reset

    def look(self) -> None:
        """Takes in topics and topic-partitions that are new, if it is time; reads them from their first record."""
        starts = self._context.standing.starts
        if back := list(self._aside.ends([key for key in self._context.away if key not in starts])):
            self._take_in(back)
        every_s = client_options.seconds(self._context.settings.kafka, "metadata.max.age.ms", METADATA_S)
        if self._context.now() - self._looked < every_s:
            return
        keys = self._context.cluster.topic_partitions(missing_too=True)
        self._let_go(starts.keys() - set(keys))
        self._context.away.forget([key for key in self._context.away if key not in keys])
        fresh = [key for key in keys if key not in starts and key not in self._context.away]
        if fresh:
            self._take_in(fresh)
        self._looked = self._context.now()
        self._remind(topics_of(keys))

    def let_go(self) -> bool:
        """Lets go of what is not there any more, after a request failed for it. Whether there was any."""
        gone = self._context.standing.starts.keys() - set(self._context.cluster.topic_partitions(missing_too=True))
        self._let_go(gone)
        return bool(gone)

    def _let_go(self, gone: Collection[Key]) -> None:
        """What was not delivered is lost with its topic; each time the log says so once, and no start of the query."""
        standing = self._context.standing
        for topic in sorted(topics_of(gone)):
            keys = sorted(key for key in gone if key[0] == topic)
            log.warning("connector %s: %s", self._context.settings.name, farewell(topic, self._drop(keys)))
        self._context.away.forget(gone)
        self._context.ids.let_go(topics_of(standing.gone) - topics_of(standing.starts))

    def _drop(self, keys: Sequence[Key]) -> dict[int, range]:
        for key in keys:
            self._planner.forget(key)
            self._ages.forget(key)
        return {key[1]: self._context.standing.let_go(key) for key in keys}

    def _remind(self, there: Collection[str]) -> None:
        """A topic that the connector names and that is not there is waited for, which nobody may overlook."""
        missing = sorted(set(self._context.settings.kafka.topics) - set(there))
        if missing and self._context.now() - self._reminded >= MISSING_LOG_S:
            self._reminded = self._context.now()
            log.warning(
                "connector %s: topics that are not there: %s. It waits for them, and the others go on. Create them, or "
                "correct [topics].",
                *(self._context.settings.name, ", ".join(missing)),
            )

    def _take_in(self, fresh: list[Key]) -> None:
        joined: dict[Key, int] = {}
        for reset in sorted({self._late.get(key, "earliest") for key in fresh}):
            joined |= self._resolve([key for key in fresh if self._late.get(key, "earliest") == reset], reset)
        self._context.group.take_over(joined, self._planner.planned)
        self._context.standing.take_in(joined)
        if new := {key: offset for key, offset in joined.items() if self._late.pop(key, None) is None}:
            log.info("connector %s: new topic-partitions %s", self._context.settings.name, named(new))

    def _resolve(self, keys: list[Key], reset: str) -> dict[Key, int]:
        """The start of each: its committed offset if Kafka still has it, else by `reset`; absent: those away."""
        standing = self._context.standing
        self._context.ids.adopt(topics_of(keys) - topics_of(standing.starts))
        starts, plans = self._resolver.resolve(keys, reset, standing.gone)
        self._context.away.mark((key for key in keys if key not in starts), self._context.cluster.why_away)
        self._context.away.back(starts)
        self._planner.planned = {key: plan for key, plan in self._planner.planned.items() if key not in keys} | plans
        return starts


def named(keys: Mapping[Key, object]) -> str:
    """Topic-partitions for a log line."""
    return ", ".join(f"{topic} {partition}" for topic, partition in sorted(keys))


def farewell(topic: str, undelivered: Mapping[int, range]) -> str:
    """What is said of a topic, or of some of its topic-partitions, that is gone. Pure."""
    which = ", ".join(map(str, sorted(undelivered)))
    left = ", ".join(f"{p} offsets {r.start} to {r.stop - 1}" for p, r in sorted(undelivered.items()) if r)
    what = f"not delivered, and lost if it was deleted: {left}" if left else "all that was seen of it is delivered"
    return f"topic {topic}, topic-partition {which} is gone (deleted, or not to be seen with these rights); {what}."
