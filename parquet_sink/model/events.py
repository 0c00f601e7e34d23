"""What happens to files, ranges, records, topic-partitions and connectors: frozen values for whoever listens.

The process in which something happens appends the event to the connector's event log (`state.store.EventLog`); the
program reads it from there and hands it to its listeners (`worker.loop.events`). One for each file or range at most,
never one for each record. Offsets: ends are exclusive. `at_s`: epoch seconds.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from parquet_sink.model.ranges import AttemptCount, LossCause, Trying
from parquet_sink.model.receipts import Archiving, Failure, Receipt


@dataclass(frozen=True)
class Event:
    """connector: its name. at_s: when it happened, epoch seconds."""

    connector: str
    at_s: float

    @property
    def identity(self) -> str | None:
        """What an event that tells of the same has in common with this one, within a run; None: all of it."""
        return None

    def to_json(self) -> str:
        return json.dumps({"type": type(self).__name__, **vars(self)}, default=vars, separators=(",", ":"))


@dataclass(frozen=True)
class PartitionEvent(Event):
    """Of one topic-partition."""

    topic: str
    partition: int


@dataclass(frozen=True)
class RangePlanned(PartitionEvent):
    """A range [start, end) became work of a micro-batch. attempts: made before at its first file."""

    start: int
    end: int
    reason: str
    attempts: int = 0


@dataclass(frozen=True)
class FileAccepted(PartitionEvent):
    """The target accepted a file; of one that is sent again, because nobody knew of that, it tells once."""

    receipt: Receipt

    @property
    def identity(self) -> str | None:
        """Names have topic, topic-partition and offsets; a topic that was created again has other bytes."""
        digest = self.receipt.digest
        return None if digest is None else f"{self.receipt.file_name} {digest}"


@dataclass(frozen=True)
class FileArchived(Event):
    """What became, behind the connector, of a file at an archive that accepting it had not waited for."""

    file_name: str
    archive: Archiving


@dataclass(frozen=True)
class FileNotified(Event):
    """What became of the notice of an accepted file at the webhook. given_up: why; None: it was taken."""

    notice_id: str
    given_up: str | None = None


@dataclass(frozen=True)
class FileFailed(PartitionEvent):
    """The target refused a file, or did not accept it within the retry budget; `receipt.failure` says why."""

    receipt: Receipt


@dataclass(frozen=True)
class FilePassedOver(PartitionEvent):
    """The target refused a file for what is in it; its records are diverted. `receipt.passed_over` says why."""

    receipt: Receipt


@dataclass(frozen=True)
class RecordsSetAside(PartitionEvent):
    """Records of a range that have no row are kept in the dead-letter topic, or parked: from offset first to last.

    stages: how many at which stage. reason: why the first one has no row. place: where they are, in words.
    dead_letters: whether that is a topic.
    """

    count: int
    first: int
    last: int
    stages: Mapping[str, int]
    reason: str
    place: str = ""
    dead_letters: bool = False


@dataclass(frozen=True)
class RecordsDelivered(PartitionEvent):
    """Records that went nowhere in files: a record sink took them durably, or brokers have a source's.

    first, last: their offsets in the topic-partition. place: where they are, in words.
    """

    records: int
    first: int
    last: int
    place: str


@dataclass(frozen=True)
class RangeFlushed(PartitionEvent):
    """All of a range [start, end) is accepted, or has no row. records, rows, size_bytes: sums over its files.

    records: also those without a file. read: records that Kafka had. gaps: offsets at which it had none.
    """

    start: int
    end: int
    files: int
    records: int
    rows: int
    size_bytes: int
    read: int = 0
    gaps: int = 0


@dataclass(frozen=True)
class RangePostponed(PartitionEvent):
    """A range is accepted up to `accepted_until`; the rest is tried again in `wait_s` seconds.

    attempts: made so far at the first file that is not accepted, or at transforming, within `elapsed_s` seconds.
    trying: which of the two. answers: to the attempts at that file that were made this time.
    reason: what came of the last one, where that is known.
    """

    start: int
    end: int
    accepted_until: int
    attempts: int
    elapsed_s: float
    wait_s: float
    trying: Trying = Trying.UPLOAD
    answers: tuple[AttemptCount, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class RangeFailed(PartitionEvent):
    """A range is accepted up to `accepted_until`, and the connector's query ends because of `failure`."""

    start: int
    end: int
    accepted_until: int
    failure: Failure


@dataclass(frozen=True)
class SourcePolled(Event):
    """A task of a source gave records, and all of them are acknowledged, or were passed over.

    first_fault: why the first could not be sent. polls: how often it was asked, for `polls_s` seconds, `longest_poll_s`
    at most.
    """

    task: int
    polled: int
    passed_over: int
    first_fault: str
    polls: int
    polls_s: float
    longest_poll_s: float


