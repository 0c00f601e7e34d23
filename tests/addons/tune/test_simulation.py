"""The simulation against the planner itself, and against what is known beforehand."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink.addons.tune.model import Durations, Load, Machine, Thresholds
from parquet_sink.addons.tune.simulate import simulate_together
from parquet_sink.addons.tune.simulation import TYPICAL_RECORDS, SimulatedConnector, Ticks, run_together
from parquet_sink.addons.tune.work import RangeFiles, Sent, Slots, files_of, learned, run_batch
from parquet_sink.files.rotation import Limits, Reason
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import LearnedSchema
from parquet_sink.planner.admission import by_task
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import SLOTS
from tests.addons.tune.loads import any_load, steady
from tests.factories import Clock
from tests.planner.planner_cluster import SETTINGS, Cluster, Reported, planner_on

BASE_MS = 1_000_000_000
"""What the planner's clock shows when the simulation's shows 0."""
LOOKED_MS = 90_000.0


class Reference:
    """The sink's planner itself, asked at every tick; what takes time takes as long as in the simulation."""

    def __init__(
        self, load: Load, thresholds: Thresholds, durations: Durations, machine: Machine, state: SqliteStore
    ) -> None:
        self.load, self.thresholds, self.durations, self.machine = load, thresholds, durations, machine
        self.state, self.clock, self.cluster = state, Clock(BASE_MS / 1000), Cluster()
        self.numbers = {(one.topic, one.partition): number for number, one in enumerate(load.partitions)}
        self.cluster.logs = {key: (0, load.partitions[number].backlog) for key, number in self.numbers.items()}
        self.cluster.times.of = {
            key: int(BASE_MS - load.partitions[number].backlog_age_ms) for key, number in self.numbers.items()
        }
        self.ticks = Ticks(thresholds, durations.jitter_ms)
        self.sent: list[Sent] = []

    def run(self) -> list[Sent]:
        """The files of the first LOOKED_MS."""
        self.state.set(SLOTS, self.machine.slots)
        for one in self.load.partitions:
            self._learn(one.topic, learned(TYPICAL_RECORDS, one.sizes))
        asked = planner_on(self.cluster, replace(SETTINGS, flush=self.thresholds), self.state, self.clock, Reported)
        asked.begin()
        finished: dict[PartitionKey, int] = {}
        slots, at = Slots(self.machine.slots), 0.0
        while at <= LOOKED_MS:
            for key, number in self.numbers.items():
                one = self.load.partitions[number]
                high = one.backlog + one.arrivals.count(at + self.durations.look_ms)
                self.cluster.logs[key] = (0, high)
            self.clock.seconds = (BASE_MS + self.ticks.clock_ms(at) + 0.5) / 1000
            due = asked.tick(finished)
            done = at
            if due:
                finished = {(one.topic, one.partition): one.end for one in due}
                piles = [
                    [
                        self._files(self.numbers[one.topic, one.partition], one.start, one.end, Reason(one.reason))
                        for one in pile
                    ]
                    for pile in by_task(due, asked.tasks())
                ]
                begin = at + self.durations.look_ms + self.durations.plan_ms
                sent, done = run_batch(piles, begin, slots, self.machine, self.durations)
                done += self.durations.finish_ms
                self.sent += sent
                for pile in piles:
                    for files in pile:
                        self._learn(*self._taught(files))
            self.ticks.visit(at, done)
            at = self.ticks.next_ms
        return self.sent

    def _files(self, number: int, start: int, end: int, reason: Reason) -> RangeFiles:
        limits = Limits(self.thresholds.commit_size_bytes, self.thresholds.commit_records)
        one = self.load.partitions[number]
        known = self.state.learned()[one.topic].bytes_per_record
        return RangeFiles(number, start, tuple(files_of(end - start, reason, limits, one.sizes, known)))

    def _taught(self, files: RangeFiles) -> tuple[str, float]:
        one = self.load.partitions[files.key]
        return one.topic, learned(files.files[-1][0], one.sizes)

    def _learn(self, topic: str, per_record: float) -> None:
        self.state.learn(topic, LearnedSchema(None, per_record, per_record))


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteStore]:
    """A connector's state."""
    found = SqliteStore(tmp_path / "state.db")
    yield found
    found.close()


@pytest.mark.parametrize("by_clock", [False, True])
@pytest.mark.parametrize("seed", range(16))
def test_it_decides_as_the_planner_does(seed: int, by_clock: bool, state: SqliteStore) -> None:
    """File by file, with the time to the millisecond: what is simulated is what the planner does when it is asked."""
    chance = random.Random(seed)
    load = replace(any_load(chance), began_ms=BASE_MS)
    thresholds = Thresholds(
        chance.choice([50_000, 10_000_000]), chance.choice([40, 1_000, 100_000]), chance.choice([1_000, 3_000, 20_000])
    )
    if by_clock:
        thresholds = replace(
            thresholds, commit_interval_ms=chance.choice([20_000, 80_000]), schedule_interval_ms=60_000
        )
    durations = Durations(look_ms=chance.choice([3, 40]), jitter_ms=chance.choice([0, 0.5, 20]), record_us=20)
    machine = Machine(slots=chance.choice([1, 4]), tasks_max=None)
    reference = Reference(load, thresholds, durations, machine, state)
    expected = reference.run()
    simulated = SimulatedConnector(load, thresholds, durations, machine)
    run_together([simulated], machine, [LOOKED_MS])
    assert simulated.sent == expected
    assert expected
    reasons = {one.reason for one in expected}
    assert reasons == {Reason.RECORDS} or by_clock == (Reason.SCHEDULE in reasons)


def test_connectors_share_slots() -> None:
    """Where one connector's long task holds the only slot, the file of another waits for it."""
    load, thresholds = steady(1, 100), Thresholds(10_000_000, 100_000, 2_000)
    alone = simulate_together([(load, thresholds)], Durations(), Machine(slots=1))
    slow = Durations(upload_ms=3_000)
    both = simulate_together([(load, thresholds), (steady(1, 50), thresholds)], slow, Machine(slots=1, connectors=2))
    apart = simulate_together([(load, thresholds), (steady(1, 50), thresholds)], slow, Machine(slots=5, connectors=2))
    assert alone[0].freshness is not None
    assert both[0].freshness is not None
    assert apart[0].freshness is not None
    assert alone[0].freshness.p50_s < apart[0].freshness.p50_s < both[0].freshness.p50_s
