"""The driver's side of the source: each tick decides what is due. One object per query, in a process of its own.

Order within a tick, all of it in `Ticker.tick`: what lies below `start` has been accepted by the target, so it is
committed first; then new topic-partitions are looked for; then one request tells where all of them end; then the pure
decision; then the ranges taken are put down beside the group's offsets, so that after a crash the same ranges come
again, as the same files. A broker that is away costs ticks, nothing else.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from parquet_sink.config.settings import ConnectorSettings
from parquet_sink.errors import BrokerAway, ConnectorError, KafkaFailed, OffsetsLost
from parquet_sink.files.rotation import Reason
from parquet_sink.handoff import Instance
from parquet_sink.kafka import clients, reader
from parquet_sink.kafka.admission import Arrivals, Candidate, Range, due, together
from parquet_sink.kafka.offsets import GroupOffsets, Key, Plan
from parquet_sink.kafka.watermarks import Watermarks
from parquet_sink.state import State, Watch

log = logging.getLogger(__name__)

CHECK_S: Final = 5.0
"""How often an idle connector looks whether another instance took its group over."""
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
        self._group = GroupOffsets(settings.kafka, instance)
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
                self._starts = self._resolve(self._watermarks.topic_partitions(), self._settings.kafka.offset_reset)
                self._group.claim(self._starts, self._planned)
                break
            except BrokerAway as error:
                if self._now() >= deadline:
                    raise KafkaFailed(str(error)) from None
                log.warning("connector %s: %s Trying on.", self._settings.name, error)
                self._sleep(1.0)
        self._looked = self._checked = self._signed = self._now()
        return dict(self._starts)

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
        self._group.commit(start)
        self._state.settle()
        if self._now() - self._checked >= CHECK_S:
            self._group.check()
            self._checked = self._now()
        if self._now() - self._signed >= SIGN_S:
            self._group.claim(self._starts, self._planned)
            self._signed = self._now()

    def _look_around(self) -> None:
        """Takes in topics and topic-partitions that are new; reads them from their first record."""
        if self._now() - self._looked < self._client_s("metadata.max.age.ms", METADATA_S):
            return
        keys = self._watermarks.topic_partitions()
        self._looked = self._now()
        fresh = [key for key in keys if key not in self._starts]
        if fresh:
            joined = self._resolve(fresh, "earliest")
            self._group.claim(joined, {})
            self._starts.update(joined)
            log.info("connector %s: new topic-partitions %s", self._settings.name, named(joined))
        self._gone -= set(keys)
        for gone in self._starts.keys() - set(keys):
            log.warning("connector %s: topic %s, topic-partition %d is gone", self._settings.name, *gone)
            self._gone.add(gone)
            del self._starts[gone]

    def _due(self) -> list[Candidate]:
        now_ms = int(self._now() * 1000)
        ends = self._watermarks.ends(list(self._starts))
        if self._draining and self._drain is None:
            self._drain = ends
        learned = {topic: known.bytes_per_row for topic, known in self._state.known().items()}
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
        first = self._watermarks.starts([key])
        error = reader.lost(*key, start, first[key], end)
        if self._settings.kafka.lost_offsets == "STOP":
            raise error
        self._group.claim(first, {})
        self._state.forget(*key)
        raise KafkaFailed(f"{error} Going on at {first[key]}.")

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
        committed = self._group.read(keys)
        self._planned.update({key: found.plan for key, found in committed.items() if found.plan is not None})
        first, last = self._watermarks.starts(keys), self._watermarks.ends(keys)
        starts: dict[Key, int] = {}
        for key in keys:
            found = committed.get(key)
            if found is None:
                starts[key] = self._reset(key, reset, first[key], last[key])
            elif first[key] <= found.offset <= self._high(key, found.offset, last[key]):
                starts[key] = found.offset
            else:
                starts[key] = self._lost(key, found.offset, first[key], last[key])
        return starts

    def _high(self, key: Key, offset: int, last: int) -> int:
        """Where the topic-partition ends, also beyond its last stable offset if `offset` lies there."""
        return last if offset <= last else self._watermarks.highs([key])[key]

    def _reset(self, key: Key, reset: str, first: int, last: int) -> int:
        if reset == "none":
            raise ConnectorError(
                f"Topic {key[0]}, topic-partition {key[1]}: group {self._settings.kafka.group} has no committed "
                f"offset, and auto.offset.reset is none. Commit one with kafka-consumer-groups, or choose "
                f"earliest or latest."
            )
        return last if reset == "latest" else first

    def _lost(self, key: Key, offset: int, first: int, last: int) -> int:
        error: OffsetsLost = reader.lost(*key, offset, first, last)
        if self._settings.kafka.lost_offsets == "STOP":
            raise error
        log.warning("connector %s: %s Going on at %d.", self._settings.name, error, first)
        return first

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
