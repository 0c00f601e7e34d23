"""A Spark task without Spark: the real `TaskFlush` on records in memory, in one thread of this process.

Real are the connector file's keys, reader, converters, transforms, rows, files, uploads into a folder, what crosses to
the driver, and the state file. Doubles are Kafka's clients and the clocks.
docs/how-to/task-without-spark.md shows its use.
"""

import pickle
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pyarrow.parquet as pq
import pytest

from parquet_sink.connectors.check import check_files
from parquet_sink.kafka.several_ranges import ReadInTurn
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import LearnedSchema, PlannedRange
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.spark import sink
from parquet_sink.spark.handoff import Handoff
from parquet_sink.spark.sink import Outcomes, PushWriter, RangeWriter
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.task import task as task_module
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.record_steps import RecordSteps
from parquet_sink.task.task import Read, TaskFlush
from tests.cli.connector_file import connector_lines
from tests.factories import Clock, run_of
from tests.life.effects import Effects
from tests.life.kafka import Kafka
from tests.life.turns import Turns

T = TypeVar("T")
Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, eq=False)
class Handed:
    """Settings of a target that is there already: they cross to no other process. target: has `push` at least."""

    target: Any
    target_table: str = "t"

    def open(self) -> Any:
        return self.target


def flushed(
    settings: SinkSettings,
    ranges: Sequence[PlannedRange],
    *,
    target: Any = None,
    steps: RecordSteps | None = None,
    read: Read | None = None,
    replans: bool = False,
    repeated: bool = False,
) -> dict[PartitionKey, RangeOutcome]:
    """What a task says of its ranges: steps 1 to 8 of `task.task`. target: in place of the one in the settings."""
    used = settings if target is None else replace(settings, target=Handed(target))
    found = TaskFlush(used, steps, read, replans=replans, repeated=repeated).run(ranges)
    outcomes = {(one.planned.topic, one.planned.partition): one for one in found}
    assert len(outcomes) == len(found)
    return outcomes


def crossed(value: T) -> T:
    """As it comes out in another process."""
    return pickle.loads(pickle.dumps(value))  # type: ignore[no-any-return]


def report(writer: RangeWriter, outcomes: Sequence[RangeOutcome]) -> None:
    """Step 9: what the driver notes, whatever failed."""
    writer.abort([crossed(Outcomes(tuple(outcomes)))], 0)


@dataclass(frozen=True)
class Attempt:
    """In place of PySpark's `TaskContext`, in a task."""

    number: int

    def get(self) -> "Attempt":
        return self

    def attemptNumber(self) -> int:
        return self.number


def attempt(writer: RangeWriter, rows: Iterator[Any], number: int) -> Outcomes:
    """What Spark gets of a task's attempt at these rows, each a range."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sink, "TaskContext", Attempt(number))
        return crossed(writer.write(rows))


@dataclass
class Produced:
    """A record in memory. offset: set when it is appended."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    at_ms: int = 1_000
    offset: int = -1


class Steady(Random):
    """Chance that leaves nothing to chance: what can be done is done at once, and whole."""

    def random(self) -> float:
        return 0.0

    def choice(self, seq: Any) -> Any:
        return max(seq)


class SparkTask:
    """A connector and its topics. folder: where its connector file, target, temporary files and state are."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self._run = folder, ExitStack()
        self.kafka = Kafka(Effects(), Clock(1_000.0), Steady())
        for owner, name, double in (*self.kafka.patches(), *Turns(Steady()).patches()):
            patch.setattr(owner, name, double)
        patch.setattr(task_module, "reading", ReadInTurn)
        (folder / "out").mkdir()
        self.configure()

    def configure(self, **keys: str) -> SinkSettings:
        """The connector of a file with these keys, `__` for each full stop, on a few that every file needs."""
        lines = connector_lines(self.folder) | {name.replace("__", "."): text for name, text in keys.items()}
        path = self.folder / "connector.properties"
        path.write_text("".join(f"{key}={text}\n" for key, text in lines.items()), encoding="utf-8")
        self.settings = check_files([str(path)], None, bootstrap_servers="nowhere:9092").require()[0]
        self._run.close()
        self._handoff: Handoff[SinkSettings] = self._run.enter_context(run_of(self.settings, self.folder / "run"))
        return self.settings

    def produce(
        self,
        *values: bytes | None,
        topic: str = "orders",
        partition: int = 0,
        key: bytes | None = None,
        headers: Headers = (),
        gap: int = 0,
    ) -> None:
        """Records of these values, then so many offsets without a record."""
        logs = (self.kafka.topics.get(topic) or self.kafka.make(topic, 10)).logs
        logs[partition].append([Produced(value, key, headers) for value in values], gap)

    def due(self) -> list[PlannedRange]:
        """A range for each topic-partition with records that are not accepted yet."""
        ends = {key: self.kafka.log(key).end for key in self.kafka.partitions()}
        found, known = [(key, self.accepted.get(key, 0), end) for key, end in ends.items()], self._learned()
        return [
            PlannedRange(*key, start, end, "records", start, known=known.get(key[0], LearnedSchema()))
            for key, start, end in found
            if start < end
        ]

    def flush(self, *ranges: PlannedRange, **options: Any) -> dict[PartitionKey, RangeOutcome]:
        """One task, of whose outcomes the driver takes note. ranges: none: all that is due; options: of `flushed`."""
        outcomes = flushed(self.settings, ranges or self.due(), **options)
        report(PushWriter(self._handoff), list(outcomes.values()))
        return outcomes

    def rows(self, table: str = "T") -> list[dict[str, Any]]:
        """What the target has, in the order of file names."""
        files = sorted((self.folder / "out" / table).glob("*.parquet"))
        return [row for path in files for row in pq.ParquetFile(path).read().to_pylist()]

    @property
    def accepted(self) -> dict[PartitionKey, int]:
        """Up to which offset everything is accepted, as the state file has it."""
        with closing(self.state()) as state:
            return {(one.topic, one.partition): one.next_offset for one in state.accepted()}

    def state(self) -> SqliteStore:
        """The state file, as another process of the connector opens it; to be closed."""
        return SqliteStore(self._handoff.state_path, self._handoff.state_ids)

    def close(self) -> None:
        """Ends the run."""
        self._run.close()

    def _learned(self) -> dict[str, LearnedSchema]:
        with closing(self.state()) as state:
            return state.learned()
