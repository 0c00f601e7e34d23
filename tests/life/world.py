"""The world of one example: Kafka, target and time in memory, and the real sink on a folder of its own.

Everything between is real: the program's connector, planner, Spark's data sources, task, files, state, parked records.
Clocks, threads, Kafka's clients and the target are doubles, and each effect passes a gate (`tests.life.effects`).
"""

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from parquet_sink.convert import decoders
from parquet_sink.kafka import range_reader, several_ranges
from parquet_sink.kafka.several_ranges import ReadInTurn
from parquet_sink.model.events import Event
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.rejected import Rejected
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.planner import first_timestamps, planner, start_offsets
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.targets import uploader
from parquet_sink.task import range_attempt, range_flush, task
from parquet_sink.worker.loop import connector as connector_module
from tests.factories import Clock
from tests.life.effects import Effects
from tests.life.kafka import Kafka
from tests.life.promises import Hand, Promises
from tests.life.records import Kind, Record, Registry
from tests.life.target import Target
from tests.life.turns import Turns

BEGIN_S = 1_700_000_000.0
STATE_WRITES = (
    *("append_events", "begin_batch", "record_accepted", "record_planned", "record_failure", "record_progress"),
    *("learn", "set"),
)


class World:
    """seed: of what is drawn within the doubles."""

    def __init__(self, folder: Path, seed: int, patch: pytest.MonkeyPatch) -> None:
        self.folder, chance = folder, random.Random(seed)
        self.clock, self.effects, self.registry = Clock(BEGIN_S), Effects(), Registry()
        self.turns = Turns(chance)
        self.kafka = Kafka(self.effects, self.clock, chance)
        self.target = Target(self.effects)
        self.promises = Promises(self.kafka, self.target)
        self.target.on_push, self.target.on_stored = self.promises.pushed, self.promises.stored
        self.target.on_trouble = lambda: self.promises.touched.add(Hand.TARGET)
        self.kafka.on_commit = self.promises.committed
        self.starts = self.produced = 0
        self._patch_doubles(patch)
        self._patch_effects(patch)

    def produce(self, key: PartitionKey, kinds: Sequence[Kind], gap: int = 0) -> None:
        """Records of these kinds, then so many offsets without a record."""
        now_ms, first = int(self.clock.now() * 1000), self.produced + 1
        self.produced += len(kinds)
        records = [Record(first + index, kind, now_ms) for index, kind in enumerate(kinds)]
        self.kafka.log(key).append(records, gap)
        self.promises.produced(key, records)

    @property
    def lag(self) -> int:
        """Offsets between where the group stands, which may be in a topic that is gone, and where they end."""
        return sum(abs(self.kafka.log(key).end - self.kafka.committed(key)) for key in self.kafka.partitions())

    def _patch_doubles(self, patch: pytest.MonkeyPatch) -> None:
        clock = self.clock
        times = {"monotonic": clock.monotonic, "sleep": clock.sleep}
        for owner, name, double in [
            *self.kafka.patches(),
            *((module, "time", clock) for module in (first_timestamps, connector_module, range_attempt)),
            *((module, "give_back", lambda: None) for module in (several_ranges, task)),
            (range_reader, "give_back_at_times", lambda: None),
            (planner, "kafka_planner", partial(planner.kafka_planner, now=clock.now, sleep=clock.sleep)),
            (task, "reading", ReadInTurn),
            (task, "target_for", lambda settings: self.target),
            (task, "Deliverer", partial(task.Deliverer, **times, now=clock.now, jitter=lambda: 0.5)),
            (range_attempt, "PartitionClaim", partial(range_attempt.PartitionClaim, **times)),
            (decoders, "decoder_for", self.registry.around(decoders.decoder_for)),
            *self.turns.patches(),
        ]:
            patch.setattr(owner, name, double)
        patch.setattr("os.fsync", lambda descriptor: None)

    def _patch_effects(self, patch: pytest.MonkeyPatch) -> None:
        """Gates around whatever outlives its process, and what the ledger is told of."""
        of = self.effects.of
        for name in STATE_WRITES:
            patch.setattr(SqliteStore, name, of(name, self._noticed(name)))
        for module, name in [
            (uploader, "after_acceptance"),
            *((module, "remove_unsent") for module in (uploader, range_flush)),
        ]:
            patch.setattr(module, name, of("removal", getattr(module, name)))
        patch.setattr(ParkedFolder, "append", of("parking", self._parking()))
        patch.setattr(start_offsets, "forgotten_message", self._noticed_forgotten())

    def _noticed(self, name: str) -> Any:
        real = getattr(SqliteStore, name)
        if name != "append_events":
            return real

        def append_events(store: SqliteStore, events: Sequence[Event]) -> None:
            self.promises.told(events)
            real(store, events)

        return append_events

    def _noticed_forgotten(self) -> Any:
        real = start_offsets.forgotten_message

        def forgotten_message(group: str, forgotten: dict[PartitionKey, tuple[int, int]]) -> str:
            self.promises.forgotten_told(forgotten)
            message: str = real(group, forgotten)
            return message

        return forgotten_message

    def _parking(self) -> Any:
        real = ParkedFolder.append

        def append(folder: ParkedFolder, topic: str, partition: int, records: Sequence[Rejected], at_ms: int) -> int:
            found = real(folder, topic, partition, records, at_ms)
            self.promises.kept_aside(records)
            return found

        return append
