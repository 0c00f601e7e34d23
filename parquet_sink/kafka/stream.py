"""The driver's side of the source: each tick decides what is due. One object per query, in a process of its own.

Order within a tick, all of it in `Ticker.tick`: what lies below `start` has been accepted by the target, so it is
committed first; then new topic-partitions are looked for; then one request tells where all of them end; then the pure
decision; then the ranges taken are put down beside the group's offsets, so that after a crash the same ranges come
again, as the same files. A broker that is away costs ticks, nothing else.

A topic may be deleted and made anew under the same name at any moment, and offsets of the old one must never pass over
records of the new one. Each topic has an id that no other topic ever has; the rule is:

  1. the id is asked for before the start offsets of a topic are looked up, and these belong to that id from then on
  2. every committed offset carries the id that it belongs to, so also one that is written after the topic was made anew
     tells the next start which topic it is of; an offset of another id counts as lost
  3. the id is asked for again after the ends were, before a range is taken: a start and an end are of one topic
  4. it is asked for again after the flush, before a commit, since the reader may have met the new topic
  5. and every few seconds, since a new topic that ends where the old one did has nothing due
  6. a reader forgets where it stood, and what it had fetched ahead, when a range belongs to another id
  7. a topic-partition that was seen to be gone and is there again ends the query, which starts again at its first
     record: Spark's own offsets still have the old position, and cannot be set back

So asking costs one request when ranges are taken, one when they are committed, and one every five seconds; an idle
tick asks nothing. What follows a change is said by `lost.offsets.policy`: STOP ends the connector, CONTINUE begins at
the first record of the new topic. A broker that lags behind the others may tell an older id for a moment; by 2 and 5
the change is found all the same, once they agree. Where the cluster tells no ids, an offset past the end of a
topic-partition, and 7, are what is left to notice it by.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from parquet_sink.config.settings import ConnectorSettings
from parquet_sink.errors import BrokerAway, KafkaFailed
from parquet_sink.files.rotation import Reason
from parquet_sink.handoff import Instance
from parquet_sink.kafka import clients, reader
from parquet_sink.kafka.admission import Arrivals, Candidate, Range, due, together
from parquet_sink.kafka.offsets import GroupOffsets, Key, Plan
from parquet_sink.kafka.starts import Starts, TopicIds, topics_of
from parquet_sink.kafka.watermarks import Watermarks
from parquet_sink.state import State, Watch

log = logging.getLogger(__name__)

CHECK_S: Final = 5.0
"""How often an idle connector looks whether another instance took its group over, or a topic was made anew."""
SIGN_S: Final = 3_600.0
"""How often all offsets are committed again, moved or not: Kafka forgets those of a group without members, each by its
own age (`offsets.retention.minutes`, a week by default)."""
METADATA_S: Final = 10.0
"""How often new topics and topic-partitions are looked for, unless `metadata.max.age.ms` says otherwise."""
PATIENCE_S: Final = 60.0
"""How long the broker may stay away at the start, unless `default.api.timeout.ms` says otherwise."""
AWAY_LOG_S: Final = 30.0


_EPOCH_S: Final = time.time() - time.monotonic()


def steady_clock() -> float:
    """Epoch seconds that never jump: ages count on them, whatever is done to the machine's clock."""
    return _EPOCH_S + time.monotonic()


