"""What a source is to this program: a class whose objects give records, in a Spark task, from where they are told.

A source connector's micro-batch is one Spark task for each configuration that its connector class made. In it a task
object lives for a few seconds, in this order:

1. it is made without arguments, and `start` tells it its settings and how far everything is in Kafka
2. `poll` is called until it gives nothing, or the micro-batch has enough
3. its records are transformed, converted and sent, and acknowledged by the brokers
4. `remember`, if it has that, says what the next start is to be told beside the places; `stop` ends it
5. its places go to the driver, and are stored there; only then the next micro-batch begins

Nothing is stored before 3 is done, so after a crash the same records come again, and none is missing. Nothing but the
places, and what was remembered, goes from one micro-batch to the next: they may run in different processes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from parquet_sink.model.source_records import Place, SourceRecord

Memory = Mapping[str, str | int | float | bool | None]
"""What a task remembers: a flat JSON object."""


@dataclass(frozen=True)
class Reached:
    """What was reached before. places: by source partition, where to go on. memory: of the task, kept below `tmp.dir`.

    memory is empty at the first start, after `tmp.dir` was lost, and when somebody changed the places by hand.
    """

    places: Sequence[tuple[Place, Place]] = ()
    memory: Memory = field(default_factory=dict)

    def offset(self, partition: Place) -> Place | None:
        """Where to go on in a part of the source; None: it is new."""
        return next((offset for known, offset in self.places if dict(known) == dict(partition)), None)


class SourceTask(Protocol):
    """One task. Whatever it raises fails the connector; SourceFailed with its words, which should name the cure."""

    def start(self, settings: Mapping[str, str], reached: Reached) -> None:
        """Before the first poll. settings: of this task, as its connector class made them."""

    def poll(self) -> Sequence[SourceRecord]:
        """The next records, in order; none when there are none now. It should not wait for longer than a second."""

    def stop(self) -> None:
        """Nothing is asked any more."""


@runtime_checkable
class Remembering(Protocol):
    """A task that wants more than its places at the next start."""

    def remember(self) -> Memory:
        """After the last poll, whose records are in Kafka by now."""


@runtime_checkable
class RememberingWithin(Remembering, Protocol):
    """One that can tell what goes with a place in the middle of a poll, where else nothing is remembered."""

    def remember_at(self, partition: Place, offset: Place) -> Memory:
        """After a poll of which a record could not be sent: for the last one before that, which is in Kafka by now."""


@runtime_checkable
class Looking(Protocol):
    """A task that can tell cheaply whether something changed, so that no Spark task is spent on nothing."""

    def look(self) -> object:
        """Asked on the driver's machine after `start`: an object that differs from the last when there may be news.

        It must hold for the whole time since the last look: what was there already is no news.
        """


@runtime_checkable
class Noticing(Looking, Protocol):
    """A task that a look tells something which it wants at the next start, though nothing was sent since."""

    def noticed(self) -> Memory | None:
        """Asked after `look`: what is remembered from now on, with the same places; None: what was remembered."""


@runtime_checkable
class Judging(Protocol):
    """A task that can judge places which somebody sets by REST, without having been started."""

    def wrong_place(self, partition: Place, offset: Place) -> str | None:
        """Why the task could not begin there, as one sentence; None when it could."""


TaskClass = Callable[[], SourceTask]

__all__ = [
    "Judging",
    "Looking",
    "Memory",
    "Noticing",
    "Place",
    "Reached",
    "Remembering",
    "RememberingWithin",
    "SourceRecord",
    "SourceTask",
    "TaskClass",
]
