"""Which topic-partitions there are, and where new ones start."""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from parquet_sink.config.report import quoted
from parquet_sink.errors import BrokerAway, TopicGone, TopicUnusable
from parquet_sink.kafka.client import options as client_options
from parquet_sink.model.events import TopicsMissing
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import LossCause, LostOffsets
from parquet_sink.planner.context import PlanningContext
from parquet_sink.planner.idle_turns import IdleTurns
from parquet_sink.planner.open_transactions import OpenTransactions
from parquet_sink.planner.range_plans import RangePlans
from parquet_sink.planner.record_ages import RecordAges
from parquet_sink.planner.record_sizes import RecordSizes
from parquet_sink.planner.recreated_topics import RecreatedTopics
from parquet_sink.planner.requested_flushes import RequestedFlushes
from parquet_sink.planner.start_offsets import NOTHING_DELIVERED, StartOffsets, topics_of
from parquet_sink.planner.unavailable import BackgroundProbe
from parquet_sink.state.store import COMING, STARTED

log = logging.getLogger(__name__)

METADATA_S: Final = 10.0
"""How often new topics and topic-partitions are looked for, unless `metadata.max.age.ms` says otherwise."""
MANY: Final = 1_000
"""Of more topic-partitions the ids of topics, too, are looked at only so often: it costs 10 µs of CPU for each."""
MISSING_LOG_S: Final = 600.0