class Ticker:
    """Knows where each topic-partition stands, commits, and says which ranges are due."""

    def __init__(
        self,
        settings: ConnectorSettings,
        state: State,
        instance: Instance,
        *,
        now: Callable[[], float] = steady_clock,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings, self._state, self._now, self._sleep = settings, state, now, sleep
        self._watermarks = Watermarks(settings.kafka)
        self._ids = TopicIds(self._watermarks)
        self._group = GroupOffsets(settings.kafka, instance, self._ids.known)
        self._resolver = Starts(settings, self._watermarks, self._group, self._ids)
        self._starts: dict[Key, int] = {}
        self._arrivals: dict[Key, Arrivals] = {}
        self._gone: set[Key] = set()
        self._planned: dict[Key, Plan] = {}
        self._draining = False
        self._drain: dict[Key, int] | None = None
        self._looked = self._checked = self._signed = self._told_away = 0.0
        self._shown: dict[Key, Watch] = {}
        self._taken: dict[Key, int] = {}
        self._batches = 0
        self._slots = int(state.said("slots") or 1)

    def begin(self) -> dict[Key, int]:
        """Where each topic-partition starts: at its committed offset, else where `auto.offset.reset` says.

        Waits for the broker for a bounded time. Raises KafkaFailed, OffsetsLost.
        """
        deadline = self._now() + self._client_s("default.api.timeout.ms", PATIENCE_S)
        while True:
            try:
                self._starts = self._resolve(self._watermarks.topic_partitions(), self._first_reset())
                self._group.claim(self._starts, self._planned)
                break
            except BrokerAway as error:
                if self._now() >= deadline:
                    raise KafkaFailed(str(error)) from None
                log.warning("connector %s: %s Trying on.", self._settings.name, error)
                self._sleep(1.0)
        self._looked = self._checked = self._signed = self._now()
        return dict(self._starts)

    def _first_reset(self) -> str:
        """What `auto.offset.reset` says; but when the query starts again, what has no offset is new since it began."""
        reset = self._settings.kafka.offset_reset
        return "earliest" if reset == "latest" and self._state.said("begun") else reset

    @property
    def topic_ids(self) -> dict[str, str]:
        """The ids of the topics that the ranges belong to."""
        return dict(self._ids.known)

    def drain(self) -> None:
        """From now on what is there at the next tick is due, and nothing that comes later."""
        self._draining = True

    def position(self, start: Mapping[Key, int]) -> dict[Key, int]:
        """`start`, with topic-partitions that were found since and without those that are gone."""
        known = {**self._starts, **start}
        return {key: offset for key, offset in known.items() if key not in self._gone}

    def tick(self, start: Mapping[Key, int]) -> list[Candidate]:
        """The ranges that are due, after committing `start` (exclusive offsets of what was accepted).

        While the broker is away nothing is due; but who drains is told that nothing is left, so a drain waits for the
        broker, for a bounded time. Raises ConnectorError for what waiting does not cure.
        """
        deadline = self._now() + self._client_s("default.api.timeout.ms", PATIENCE_S)
        while True:
            try:
                return self._tick(start)
            except BrokerAway as error:
                self._tell_away(error)
                if self._state.stopping():
                    self._state.say("drained", True)
                if self._state.stopping() or not self._draining:
                    return []
                if self._now() >= deadline:
                    raise KafkaFailed(str(error)) from None
                self._sleep(1.0)

    def _tick(self, start: Mapping[Key, int]) -> list[Candidate]:
        self._starts = self.position(start)
        self._commit({key: offset for key, offset in start.items() if key not in self._gone})
        if self._state.stopping():
            self._state.say("drained", True)
            return []
        self._look_around()
        return self._due()

    def _commit(self, start: Mapping[Key, int]) -> None:
        self._confirm(topics_of(self._group.ahead(start)))
        self._group.commit(start)
        self._state.settle()
        if self._now() - self._checked >= CHECK_S:
            self._confirm(topics_of(self._starts))
            self._group.check()
            self._checked = self._now()
        if self._now() - self._signed >= SIGN_S:
            self._confirm(topics_of(self._starts))
            self._group.claim(self._starts, self._planned)
            self._signed = self._now()

    def _confirm(self, topics: Iterable[str]) -> None:
        """Goes on only if these are still the topics that our offsets belong to. Raises OffsetsLost, KafkaFailed."""
        remade = self._ids.remade(topics)
        if remade:
            self._begin_anew(remade)

    def _begin_anew(self, topics: list[str]) -> None:
        """These topics were deleted and made anew. With CONTINUE the query starts again at their first records."""
        held = [key for key in sorted(self._starts) if key[0] in topics]
        error = reader.made_anew(*held[0], self._starts[held[0]])
        if self._settings.kafka.lost_offsets == "STOP":
            raise error
        self._ids.adopt(topics)
        first = self._watermarks.starts([key for key in self._watermarks.topic_partitions() if key[0] in topics])
        self._start_again(first, f"{error} Going on at the first record.")

    def _start_again(self, starts: Mapping[Key, int], why: str) -> None:
        """Ends the query, which then starts again from the group's offsets: these ones. Raises KafkaFailed."""
        self._group.claim(starts, {})
        topics = topics_of(starts)
        for topic, partition in self._starts.keys() | starts.keys():
            if topic in topics:
                self._state.forget(topic, partition)
        raise KafkaFailed(why)

    def _look_around(self) -> None:
        """Takes in topics and topic-partitions that are new; reads them from their first record."""
        if self._now() - self._looked < self._client_s("metadata.max.age.ms", METADATA_S):
            return
        keys = self._watermarks.topic_partitions()
        self._looked = self._now()
        self._let_go(self._starts.keys() - set(keys))
        fresh = [key for key in keys if key not in self._starts]
        if fresh:
            self._take_in(fresh)

    def _let_go(self, gone: Iterable[Key]) -> None:
        for key in sorted(gone):
            log.warning("connector %s: topic %s, topic-partition %d is gone", self._settings.name, *key)
            self._gone.add(key)
            del self._starts[key]
        self._ids.let_go(topics_of(self._gone) - topics_of(self._starts))

    def _take_in(self, fresh: list[Key]) -> None:
        joined = self._resolve(fresh, "earliest")
        back = sorted(self._gone.intersection(fresh))
        if back:
            topic, partition = back[0]
            why = (
                f"Topic {topic}, topic-partition {partition} was deleted and made anew; going on at {joined[back[0]]}."
            )
            self._start_again(joined, why)
        self._group.claim(joined, {})
        self._starts.update(joined)
        log.info("connector %s: new topic-partitions %s", self._settings.name, named(joined))

    def _due(self) -> list[Candidate]:
        now_ms = int(self._now() * 1000)
        ends = self._watermarks.ends(list(self._starts))
        if self._draining and self._drain is None:
            self._confirm(topics_of(ends))
            self._drain = ends
        learned = {topic: known.bytes_per_record for topic, known in self._state.known().items()}
        found: list[tuple[int, Candidate]] = []
        for key, end in ends.items():
            start = self._starts[key]
            if end < start:
                self._fell_back(key, start, end)
                continue
            arrivals = self._seen(key, start, end, now_ms)
            high = end if self._drain is None else min(end, self._drain.get(key, start))
            oldest = arrivals.oldest_ms(start)
            per_record = learned.get(key[0])
            span = self._again(key, start, end) or due(
                start, high, oldest, per_record, self._settings.flush, now_ms, draining=self._draining
            )
            if span is not None:
                found.append((self._taken.get(key, 0), (*key, span)))
        self._show(ends)
        return self._take(found)

    def _take(self, found: list[tuple[int, Candidate]]) -> list[Candidate]:
        """As much as fits into one micro-batch, put down beside the offsets before it begins."""
        candidates = together(found, self._settings.flush, self._slots)
        self._batches += bool(candidates)
        self._taken.update({(topic, partition): self._batches for topic, partition, _ in candidates})
        plans = {(topic, partition): Plan(span.end, str(span.reason)) for topic, partition, span in candidates}
        if plans:
            self._confirm(topics_of(plans))
            self._group.check(list(plans))
        self._group.claim({key: self._starts[key] for key in plans}, plans)
        self._planned = {key: plan for key, plan in self._planned.items() if key not in plans}
        return candidates

    def _again(self, key: Key, start: int, end: int) -> Range | None:
        """The range that an earlier run was flushing from here when it ended, so that its files come out the same."""
        plan = self._planned.get(key)
        if plan is None or not start < plan.end <= end:
            return None
        return Range(start, plan.end, Reason(plan.reason))

    def _seen(self, key: Key, start: int, end: int, now_ms: int) -> Arrivals:
        """Arrivals, kept up to date. What waited before we looked for the first time counts as old enough."""
        first = key not in self._arrivals
        arrivals = self._arrivals.get(key, Arrivals()).after(start)
        seen_ms = now_ms - self._settings.flush.commit_interval_ms if first else now_ms
        if end > start:
            arrivals = arrivals.seen(end, seen_ms)
        self._arrivals[key] = arrivals
        return arrivals

    def _fell_back(self, key: Key, start: int, end: int) -> None:
        """The topic-partition ends below where we stand: deleted and made anew, or truncated.

        With CONTINUE the group is set to its beginning and the query starts again from there. No harm when only the
        last stable offset lies below: someone read further with read_uncommitted.
        """
        if self._watermarks.highs([key])[key] >= start:
            return
        self._confirm([key[0]])
        first = self._watermarks.starts([key])
        error = reader.lost(*key, start, first[key], end)
        if self._settings.kafka.lost_offsets == "STOP":
            raise error
        self._start_again(first, f"{error} Going on at {first[key]}.")

    def _show(self, ends: Mapping[Key, int]) -> None:
        """Tells the other processes how things stand, when that changed."""
        watches = {
            key: Watch(*key, self._starts[key], end, self._arrivals[key].oldest_ms(self._starts[key]))
            for key, end in ends.items()
            if key in self._arrivals
        }
        changed = [watch for key, watch in watches.items() if self._shown.get(key) != watch]
        if changed:
            self._state.watch(changed)
            self._shown.update(watches)

    def _resolve(self, keys: list[Key], reset: str) -> dict[Key, int]:
        """The start of each: its committed offset if Kafka still has it, else by `reset`."""
        self._ids.adopt(topics_of(keys) - topics_of(self._starts))
        starts, plans = self._resolver.resolve(keys, reset)
        self._planned.update(plans)
        return starts

    def _client_s(self, name: str, default_s: float) -> float:
        return clients.seconds(self._settings.kafka, name, default_s)

    def _tell_away(self, error: KafkaFailed) -> None:
        if self._now() - self._told_away >= AWAY_LOG_S:
            self._told_away = self._now()
            log.warning("connector %s: %s Nothing is lost; trying on.", self._settings.name, error)

    def close(self) -> None:
        self._group.close()


def named(keys: Mapping[Key, object]) -> str:
    """Topic-partitions for a log line."""
    return ", ".join(f"{topic} {partition}" for topic, partition in sorted(keys))
