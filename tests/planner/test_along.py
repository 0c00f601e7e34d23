"""What is half as old as the interval goes along, beside all else that decides what a micro-batch takes (ADR 25)."""

import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parquet_sink.errors import TopicGone
from parquet_sink.files.rotation import Reason
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import Accepted, Again, PlannedRange, Tries
from parquet_sink.planner.admission import (
    Candidate,
    Range,
    Unflushed,
    batch_records,
    due_range,
    select_batch,
    tick_ms,
    with_along,
)
from parquet_sink.planner.clock_schedule import last_boundary_ms
from parquet_sink.planner.record_ages import Arrivals
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import PAUSE
from tests.factories import Clock
from tests.kafka.simulation import count_as_very_many
from tests.planner.planner_cluster import SETTINGS, Cluster, Reported, done, planner_on
from tests.thorough import examples

FLUSH = FlushSettings(commit_size_bytes=1_000_000, commit_records=1_000, commit_interval_ms=5_000)
NOW = 1_000_000


@given(st.lists(st.integers(100, 6_000), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_an_interval_has_two_micro_batches_at_most(gaps: list[int], chance: Random) -> None:
    """However many topic-partitions trickle, each at times of its own; and nothing is older than a tick allows."""
    arrivals, high, batches = [Arrivals()] * len(gaps), [0] * len(gaps), list[int]()
    start = high.copy()
    for now in range(NOW, NOW + 60_000, 500):
        for one, gap in enumerate(gaps):
            high[one] += chance.random() < 500 / gap
            arrivals[one] = arrivals[one].after(start[one]).observed(high[one], now)
        oldest = [one.oldest_ms(begin) for one, begin in zip(arrivals, start, strict=True)]
        assert all(at is None or now - at <= FLUSH.commit_interval_ms for at in oldest)
        waiting = [Unflushed(0, "t", one, start[one], high[one], at) for one, at in enumerate(oldest)]
        found = decided(waiting, FLUSH, now)
        batches += [now] if found else []
        for _, (_, one, span) in found:
            start[one] = span.end
    assert all(later - earlier >= FLUSH.commit_interval_ms // 2 for earlier, later in pairwise(batches))


def decided(waiting: Sequence[Unflushed], flush: FlushSettings, now_ms: int) -> list[tuple[int, Candidate]]:
    """What is due of these, and what goes along."""
    spans = [due_range(one.start, one.high, one.oldest_ms, None, flush, now_ms) for one in waiting]
    pairs = list(zip(waiting, spans, strict=True))
    due = [(one.last_batch, (one.topic, one.partition, span)) for one, span in pairs if span is not None]
    return with_along(due, [one for one, span in pairs if span is None], flush, now_ms)


CANDIDATES = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 400_000), st.booleans()), max_size=30)