class Discovery:
    """Adds topic-partitions that are new, and removes those that were deleted; the others go on."""

    def __init__(
        self,
        context: PlanningContext,
        plans: RangePlans,
        recreated: RecreatedTopics,
        known: Sequence[RecordAges | RecordSizes | IdleTurns | RequestedFlushes | OpenTransactions],
    ) -> None:
        """known: what else remembers topic-partitions, and is to forget those that were deleted."""
        self._context, self._plans, self._recreated, self._known = context, plans, recreated, known
        self._resolver = StartOffsets(
            settings=context.settings,
            cluster=context.cluster,
            group=context.group,
            ids=context.ids,
            epochs=context.epochs,
            on_lost=context.on_lost,
        )
        self._looked = self._reminded = 0.0
        self._missing: tuple[tuple[str, ...], str] | None = None if context.state.get(STARTED) else ((), "")
        """What was reported last; None: what an earlier query reported."""
        self._probe = BackgroundProbe(context.cluster, context.now, context.spawn)
        self._late: dict[PartitionKey, str] = {}
        """The reset of those that were unavailable when the query started; new ones start at their first record."""

    def start_offsets(self) -> dict[PartitionKey, int]:
        """Where each topic-partition starts: at its committed offset, else where `auto.offset.reset` says.

        A topic that the connector names must be there at its first start, unless a source of the same program makes
        it: another name is taken for a slip of the pen. Raises OffsetsLost, KafkaFailed, TopicGone, TopicUnusable.
        """
        again = bool(self._context.state.get(STARTED))
        keys, reset = self._first_keys(again), self._first_reset(again)
        self._require_usable(keys)
        try:
            starts = self._resolve(keys, reset, self._context.state.delivered())
        except TopicGone as error:
            raise BrokerAway(str(error)).at(error.topic_partition) from None
        late = "earliest" if reset == "latest" and self._resolver.begun else reset
        self._late = {key: late for key in keys if key not in starts}
        self._looked = self._context.now()
        self._note_missing(keys)
        return starts

    def claim(self, starts: Mapping[PartitionKey, int]) -> None:
        """Commit where these start, all of them: from then on `auto.offset.reset` is about nothing of this connector.

        What is new goes to the state topic with a commit of its own. Raises BrokerAway, KafkaFailed.
        """
        self._context.group.claim(starts, self._plans.restored)
        if self._context.remember(starts) and self._context.settings.kafka.owned.state_topic is not None:
            self._context.group.recommit(starts, {key: p for key, p in self._plans.restored.items() if key in starts})

    def _first_keys(self, again: bool) -> list[PartitionKey]:
        """Raises TopicGone, KafkaFailed."""
        cluster, coming = self._context.cluster, (self._context.state.get(COMING) or "").split(",")
        keys = cluster.topic_partitions(allow_missing=True)
        unknown = set(self._context.settings.kafka.topics) - topics_of(keys) - set(coming)
        return keys if again or not unknown else cluster.topic_partitions()  # which says what is not there

    def _first_reset(self, again: bool) -> str:
        """What `auto.offset.reset` says; but when the query starts again, what has no offset is new since it began."""
        reset = self._context.settings.kafka.offset_reset
        return "earliest" if reset == "latest" and again else reset

    def refresh(self) -> None:
        """Adds topics and topic-partitions that are new, if it is time; they are read from their first record.

        The ids of topics come with them: see `RecreatedTopics`.
        """
        starts = self._context.offsets.starts
        if back := list(self._probe.end_offsets([key for key in self._context.unavailable if key not in starts])):
            self._add(back)
        every_s = client_options.seconds(self._context.settings.kafka, "metadata.max.age.ms", METADATA_S)
        if len(starts) > MANY:
            every_s = min(every_s, METADATA_S)
        if self._context.now() - self._looked < every_s:
            return
        keys, ids = self._context.cluster.topics()
        self._recreated.check(
            self._context.ids.changed({topic: ids[topic] for topic in topics_of(starts) & ids.keys()})
        )
        there = set(keys)
        self._remove(starts.keys() - there)
        self._context.unavailable.forget([key for key in self._context.unavailable if key not in there])
        fresh = [key for key in keys if key not in starts and key not in self._context.unavailable]
        if fresh:
            self._require_usable(fresh)
            self._add(fresh)
        self._looked = self._context.now()
        self._note_missing(keys)

    def _require_usable(self, keys: list[PartitionKey]) -> None:
        """Raises TopicUnusable for a topic whose files have no place to go."""
        for topic in sorted(topics_of(keys)):
            if (reason := self._context.settings.why_unusable(topic)) is not None:
                raise TopicUnusable(reason)

    def remove_deleted(self) -> bool:
        """Removes topic-partitions that were deleted, after a request failed for one. Whether there were any."""
        keys = self._context.cluster.topic_partitions(allow_missing=True)
        gone = self._context.offsets.starts.keys() - set(keys)
        self._remove(gone)
        self._note_missing(keys)
        return bool(gone)

    def _remove(self, gone: Collection[PartitionKey]) -> None:
        """What was not delivered of them is lost with their topic, which is logged; the query goes on."""
        offsets = self._context.offsets
        for topic in sorted(topics_of(gone)):
            keys = sorted(key for key in gone if key[0] == topic)
            log.warning("connector %s: %s", self._context.settings.name, removal_message(topic, self._drop(keys)))
        self._context.unavailable.forget(gone)
        self._context.ids.forget(topics_of(offsets.removed) - topics_of(offsets.starts))

    def _drop(self, keys: Sequence[PartitionKey]) -> dict[int, range]:
        for key in keys:
            self._plans.forget(key)
            for one in self._known:
                one.forget(key)
        undelivered = {key[1]: self._context.offsets.remove(key) for key in keys}
        for key in keys:
            if left := undelivered[key[1]]:
                self._context.on_lost(key, LostOffsets(left.start, left.stop, LossCause.DELETED))
        return undelivered

    def _note_missing(self, keys: Collection[PartitionKey]) -> None:
        """Reports topics that the connector names and that are not there, and of a pattern that none matches.

        An event reports it when that changes; a log line, too, and every ten minutes. keys: those there are.
        """
        name, kafka, now = self._context.settings.name, self._context.settings.kafka, self._context.now()
        missing = tuple(sorted(set(kafka.topics) - topics_of(keys)))
        unmatched = kafka.topics_regex or "" if not keys else ""
        changed = (missing, unmatched) != self._missing
        if changed:
            self._missing = missing, unmatched
            self._context.state.append_events([TopicsMissing(name, now, missing, unmatched)])
        if (missing or unmatched) and (changed or now - self._reminded >= MISSING_LOG_S):
            self._reminded = now
            log.warning("connector %s: %s", name, missing_message(missing) if missing else unmatched_message(unmatched))

    def warn_of_nothing(self) -> None:
        """Of a drain that begins without any topic: its end is no sign that anything was delivered."""
        _, unmatched = self._missing or ((), "")
        if unmatched:
            log.warning(
                "connector %s: it has no topic to deliver, because none matches [topics.regex] %s, and is caught up "
                "with nothing.",
                self._context.settings.name,
                quoted(unmatched),
            )

    def _add(self, fresh: list[PartitionKey]) -> None:
        joined: dict[PartitionKey, int] = {}
        for reset in sorted({self._late.get(key, "earliest") for key in fresh}):
            joined |= self._resolve([key for key in fresh if self._late.get(key, "earliest") == reset], reset)
        self.claim(joined)
        self._context.offsets.add(joined)
        if new := {key: offset for key, offset in joined.items() if self._late.pop(key, None) is None}:
            log.info("connector %s: new topic-partitions %s", self._context.settings.name, named(new))

    def _resolve(
        self,
        keys: list[PartitionKey],
        reset: str,
        delivered: Mapping[PartitionKey, tuple[int, str]] = NOTHING_DELIVERED,
    ) -> dict[PartitionKey, int]:
        """The start of each: its committed offset if Kafka still has it, else by `reset`; absent: those unavailable."""
        offsets = self._context.offsets
        self._context.ids.refresh(topics_of(keys) - topics_of(offsets.starts))
        starts, plans = self._resolver.resolve(keys, reset, offsets.removed, delivered)
        self._context.unavailable.mark_unavailable(
            (key for key in keys if key not in starts), self._context.cluster.unavailable_reason
        )
        self._context.unavailable.mark_available(starts)
        self._plans.restored = {key: plan for key, plan in self._plans.restored.items() if key not in keys} | plans
        return starts


def named(keys: Mapping[PartitionKey, object]) -> str:
    """Topic-partitions for a log line."""
    return ", ".join(f"{topic} {partition}" for topic, partition in sorted(keys))


def missing_message(missing: Sequence[str]) -> str:
    """For topics that the connector names and that are not there, while it runs."""
    return (
        f"topics that are not there: {', '.join(missing)}. It waits for them, and the others go on. Create them, or "
        "correct [topics]."
    )


def unmatched_message(pattern: str) -> str:
    """For a pattern that no topic matches."""
    return (
        f"no topic matches [topics.regex] {quoted(pattern)}. Topics are looked for again and again, and one that "
        "matches later is read from its first record. Create one, or correct [topics.regex]."
    )


def removal_message(topic: str, undelivered: Mapping[int, range]) -> str:
    """The warning for a topic that is gone, or some of its topic-partitions, with what was not delivered of each."""
    which = ", ".join(map(str, sorted(undelivered)))
    left = ", ".join(f"{p} offsets {r.start} to {r.stop - 1}" for p, r in sorted(undelivered.items()) if r)
    what = f"not delivered, and lost if it was deleted: {left}" if left else "all that was seen of it is delivered"
    return f"topic {topic}, topic-partition {which} is gone (deleted, or not to be seen with these rights); {what}."
