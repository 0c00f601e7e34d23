"""A topic, its first delivery and its replays, without a broker: records in memory, files real, targets fakes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from parquet_sink import __version__
from parquet_sink.addons.replay import run
from parquet_sink.addons.replay.copies import Span
from parquet_sink.addons.replay.journal import Order, Progress
from parquet_sink.addons.replay.pace import FULL, Rate
from parquet_sink.addons.replay.plan import Cutting, Held, Past, ReplayPlan, make_plan
from parquet_sink.addons.replay.results import ReplayedFile
from parquet_sink.addons.replay.run import Options, Replay, Watcher
from parquet_sink.history.records import RangeRecord, Sender, UploadRecord, range_record, upload_record
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import LearnedSchema, PlannedRange
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.outcome import Outcome
from tests.spark_task import Handed, flushed
from tests.task import fakes


class Target(fakes.Target):
    """Also knows the order in which files came, and stops when a test says so. stop_after: files, then Ctrl-C."""

    name = "the fake"

    def __init__(self, *outcomes: Outcome | BaseException) -> None:
        super().__init__(*outcomes)
        self.closed = 0

    def close(self) -> None:
        self.closed += 1

    @property
    def spans(self) -> list[tuple[int, int, int]]:
        """Topic-partition, first and last offset of accepted files, as they came."""
        return [(file.partition, file.first_offset, file.last_offset) for file in self.files]


NOTHING = LearnedSchema()


@dataclass
class World:
    """records: by topic-partition, what Kafka holds; may be changed between deliveries."""

    settings: SinkSettings
    monkeypatch: pytest.MonkeyPatch
    records: dict[PartitionKey, dict[int, bytes | None]] = field(default_factory=dict)
    ranges: list[RangeRecord] = field(default_factory=list)
    files: list[UploadRecord] = field(default_factory=list)
    block: int = 500
    on_batch: Callable[[], None] = lambda: None

    def read(self, kafka: KafkaSettings, planned: PlannedRange, parts: RecordParts) -> Iterator[RecordBatch]:
        """The records of a range in blocks, as a reader gives them."""
        mine = self.records[planned.topic, planned.partition]
        offsets = [offset for offset in sorted(mine) if planned.start <= offset < planned.end]
        for begin in range(0, len(offsets), self.block):
            some = offsets[begin : begin + self.block]
            self.on_batch()
            values = [mine[offset] for offset in some]
            yield RecordBatch.of(planned.topic, planned.partition, some, [1_000] * len(some), values)

    def deliver(self, *spans: tuple[int, int, int], known: LearnedSchema = NOTHING) -> Target:
        """The first time: ranges (topic-partition, start, end), each with what those before it taught."""
        if self.settings.errors.parks:
            ParkedFolder(self.settings.parked_folder, self.settings.name, 10**8).prepare()
        target = Target()
        sender = Sender("t", "there", self.settings.fingerprint, __version__)
        for number, (partition, start, end) in enumerate(spans):
            planned = PlannedRange("orders", partition, start, end, "records", start, known=known)
            (outcome,) = flushed(self.settings, [planned], target=target, read=self.read).values()
            assert outcome.failure is None, outcome.failure
            known = known.updated(outcome.learned)
            self.files += [upload_record(one, sender, 1.0 + number) for one in outcome.receipts]
            self.ranges.append(range_record(planned, sender, 1.0 + number, outcome.accepted_until))
        return target

    def held(self) -> dict[PartitionKey, Held]:
        """What Kafka has."""
        return {key: Held(min(mine), max(mine) + 1, thinned=False) for key, mine in self.records.items() if mine}

    def past(self) -> dict[PartitionKey, Past]:
        """What the history has."""
        return {
            key: Past(
                [one for one in self.ranges if one.partition == key[1]],
                [one for one in self.files if one.partition == key[1]],
            )
            for key in self.records
        }

    def plan(self, chosen: Mapping[PartitionKey, Sequence[Span]] | None = None, **known: LearnedSchema) -> ReplayPlan:
        """Of what was chosen; of everything that is there."""
        held = self.held()
        everything = {key: [(one.low, one.high)] for key, one in held.items()}
        return make_plan(chosen or everything, held, self.past(), Cutting(self.settings.flush, known))

    def replay(
        self,
        plan: ReplayPlan,
        target: Target | None,
        *,
        times: int = 1,
        progress: Progress | None = None,
        saved: list[dict[str, Any]] | None = None,
        settings: SinkSettings | None = None,
        rate: Rate = FULL,
        watcher: Watcher | None = None,
        **clocks: Any,
    ) -> Replay:
        """A replay that is not begun yet."""
        own = settings or self.settings
        folder = str(Path(own.files.tmp_dir) / "again")
        used = replace(own, files=replace(own.files, tmp_dir=folder))
        self.monkeypatch.setattr(run, "from_kafka", self.read)
        save = (lambda one: None) if saved is None else (lambda one: saved.append(one.to_dict()))
        options = Options(None if target is None else Handed(target), rate, save)
        return Replay(used, Order(plan, times), options, progress, () if watcher is None else (watcher,), **clocks)


def results(replay: Replay) -> list[ReplayedFile]:
    """To its end."""
    with closing(replay.files()) as files:
        return list(files)


def left(world: World) -> list[str]:
    """Files of a replay that are still on the disk."""
    return fakes.left(Path(world.settings.files.tmp_dir))


def filled(count: int, step: int = 1) -> dict[int, bytes | None]:
    """So many records, at every `step`-th offset."""
    return {number * step: fakes.wide(number) for number in range(count)}
