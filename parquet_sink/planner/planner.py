"""The planner of one query, in a process of its own beside Spark's driver: each tick decides what is due.

Order within a tick, all of it in `Planner.tick`: what lies below `start` has been accepted by the target, so it is
committed first; then new topic-partitions are looked for; then one request tells where they end, those that are idle in
turn where they are very many; then the pure decision; then the ranges taken are recorded beside the group's offsets, so
that after a crash the same ranges come again, as the same files. While no broker answers ticks are lost, nothing else.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from parquet_sink.errors import BrokerAway, KafkaFailed, TopicGone
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.dead_letter_topic import DeadLetterTopic
from parquet_sink.kafka.group.offsets import GroupOffsets, OffsetGone
from parquet_sink.kafka.leader_epochs import LeaderEpochs
from parquet_sink.kafka.settings import DeadLetterSettings, PlanningSettings
from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.planner.admission import Candidate, Unflushed, due_range, with_along
from parquet_sink.planner.clock_schedule import last_boundary_ms
from parquet_sink.planner.context import PartitionOffsets, PlanningContext
from parquet_sink.planner.discovery import MANY, Discovery
from parquet_sink.planner.first_timestamps import FirstTimestamps
from parquet_sink.planner.idle_turns import IdleTurns
from parquet_sink.planner.learned_topic import LearnedTopic
from parquet_sink.planner.open_transactions import OpenTransactions
from parquet_sink.planner.range_plans import RangePlans
from parquet_sink.planner.record_ages import LateFlushes, RecordAges
from parquet_sink.planner.record_sizes import RecordSizes
from parquet_sink.planner.recreated_topics import RecreatedTopics
from parquet_sink.planner.requested_flushes import RequestedFlushes
from parquet_sink.planner.start_offsets import TopicIds, topics_of
from parquet_sink.planner.unavailable import BackgroundProbe, BrokerOutage, EndOffsets, UnavailablePartitions
from parquet_sink.process import lease
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import DRAINED, LOOKED_MS, PAUSE, SETTLED, SLOTS, STOP

log = logging.getLogger(__name__)

CHECK_S: Final = 5.0
"""How often an idle connector looks whether another instance took its group over, or a topic was recreated.

Asking for the ids of topics also brings new metadata: without it `list_offsets` of one admin client is refused for ever
with `FENCED_LEADER_EPOCH` after a topic-partition got another leader."""
RECOMMIT_S: Final = 3_600.0
"""How often all offsets are committed again, moved or not: Kafka forgets those of a group without members, each by its
own age (`offsets.retention.minutes`, a week by default)."""
PATIENCE_S: Final = 60.0
"""How long the broker may stay unavailable at the start, unless `default.api.timeout.ms` says otherwise."""


MOST_WATCHED: Final = 1_000
"""Topic-partitions that are looked at between ticks."""
WATCHED_QUICKLY: Final = 100
"""Beyond so many they are asked for by `KafkaCluster.quick_ends`: 3 µs of CPU each, where `end_offsets` takes 12."""
NOTED_S: Final = 1.0
"""How often a look is noted for the program."""
LOOKS: Final = 4
"""How often between two ticks it is looked whether a stop is asked for."""
VERIFIED: Final = 1_000
"""Offsets that one look reads, in turn: an instance that takes the group over signs all of them."""


class GroupMonitor:
    """Looks every few seconds, and signs all offsets every hour."""

    def __init__(self, context: PlanningContext, recreated: RecreatedTopics, plans: RangePlans) -> None:
        self._context, self._recreated, self._plans = context, recreated, plans
        self._checked = self._recommitted = 0.0
        self._verified = 0

    def start(self) -> None:
        """All offsets were signed just now."""
        self._checked = self._recommitted = self._context.now()

    def check(self) -> None:
        """Looks and signs if it is time. Raises OffsetsLost, AnotherInstance, KafkaFailed."""
        starts, group, now = self._context.offsets.starts, self._context.group, self._context.now
        if now() - self._checked >= CHECK_S:
            if len(starts) <= MANY:  # else `Discovery.refresh` does
                self._recreated.check(topics_of(starts))
            keys, at = list(starts), self._verified if self._verified < len(starts) else 0
            try:
                group.verify(keys[at : at + VERIFIED])
            except OffsetGone:  # with its topic, if another one has its name now
                self._recreated.check(topics_of(starts))
                raise
            self._checked, self._verified = now(), at + VERIFIED
        if now() - self._recommitted >= RECOMMIT_S:
            self._recreated.check(topics_of(starts))
            group.recommit(starts, self._plans.plans())
            self._recommitted = now()


class OwnedConnector:
    """Whether the worker's lease lets a micro-batch begin; always, where the settings have none."""

    def __init__(self, context: PlanningContext) -> None:
        self._name, self._lease = context.settings.name, context.settings.kafka.owned.lease
        self._held = True

    def holds(self) -> bool:
        """Logs when that changes."""
        held = lease.holds(self._lease)
        if held != self._held:
            self._held = held
            words = "this worker's lease goes on again" if held else f"nothing more is begun: {lease.OVER}"
            log.warning("connector %s: %s", self._name, words)
        return held