@given(CANDIDATES, st.integers(1, 8))
def test_none_goes_along_in_the_place_of_one_that_is_due(found: list[tuple[int, int, bool]], slots: int) -> None:
    """Whenever its topic-partition had a turn last: where one goes along, all that are due are taken."""
    candidates = [
        (turn, ("t", number, Range(0, records, Reason.INTERVAL, along=along)))
        for number, (turn, records, along) in enumerate(found)
    ]
    taken = select_batch(candidates, FLUSH, slots)
    if any(span.along for *_, span in taken):
        due = {number for _, (_, number, span) in candidates if not span.along}
        assert due <= {number for _, number, _ in taken}


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 3), st.randoms(use_true_random=False))
def test_behind_backlogs_a_trickle_waits_for_its_turn_alone(
    full: int, trickles: int, slots: int, chance: Random
) -> None:
    """Micro-batches that backlogs fill take each topic-partition that is due before any has its second turn."""
    each = batch_records(FLUSH.commit_interval_ms, slots) // 100_000
    turns = -(-(full + trickles) // each)
    last, since = dict.fromkeys(range(full + trickles), 0), dict.fromkeys(range(full, full + trickles), NOW)
    now, due_at = NOW, dict[int, int]()
    for number in range(1, 60):
        now += chance.randrange(100, 10_000)
        waiting = [
            Unflushed(turn, "t", one, 0, *((10**7, NOW) if one < full else (9, since[one])))
            for one, turn in last.items()
        ]
        found = decided(waiting, FLUSH, now)
        for _, (_, one, span) in found:
            if not span.along:
                due_at.setdefault(one, number)
        for _, one, _ in select_batch(found, FLUSH, slots):
            last[one], since[one] = number, now
            due_at.pop(one, None)
        assert all(number - at < turns for at in due_at.values())


class Shrinking(Cluster):
    """A cluster whose requests fail for topics that were deleted, as Kafka's do."""

    def end_offsets(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        if gone := [key for key in keys if key not in self.logs]:
            raise TopicGone("deleted").at(gone[0])
        return super().end_offsets(keys)

    def high_watermarks(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        if gone := [key for key in keys if key not in self.logs]:
            raise TopicGone("deleted").at(gone[0])
        return super().high_watermarks(keys)


@dataclass
class World:
    """A planner, one tick a second, and what is known of all records.

    seen: of each topic-partition, up to which offset records were there at which tick. reached: what is accepted.
    failing: those whose target is down. tried: ranges that come again, and from when.
    """

    flush: FlushSettings
    state: SqliteStore
    idle: bool
    clock: Clock = field(default_factory=lambda: Clock(1_000_000.0))
    cluster: Shrinking = field(default_factory=Shrinking)
    seen: dict[PartitionKey, list[tuple[int, int]]] = field(default_factory=dict)
    reached: dict[PartitionKey, int] = field(default_factory=dict)
    failing: set[PartitionKey] = field(default_factory=set)
    tried: dict[PartitionKey, tuple[PlannedRange, int]] = field(default_factory=dict)
    finished: dict[PartitionKey, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cluster.logs = {(f"t{number}", 0): (0, 0) for number in range(4)}
        self.reached = dict.fromkeys(self.cluster.logs, 0)
        self.seen = {key: [] for key in self.cluster.logs}
        self.planner = planner_on(
            self.cluster, replace(SETTINGS, flush=self.flush), self.state, self.clock, Reported, lambda act: act()
        )
        self.planner.begin()
        self.tick()

    @property
    def now_ms(self) -> int:
        return int(self.clock.seconds * 1_000)

    def happen(self, what: str, key: PartitionKey) -> None:
        """One thing that the world does to the connector."""
        if what in ("paused", "resumed"):
            self.state.set(PAUSE, what == "paused")
        elif what in ("down", "up"):
            {"down": self.failing.add, "up": self.failing.discard}[what](key)
        elif key in self.cluster.logs and what == "deleted":
            del self.cluster.logs[key]
            self.reached.pop(key)
            self.tried.pop(key, None)
        elif key in self.cluster.logs:
            count = {"some": 7, "many": self.flush.commit_records}[what]
            self.cluster.logs[key] = (0, self.cluster.logs[key][1] + count)

    def tick(self) -> list[PlannedRange]:
        """One, and its micro-batch; how records stand is compared with what was taken."""
        for key, (_, end) in self.cluster.logs.items():
            if end > (self.seen[key][-1][0] if self.seen[key] else 0):
                self.seen[key].append((end, self.now_ms))
        taken = self.planner.tick(self.finished)
        self.compare(taken)
        self.finished = {(one.topic, one.partition): one.end for one in taken} or self.finished
        self.report(taken)
        self.clock.sleep(1)
        return taken

    def report(self, taken: Sequence[PlannedRange]) -> None:
        """What the sink says of a micro-batch; what its target does not take comes again after three seconds."""
        reports = []
        for one in taken:
            key = (one.topic, one.partition)
            if key in self.failing:
                owed = Again(Tries(one.tries.attempts + 1, 1.0), 3.0)
                reports.append(Accepted(*key, one.start, one.start, one.end, one.reason, owed))
                self.tried[key] = one, self.now_ms + 3_000
            else:
                reports.append(done(one))
                self.tried.pop(key, None)
                if key in self.reached:
                    self.reached[key] = one.end
        if reports:
            self.state.record_accepted(reports, self.clock.seconds)

    def since_ms(self, key: PartitionKey, offset: int) -> int | None:
        """When a record was there."""
        return next((at for end, at in self.seen[key] if end > offset), None)

    def compare(self, taken: Sequence[PlannedRange]) -> None:
        """Nothing is left out or taken twice, old records are taken, and young ones only beside old ones."""
        spans = {(one.topic, one.partition): one for one in taken}
        again = {key: one for key, (one, _) in self.tried.items()}
        assert {key: one.start for key, one in spans.items()} == {key: self.reached[key] for key in spans}
        assert all(spans[key].end == one.end for key, one in again.items() if key in spans)
        if self.state.get(PAUSE):
            assert taken == []
            return
        ages = {key: self.now_ms - at for key, at in self.waiting().items()}
        ripe = {key for key, age in ages.items() if age >= self.flush.commit_interval_ms}
        late = self.flush.commit_interval_ms + 2 * tick_ms(self.flush) if self.idle else self.flush.commit_interval_ms
        held = {key for key, (_, due_ms) in self.tried.items() if self.now_ms < due_ms + 1_000}
        assert {key for key, age in ages.items() if age >= late} - held <= spans.keys()
        by_age = {key for key, one in spans.items() if one.reason == Reason.INTERVAL}
        if not self.idle:
            assert not by_age or by_age & (ripe | again.keys())
            assert all(ages[key] >= self.flush.commit_interval_ms // 2 for key in by_age - again.keys())
            self.compare_with_the_clock(spans, again)

    def waiting(self) -> dict[PartitionKey, int]:
        """Since when the first record of each topic-partition waits, where one does."""
        found = {key: self.since_ms(key, offset) for key, offset in self.reached.items()}
        return {key: at for key, at in found.items() if at is not None}

    def compare_with_the_clock(self, spans: dict[PartitionKey, PlannedRange], again: dict[PartitionKey, Any]) -> None:
        """No range goes on over the last time at which files end, nor is one left that began before it."""
        boundary = last_boundary_ms(self.now_ms, self.flush)
        if boundary is None:
            return
        for key, first in self.waiting().items():
            if key in again or first >= boundary:
                continue
            last = self.since_ms(key, spans[key].end - 1)
            assert last is not None
            assert last < boundary


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["some"] * 8 + ["many", "paused", "resumed", "down", "up", "deleted"]),
        st.integers(0, 3),
        st.integers(0, 4),
    ),
    max_size=30,
)
"""What happens, to which topic, and how many ticks follow."""


@example([("some", 0, 2), ("some", 1, 2), ("some", 2, 1), ("paused", 0, 9), ("resumed", 0, 1)], 0, False)
@example([("down", 0, 0), ("some", 0, 4), ("some", 1, 4), ("some", 2, 3), ("deleted", 1, 9)], 0, False)
@example([("some", 0, 3), ("some", 1, 0), ("deleted", 1, 2)], 0, False)
@example([("some", 0, 3), ("some", 1, 4), ("some", 2, 4)], 7_000, False)
@example([("some", 0, 4), ("some", 1, 4), ("some", 0, 4)], 0, True)
@example([("some", 0, 3), ("many", 1, 1)], 0, False)
@settings(max_examples=examples(150), deadline=None)
@given(STEPS, st.sampled_from([0, 7_000]), st.booleans())
def test_whatever_happens_old_records_are_taken_and_young_ones_with_them_alone(
    steps: list[tuple[str, int, int]], schedule_ms: int, idle: bool
) -> None:
    """Beside pauses, deleted topics, targets that are down, files that end by the clock, and idle topic-partitions."""
    flush = FlushSettings(1_000_000, 1_000, 4_000, schedule_interval_ms=schedule_ms)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore(Path(folder) / "state.db")) as state,
        pytest.MonkeyPatch.context() as patch,
    ):
        if idle:
            count_as_very_many(patch)
        world = World(flush, state, idle)
        for what, number, ticks in steps:
            world.happen(what, (f"t{number}", 0))
            for _ in range(ticks):
                world.tick()
        world.happen("resumed", ("t0", 0))
        world.failing.clear()
        for _ in range(14):
            world.tick()
        assert world.reached == {key: end for key, (_, end) in world.cluster.logs.items()}
