"""What the processes of one connector tell each other: the fields of a run, and the log of events.

The program, the planner (beside Spark's driver) and the committer (the sink's process there) share no memory. Each
opens the connector's store; so do tasks on the program's machine, for events alone. What belongs to a run is forgotten
when the next begins; what topics taught outlives runs, so that files come out the same after a crash. Losing all of it
loses estimates and history, never a record: the offsets that count are the consumer group's.

| what | written by | read by |
|---|---|---|
| `SLOTS`, `WARM_UP`, `PAUSE`, `STOP`, `COMING`, `FLUSH` | program | planner |
| `STARTED`, `DRAINED`, `SETTLED`, `FLUSHED`, `LOOKED_MS` | planner | program |
| `BEGUN` | planner; program, before a query starts | program |
| progress | planner | program |
| accepted, `REPORTED`, `REPORTED_MS` | committer | planner, program |
| `SENT` | committer; planner and program, once it is stored | planner, program |
| failure | planner, committer | program |
| event log | planner, committer, tasks beside the program | program |
| learned | committer | planner |
| planned | planner | planner, of this and the next run |
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from parquet_sink.model.events import Event

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
SETTLED: Final = Field[bool]("settled", False)
"""After STOP: the group has all that was accepted."""
FLUSH: Final = Field["str | None"]("flush", None)
"""Flushes that are asked for, a list of `model.flushes.FlushRequest` as JSON."""
FLUSHED: Final = Field["str | None"]("flushed", None)
"""How far each of them got, `model.flushes.FlushProgress` likewise."""
SENT: Final = Field["str | None"]("sent", None)
"""Of a source: how far it got since positions were stored last, `addons.sources.flow.reached.SourceReached` as JSON."""

REPORTED: Final = Field[bool]("reported", False)
"""The sink reported what became of the micro-batch that was planned last: see `SqliteRun.begin_batch`."""

REPORTED_MS: Final = Field["int | None"]("reported_ms", None)
"""When it last did so: milliseconds of the machine's clock that never jumps, `time.monotonic`."""

LOOKED_MS: Final = Field["int | None"]("looked_ms", None)
"""When the planner last began to look for what is due, likewise."""

FIELDS: Final = (
    LOOKED_MS,
    SLOTS,
    WARM_UP,
    PAUSE,
    STOP,
    COMING,
    FLUSH,
    FLUSHED,
    STARTED,
    BEGUN,
    DRAINED,
    SETTLED,
    SENT,
    REPORTED,
    REPORTED_MS,
)


@dataclass(frozen=True)
class EventBatch:
    """Events in the order in which they were appended. position: to read on from. dropped: lost before the first."""

    events: tuple[Event, ...]
    position: int
    dropped: int = 0


class EventLog(Protocol):
    """What happened, append-only and bounded; of one run. Each reader keeps its own position."""

    def append_events(self, events: Sequence[Event]) -> None:
        """Adds events in this order, but none that is in the log already: by its `identity`, or as a whole."""

    def events_after(self, position: int) -> EventBatch:
        """The events after a position; 0 is the beginning."""
