"""What the processes of one connector tell each other, behind a protocol.

The program, the planner (beside Spark's driver) and the committer (the sink's process there) share no memory. Each
opens the connector's store; executors never do. What belongs to a run is forgotten when the next begins; what topics
taught outlives runs, so that files come out the same after a crash. Losing all of it loses estimates and history, never
a record: the offsets that count are the consumer group's.

| what | written by | read by |
|---|---|---|
| `SLOTS`, `WARM_UP`, `PAUSE`, `STOP`, `COMING` | program | planner |
| `STARTED`, `DRAINED` | planner | program |
| `BEGUN` | planner; program, before a query starts | program |
| progress | planner | program |
| accepted, `REPORTED` | committer | planner, program |
| `SENT` | committer; planner and program, once it is stored | planner, program |
| failure | planner, committer | program |
| event log | planner, committer | program |
| learned | committer | planner |
| planned | planner | planner, of this and the next run |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from parquet_sink.model.events import Event
from parquet_sink.model.failure import Failure
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.progress import Accepted, PartitionProgress
from parquet_sink.model.ranges import Known, PlannedRange, ValueSizes

T = TypeVar("T", bool, "int | None", "str | None")


@dataclass(frozen=True)
class Field(Generic[T]):
    """One value of a run. default: what is read before it is written; its type is that of every value."""

    name: str
    default: T


SLOTS: Final = Field["int | None"]("slots", None)
"""Spark tasks that the connector may run at once; None: not known."""
WARM_UP: Final = Field[bool]("warm_up", False)
"""Begin with a micro-batch that loads and compiles everything."""
PAUSE: Final = Field[bool]("pause", False)
"""Admit nothing more for now: offsets stay signed, and it is seen how topic-partitions stand."""
STOP: Final = Field[bool]("stop", False)
"""Admit nothing more."""
COMING: Final = Field["str | None"]("coming", None)
"""Topics, with commas between, that a source of the same program makes: a sink that names them waits for them."""
STARTED: Final = Field[bool]("started", False)
"""It is known where the topic-partitions start: a broker answered."""
BEGUN: Final = Field[bool]("begun", False)
"""The query that runs now has done the checks of its start; set back before each start of a query."""
DRAINED: Final = Field[bool]("drained", False)
"""After STOP: nothing is in flight any more."""
SENT: Final = Field["str | None"]("sent", None)
"""Of a source: how far it got since positions were stored last, `pipeline.source_reached.SourceReached` as JSON."""

REPORTED: Final = Field[bool]("reported", False)
"""The sink reported what became of the micro-batch that was planned last: see `RunState.begin_batch`."""

FIELDS: Final = (SLOTS, WARM_UP, PAUSE, STOP, COMING, STARTED, BEGUN, DRAINED, SENT, REPORTED)


class RunState(Protocol):
    """What belongs to one run."""

    def get(self, field: Field[T]) -> T:
        """The value last set, else the field's default."""

    def set(self, field: Field[T], value: T) -> None: ...

    def record_progress(self, progress: Sequence[PartitionProgress]) -> None:
        """How topic-partitions stand now; those that are not named stay as they were."""

    def progress(self) -> list[PartitionProgress]:
        """Of every topic-partition, in order of topic and number."""

    def begin_batch(self, keys: Sequence[PartitionKey]) -> None:
        """A micro-batch begins with a range of each of these topic-partitions: nothing is reported of them yet."""

    def record_accepted(self, ranges: Sequence[Accepted]) -> None:
        """How far the last range of each topic-partition is accepted, which reports the micro-batch.

        All of it is there, or nothing; topic-partitions that are not named stay as they were.
        """

    def accepted(self) -> list[Accepted]: ...

    def forget_partition(self, topic: str, partition: int) -> None:
        """Forgets how far a topic-partition is accepted, and how it stands: it was deleted."""

    def record_failure(self, failure: Failure) -> None:
        """The first failure stays: later ones follow from it."""

    def failure(self) -> Failure | None: ...

    def clear_for_restart(self) -> None:
        """Before the query starts again: forgets the failure, and what was accepted. The group's offsets count."""


class LearnedState(Protocol):
    """What topics taught; outlives a run."""

    def learn(self, topic: str, known: Known) -> None:
        """Adds what a range taught of a topic; a part of `known` that is None changes nothing."""

    def learned(self) -> dict[str, Known]:
        """What is known of each topic now."""

    def bytes_per_record(self) -> dict[str, float | None]:
        """Parquet bytes that a record of each topic became lately."""

    def learn_sizes(self, sizes: Mapping[str, ValueSizes]) -> None:
        """What the values of records of these topics became lately; others stay."""

    def sizes(self) -> dict[str, ValueSizes]:
        """Of each topic of which that is known."""

    def record_planned(self, ranges: Sequence[PlannedRange], recipe: str) -> None:
        """Ranges that are taken for the first time, together with what is known of their topics now.

        recipe: stands for all else that files depend on.
        """

    def planned(self, recipe: str) -> dict[tuple[str, int], PlannedRange]:
        """The last range of each topic-partition, with what was known when it was recorded; of this recipe only."""


@dataclass(frozen=True)
class EventBatch:
    """Events in the order in which they were appended. position: to read on from. dropped: lost before the first."""

    events: tuple[Event, ...]
    position: int
    dropped: int = 0


class EventLog(Protocol):
    """What happened, append-only and bounded; of one run. Each reader keeps its own position."""

    def append_events(self, events: Sequence[Event]) -> None:
        """Adds events in this order; one that is equal to one in the log is the same event, and is not added again."""

    def events_after(self, position: int) -> EventBatch:
        """The events after a position; 0 is the beginning."""


class StateStore(RunState, LearnedState, EventLog, Protocol):
    """All that the processes of one connector tell each other."""

    def close(self) -> None: ...