class Drain:
    """Up to where each topic-partition is read. active: whether a drain was asked for."""

    def __init__(self) -> None:
        self.active = False
        self._ends: dict[PartitionKey, int | None] | None = None

    @property
    def begun(self) -> bool:
        """Whether ends were noted before."""
        return self._ends is not None

    def note(self, ends: Mapping[PartitionKey, int], known: Iterable[PartitionKey]) -> None:
        """Notes where each topic-partition ended when it answered for the first time.

        known: those there are when the drain begins, unavailable ones too. Others, which come later, are not read.
        """
        if self._ends is None:
            self._ends = dict.fromkeys(known)
        self._ends |= {key: end for key, end in ends.items() if key in self._ends and self._ends[key] is None}

    def missing(self, starts: Mapping[PartitionKey, int]) -> dict[PartitionKey, int]:
        """Return the noted ends of topic-partitions that are not accepted up to there."""
        noted = self._ends or {}
        return {key: end for key, end in noted.items() if end is not None and starts.get(key, end) < end}

    def limit(self, key: PartitionKey, start: int, end: int) -> int:
        """The end of what may be read of a topic-partition that stands at `start` and ends at `end`."""
        if self._ends is None:
            return end
        noted = self._ends.get(key)
        return min(end, start if noted is None else noted)


@cache
def _epoch_s() -> float:
    """As this process first took it, and not a process that it was forked from."""
    return time.time() - time.monotonic()


def steady_clock() -> float:
    """Epoch seconds that never jump: ages count on them, whatever is done to the machine's clock."""
    return _epoch_s() + time.monotonic()