@dataclass(frozen=True)
class OffsetCommitted(PartitionEvent):
    """Everything below `next_offset` was delivered, and the consumer group says so."""

    next_offset: int


@dataclass(frozen=True)
class OffsetsPassedOver(PartitionEvent):
    """What offsets [start, end) held is gone, was never delivered, and the connector goes on without it.

    Where nobody knows how many there were, the end is the start. cause: in one word.
    """

    start: int
    end: int
    cause: LossCause


@dataclass(frozen=True)
class PartitionUnavailable(PartitionEvent):
    """It has no leader, or one that does not answer, while others do."""

    reason: str


@dataclass(frozen=True)
class PartitionAvailable(PartitionEvent):
    """It answers again."""


@dataclass(frozen=True)
class TopicsMissing(Event):
    """Of the topics that a connector names these are not there; the others go on. None: all are there again.

    unmatched: its pattern, while no topic matches it.
    """

    topics: tuple[str, ...] = ()
    unmatched: str = ""


@dataclass(frozen=True)
class FlushIntervalExceeded(Event):
    """So many topic-partitions of a micro-batch had waited for more than twice the flush interval, up to waited_s.

    partitions: 0 when that is over. batch_ranges, batch_s: the micro-batch before, for which they waited. idle_s: since
    that was done, where they waited for Spark to ask for the next, as with a trigger longer than the interval; else 0.
    """

    partitions: int
    waited_s: float
    interval_s: float
    batch_ranges: int
    batch_s: float
    idle_s: float = 0.0

    @property
    def described(self) -> str:
        """In words, with what helps."""
        several = "" if self.partitions == 1 else "s"
        waited = (
            f"the flush interval of {self.interval_s:g} s is exceeded: {self.partitions:,} topic-partition{several} "
            f"waited up to {self.waited_s:.1f} s to be flushed. "
        )
        if self.idle_s:
            return (
                f"{waited}Spark asked for the next micro-batch {self.idle_s:.1f} s after the one before was done. In a "
                f"PySpark program give the query a trigger of {self.interval_s:g} s or less, or raise the interval; "
                "else look at what keeps the machine busy."
            )
        return (
            f"{waited}The micro-batch before flushed {self.batch_ranges:,} "
            f"topic-partition{'' if self.batch_ranges == 1 else 's'} in {self.batch_s:.1f} s. Raise the interval, or "
            "give more Spark slots (--master, tasks.max) or cores; if uploads take long, look at the target."
        )


@dataclass(frozen=True)
class ConnectorStarting(Event):
    """Nothing is known yet of its topic-partitions."""


@dataclass(frozen=True)
class ConnectorRunning(Event):
    """A broker answered, and it is known where its topic-partitions start."""


@dataclass(frozen=True)
class ConnectorWaiting(Event):
    """No broker answers; it goes on by itself when one does."""

    reason: str


@dataclass(frozen=True)
class ConnectorRestarting(Event):
    """Its query ended, and is started again in `wait_s` seconds. reason: in words."""

    reason: str
    wait_s: float


@dataclass(frozen=True)
class ConnectorStopping(Event):
    """A stop was asked for; the flush in progress is finished first."""


@dataclass(frozen=True)
class ConnectorStopped(Event):
    """It has ended as it should."""


@dataclass(frozen=True)
class ConnectorFailed(Event):
    """It has ended, and its operator must do something."""

    failure: Failure


@dataclass(frozen=True)
class EventsDropped(Event):
    """The event log is bounded, and so many events were dropped from it before they were read."""

    count: int


def _kinds(base: type[Event]) -> Iterator[type[Event]]:
    """The classes below it that no other is based on."""
    for one in base.__subclasses__():
        yield from _kinds(one) if one.__subclasses__() else (one,)


TYPES: Final[dict[str, type[Event]]] = {one.__name__: one for one in _kinds(Event)}


def event_from_json(text: str) -> Event:
    """The inverse of `Event.to_json`. Raises ValueError, KeyError or TypeError for anything else."""
    fields: dict[str, Any] = json.loads(text)
    kind = TYPES[fields.pop("type")]
    if "receipt" in fields:
        fields["receipt"] = Receipt.from_dict(fields["receipt"])
    if "archive" in fields:
        fields["archive"] = Archiving(**fields["archive"])
    if "failure" in fields:
        fields["failure"] = Failure.from_dict(fields["failure"])
    if "answers" in fields:
        fields["answers"] = tuple(map(AttemptCount.from_dict, fields["answers"]))
    if "topics" in fields:
        fields["topics"] = tuple(fields["topics"])
    if "trying" in fields:
        fields["trying"] = Trying(fields["trying"])
    if "cause" in fields:
        fields["cause"] = LossCause(fields["cause"])
    return kind(**fields)
