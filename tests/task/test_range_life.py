"""A topic-partition from its first record to its last, through crashes, refusals and records that turn good.

Planner, state store, task and files are real; Kafka, the group and the target are within the test.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.spark.sink import PushWriter
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.targets.outcome import Outcome
from parquet_sink.worker.loop import group_commit
from tests.factories import Clock, run_of
from tests.planner.planner_cluster import KEY, ME, SETTINGS, Cluster, planner_on
from tests.spark_task import flushed, report
from tests.task.fakes import ACCEPTED, ONCE, REFUSED, UNKNOWN, Target, wide


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Life:
    """chance: decides everything. bad: offsets of records that have no row for now. first: the first that Kafka has."""

    chance: random.Random
    cluster: Cluster
    run_folder: Path
    count: int
    bad: set[int] = field(default_factory=set)
    first: int = 0
    names: dict[int, set[str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def push(self, file: Any, seconds_left: float) -> Outcome:
        """What the target says; it may have taken a file of which it says nothing good."""
        committed = self.cluster.group.get(KEY, 0)
        assert not file.first_offset < committed <= file.last_offset, f"{file.name} is around offset {committed}"
        fate = self.chance.choice(["taken"] * 6 + ["unknown", "refused", "killed before", "killed after"])
        if fate in {"refused", "killed before"}:
            if fate == "refused":
                return REFUSED
            raise Killed
        reader = Target()
        reader.push(file, seconds_left)
        for offset in reader.offsets:
            self.names.setdefault(offset, set()).add(file.name)
        if fate == "killed after":
            raise Killed
        return ACCEPTED if fate == "taken" else UNKNOWN

    def read(self, kafka: KafkaSettings, planned: PlannedRange, parts: RecordParts) -> Iterator[RecordBatch]:
        """What a reader finds of a range."""
        offsets = [offset for offset in range(planned.start, planned.end) if offset >= self.first]
        for begin in range(0, len(offsets), 50):
            some = offsets[begin : begin + 50]
            values = [b"not JSON" if offset in self.bad else wide(offset) for offset in some]
            yield RecordBatch.of("orders", 0, some, [1_000] * len(some), values)


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Life]:
    """Lives until all is committed."""

    def lived(seed: int) -> Life:
        chance, cluster = random.Random(seed), Cluster()
        life = Life(chance, cluster, tmp_path / "run", chance.randrange(1, 400))
        cluster.logs[KEY] = (0, life.count)
        life.bad = set(chance.sample(range(life.count), min(chance.randrange(4), life.count)))
        monkeypatch.setattr(cluster, "advance", lambda offsets, plans: advance(cluster, offsets, plans), raising=False)
        monkeypatch.setattr(group_commit, "GroupOffsets", lambda *args: cluster)
        flush = FlushSettings(chance.choice([8_000, 10**9]), chance.choice([7, 40, 100]), 2_000)
        files = FileSettings(str(tmp_path / "tmp"))
        settings = replace(SETTINGS, flush=flush, files=files, retry=ONCE)
        for _ in range(300):
            one_run(life, settings)
            if cluster.group.get(KEY) == life.count:
                return life
            between_runs(life)
        raise AssertionError(f"{cluster.group} of {life.count}: {life.failures[-3:]}")

    return lived


def advance(cluster: Cluster, offsets: Mapping[Any, int], plans: Mapping[Any, Any]) -> None:
    """As the group takes it from the program: with offsets that are higher, and with no others, plans."""
    cluster.commit({key: offset for key, offset in offsets.items() if offset > cluster.group[key]}, plans)
    cluster.plans = {key: plan for key, plan in cluster.plans.items() if plan.start <= cluster.group[key] < plan.end}


def one_run(life: Life, settings: Any) -> None:
    """From a start of the program to its end by a failure or a crash, or until all is committed."""
    clock = Clock(1_000_000.0)
    with run_of(settings, life.run_folder) as given, suppress(Killed):
        writer = PushWriter(given)
        state = SqliteStore(given.state_path, given.state_ids)
        try:
            asked = planner_on(life.cluster, settings, state, clock)
            asked.begin()
            finished: dict[tuple[str, int], int] = {}
            while life.cluster.group.get(KEY) != life.count:
                clock.sleep(3.0)
                due = asked.tick(finished)
                finished = {(one.topic, one.partition): one.end for one in due} or finished
                outcomes = list(flushed(settings, due, target=life, read=life.read, replans=True).values())
                perhaps_killed(life)
                report(writer, outcomes)
                perhaps_killed(life)
                if failed := [one.failure.message for one in outcomes if one.failure is not None]:
                    life.failures += failed
                    group_commit.commit_accepted(settings, ME, state)
                    return
        finally:
            state.close()


def perhaps_killed(life: Life) -> None:
    """At a moment between two effects."""
    if life.chance.random() < 0.1:
        raise Killed


def between_runs(life: Life) -> None:
    """A producer or an operator mends a record, and Kafka deletes some that were delivered."""
    if life.bad and life.chance.random() < 0.3:
        life.bad.remove(min(life.bad))
    if life.chance.random() < 0.1:
        life.first = max(life.first, life.cluster.group.get(KEY, 0) - life.chance.randrange(30))
        life.cluster.logs[KEY] = (life.first, life.count)


@pytest.mark.parametrize("seed", range(12))
def test_each_record_is_in_files_of_one_name(live: Callable[[int], Life], seed: int) -> None:
    """Whatever happens, and whatever turns good meanwhile; only what retention takes changes a file."""
    life = live(seed)
    assert sorted(life.names) == list(range(life.count))
    if life.first == 0:
        assert {offset: names for offset, names in life.names.items() if len(names) > 1} == {}