class Planner:
    """Knows where each topic-partition stands, commits, and says which ranges are due.

    reported: whether a sink of ours takes the ranges, and reports what becomes of each; else the end of a micro-batch
    is all that is known of them. learned: what earlier owners of the connector learned. ensure_topic: has the
    dead-letter topic made if it is absent. What it asks of Kafka is handed in: `kafka_planner` makes one for a real
    cluster.
    """

    def __init__(
        self,
        context: PlanningContext,
        outage: BrokerOutage,
        reads: FirstTimestamps,
        *,
        reported: bool = True,
        learned: LearnedTopic | None = None,
        sleep: Callable[[float], None] = time.sleep,
        ensure_topic: Callable[[DeadLetterSettings], None] = lambda settings: DeadLetterTopic(settings).ensure(),
    ) -> None:
        self._settings, self._state, self._now = context.settings, context.state, context.now
        self._cluster, self._group, self._offsets = context.cluster, context.group, context.offsets
        self._unavailable, self._outage = context.unavailable, outage
        self._sleep, self._ensure_topic, self._learned = sleep, ensure_topic, learned
        self._recreated = RecreatedTopics(context)
        self._plans = RangePlans(context, self._recreated, reported=reported)
        self._ages, self._sizes = RecordAges(context, reads), RecordSizes(context, reads)
        probe = BackgroundProbe(context.cluster, context.now, context.spawn)
        committed = context.settings.kafka.isolation_level == "read_committed"
        self._end_offsets = EndOffsets(context.cluster, context.unavailable, probe, committed=committed)
        self._open = OpenTransactions(context)
        self._late = LateFlushes(context)
        self._turns = IdleTurns(context.settings.flush, context.cluster.quick_ends)
        self._flushes = RequestedFlushes(context)
        known = (self._ages, self._sizes, self._turns, self._flushes, self._open)
        self._discovery = Discovery(context, self._plans, self._recreated, known)
        self._monitor = GroupMonitor(context, self._recreated, self._plans)
        self._drain, self._owned = Drain(), OwnedConnector(context)
        self._monotonic, self._noted_s = context.monotonic, -NOTED_S

    def begin(self, dead_letters: DeadLetterSettings | None = None) -> dict[PartitionKey, int]:
        """Where each topic-partition starts: at its committed offset, else where `auto.offset.reset` says. Once.

        dead_letters: their topic is made if it is absent, so that one that cannot be made is reported now, and not by
        the first record that needs it. Waits for the broker for a bounded time. Raises KafkaFailed, OffsetsLost.
        """
        deadline = self._deadline()
        while True:
            try:
                self._group.take_over()
                if self._learned is not None:
                    self._learned.load(self._state)
                if dead_letters is not None:
                    self._ensure_topic(dead_letters)
                starts = self._discovery.start_offsets()
                self._discovery.claim(starts)
                break
            except BrokerAway as error:
                if self._now() >= deadline:
                    raise KafkaFailed(str(error)).at(error.topic_partition) from None
                self._outage.report(error)
                self._sleep(1.0)
        self._outage.end()
        self._offsets.starts = starts
        self._late.tick(excused=True)
        self._monitor.start()
        return dict(starts)

    @property
    def in_flight(self) -> list[PlannedRange]:
        """The ranges of the micro-batch that was planned last."""
        return list(self._plans.in_flight.values())

    def tasks(self) -> int | None:
        """Spark tasks that the micro-batch may be dealt to; None: any number.

        No more than the connector's share of Spark's slots. While uploads fail it is one: what waits for a dead target
        leaves the other slots to other connectors.
        """
        bounds = [self._settings.kafka.tasks_max, self._state.get(SLOTS), 1 if self._plans.has_retries else None]
        return min((bound for bound in bounds if bound is not None), default=None)

    def drain(self) -> None:
        """From now on what is there at the next tick is due, and nothing that comes later."""
        self._drain.active = True

    def repeated(self, planned: Sequence[Candidate]) -> list[PlannedRange]:
        """Those of an earlier run's ranges that the group has recorded, word for word: the others come by `tick`.

        So a micro-batch that Spark repeats is the same if nothing happened, and passes over nothing if offsets were
        set or a topic was recreated since. Raises KafkaFailed.
        """
        starts = self._offsets.starts
        held = {(topic, partition): span for topic, partition, span in planned if (topic, partition) in starts}
        ends = self._cluster.end_offsets(list(held))
        same = [
            (*key, span)
            for key, span in held.items()
            if key in ends and self._plans.repeated(key, starts[key], ends[key]) == span
        ]
        return self._plans.repeat(same)

    def tick(self, finished: Mapping[PartitionKey, int]) -> list[PlannedRange]:
        """The ranges that are due, after committing what was accepted.

        finished: ends of the last micro-batch's ranges.

        While the broker is unavailable nothing is due; but an empty tick ends a drain, so a drain waits for the
        broker and for open transactions, for a bounded time, and for what must be tried again. Raises ConnectorError
        for what waiting does not cure.
        """
        deadline = self._deadline()
        self._late.asked()
        while True:
            self._note_look()
            try:
                due = self._tick(finished)
                if due or not self._drain.active or self._state.get(STOP):
                    return due
                if not self._plans.retries and not self._open.wait(self._drain.missing(self._offsets.starts)):
                    return due
                self._sleep(min(max(self._plans.next_retry_s(), 0.05), 1.0))
                deadline = self._deadline()
            except BrokerAway as error:
                self._outage.report(error)
                if self._state.get(STOP):
                    self._state.set(DRAINED, True)
                else:
                    self._outage.check(error)
                if self._state.get(STOP) or not self._drain.active:
                    return []
                if self._now() >= deadline:
                    raise KafkaFailed(str(error)).at(error.topic_partition) from None
                self._sleep(1.0)

    def _note_look(self) -> None:
        """Let the program know that this process is alive, once a second at most."""
        now_s = self._monotonic()
        if now_s - self._noted_s >= NOTED_S:
            self._noted_s = now_s
            self._state.set(LOOKED_MS, int(1_000 * now_s))

    def fills(self, within_s: float) -> bool:
        """Whether a full file waits so long after a tick that found nothing due: it need not wait for the next one.

        Nor need a stop that is asked for meanwhile. It takes a third of a tick's CPU, as it asks for ends alone. Where
        no answer comes the next tick deals with it.
        """
        starts = self._offsets.starts
        if self._outage.lasts or len(starts) > MOST_WATCHED or self._state.get(PAUSE) or self._state.get(STOP):
            return False
        for _ in range(LOOKS):
            self._sleep(within_s / LOOKS)
            if self._state.get(STOP):
                return True
        ends = self._ends_now([key for key in starts if key not in self._unavailable and key not in self._open.holds])
        return not all(map(self._plans.is_retry_pending, self._full(ends)))

    def _full(self, ends: Mapping[PartitionKey, int]) -> list[PartitionKey]:
        """Those in which a full file waits, whatever its age. ends: where they end."""
        starts, learned, flush = self._offsets.starts, self._state.bytes_per_record(), self._settings.flush
        spans = ((key, due_range(starts[key], end, None, learned.get(key[0]), flush, 0)) for key, end in ends.items())
        return [key for key, span in spans if span is not None]

    def _ends_now(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """Where these end; absent: those of which no answer comes."""
        if len(keys) > WATCHED_QUICKLY:
            return self._cluster.quick_ends(keys)
        return {key: end.offset for key, end in self._cluster.ends_if_available(keys).items()}

    def _tick(self, finished: Mapping[PartitionKey, int]) -> list[PlannedRange]:
        """Goes on without topics that are gone; each time round there are fewer."""
        self._cluster.poll()
        self._group.poll()
        while True:
            try:
                found = self._plan_once(finished)
            except TopicGone as error:
                if self._discovery.remove_deleted():
                    continue
                failed = KafkaFailed if isinstance(error, OffsetGone) else BrokerAway
                raise failed(str(error)).at(error.topic_partition) from None
            self._outage.end()
            return found

    def _plan_once(self, finished: Mapping[PartitionKey, int]) -> list[PlannedRange]:
        self._plans.commit(self._plans.accept(finished))
        self._monitor.check()
        if self._state.get(STOP):
            self._state.set(SETTLED, True)
            self._state.set(DRAINED, True)
            return []
        self._discovery.refresh()
        return self._due()

    def _due(self) -> list[PlannedRange]:
        now_ms = int(self._now() * 1000)
        starts = self._offsets.starts
        everything = self._flushes.look() or self._drain.active
        ends = self._end_offsets.fetch(list(starts) if everything else self._turns.turn(starts, now_ms), starts)
        highs = self._end_offsets.highs
        self._offsets.ends.update(highs)
        self._open.look(ends, highs, now_ms)
        self._flushes.note(highs)
        self._ages.look(now_ms)
        if self._drain.active:
            if not self._drain.begun:
                self._recreated.check(topics_of(ends))
                self._discovery.warn_of_nothing()
            self._drain.note(highs, [*self._offsets.starts, *self._unavailable])
        if not self._drain.active:
            self._ages.load(ends, now_ms, self._full)
        paused = self._state.get(PAUSE) or not self._owned.holds()
        if paused:
            self._plans.hold()
        elif not self._drain.active:
            self._sizes.look(ends, now_ms)
        self._late.tick(excused=paused or self._plans.has_retries or self._drain.active)
        found = self._found(ends, now_ms, paused=paused)
        self._turns.asked(highs, starts, now_ms)
        self._ages.publish(highs, self._open.holds)
        if self._drain.active and self._unavailable and not found and not self._plans.retries:
            message = f"Not caught up: {self._unavailable.describe()} unavailable, and nothing else is left."
            raise BrokerAway(message).at(min(self._unavailable))
        taken = self._plans.take(found)
        self._late.taken(taken, self._ages.seen_ms(taken))
        return taken

    def _found(self, ends: Mapping[PartitionKey, int], now_ms: int, *, paused: bool) -> list[tuple[int, Candidate]]:
        """The ranges that are due; each with the micro-batch that took its topic-partition last."""
        found: list[tuple[int, Candidate]] = []
        others: list[Unflushed] = []
        learned, sizes, flush = self._state.bytes_per_record(), self._state.sizes(), self._settings.flush
        boundary_ms = last_boundary_ms(now_ms, flush)
        for key, end in ends.items():
            start = self._offsets.starts[key]
            if end < start:
                self._recreated.on_end_below_start(key, start, end)
                continue
            if end == start and key not in self._plans.retries:
                self._ages.note_empty(key)
                continue
            oldest = self._ages.oldest_ms(key, start, end, self._turns.since_ms(key))
            high = self._drain.limit(key, start, end)
            if paused or self._plans.is_retry_pending(key):
                continue
            per_record = learned.get(key[0])
            span = (
                self._plans.repeated(key, start, end)
                or due_range(
                    *(start, high, oldest, per_record, flush, now_ms),
                    draining=self._drain.active,
                    asked_until=self._flushes.until(key),
                    scheduled_end=self._ages.end_before(key, start, boundary_ms),
                )
                or self._sizes.due(key, start, high, per_record, sizes.get(key[0]))
            )
            if span is not None:
                found.append((self._plans.last_batch(key), (*key, span)))
            else:
                others.append(Unflushed(self._plans.last_batch(key), *key, start, high, oldest))
        return with_along(found, others, flush, now_ms)

    def _deadline(self) -> float:
        return self._now() + client_options.seconds(self._settings.kafka, "default.api.timeout.ms", PATIENCE_S)

    def close(self) -> None:
        self._group.close()


def kafka_planner(
    settings: PlanningSettings,
    state: SqliteStore,
    instance: Instance,
    *,
    reported: bool,
    now: Callable[[], float] = steady_clock,
    sleep: Callable[[float], None] = time.sleep,
) -> Planner:
    """A planner that asks Kafka, as these settings say. reported: as of `Planner`."""
    kafka, client_log = settings.kafka, ClientLog(settings.kafka.whose)
    outage = BrokerOutage(settings.name, state, now, settings.away_timeout_ms)
    cluster = KafkaCluster(kafka, client_log, outage.report)
    ids, epochs = TopicIds(cluster), LeaderEpochs(cluster.epochs)
    moves = kafka.owned.fence is not None and kafka.owned.state_topic is not None
    learned = LearnedTopic(settings.name, kafka, cluster, client_log) if moves else None
    written = None if learned is None else learned.changes
    context = PlanningContext(
        settings,
        state,
        cluster=cluster,
        group=GroupOffsets(kafka, instance, ids.by_topic, epochs.committed, client_log, state=written),
        ids=ids,
        offsets=PartitionOffsets(),
        epochs=epochs,
        now=now,
        unavailable=UnavailablePartitions(settings.name, state, now),
    )
    return Planner(context, outage, FirstTimestamps(kafka, client_log), reported=reported, learned=learned, sleep=sleep)
