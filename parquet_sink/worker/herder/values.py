"""What a worker reports of its connectors, in Kafka Connect's words."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final


class State(StrEnum):
    """What a connector or task does now. Clients know these and no others; a task is never STOPPED."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    UNASSIGNED = "UNASSIGNED"
    RESTARTING = "RESTARTING"


class TargetState(StrEnum):
    """What a connector is to do: it is stored, and outlives the worker."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True)
class TaskStatus:
    """One task. worker_id: host and port of the worker's REST API. trace: why it failed; empty when it did not."""

    id: int
    state: State
    worker_id: str
    trace: str = ""


@dataclass(frozen=True)
class ConnectorStatus:
    """A connector and its tasks; none while it is stopped. trace: as of a task.

    waits_for: what heals and is waited for, in words with the time of the next try, or what is done before it runs;
    empty when nothing is. It goes with RUNNING, RESTARTING or UNASSIGNED.
    """

    name: str
    state: State
    worker_id: str
    tasks: tuple[TaskStatus, ...]
    trace: str = ""
    waits_for: str = ""


@dataclass(frozen=True)
class ConnectorInfo:
    """config: as it was given, placeholders unresolved, passwords in the clear. tasks: how many.

    warnings: of the configuration, each as `Warning [key]. reason`.
    """

    name: str
    config: Mapping[str, str]
    tasks: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class AssignedConnector:
    """A connector of one worker. reason: why it is there, in words. since_ms: epoch milliseconds.

    waits_for: the worker that has yet to release it; empty for none.
    """

    name: str
    reason: str = ""
    since_ms: int = 0
    waits_for: str = ""


@dataclass(frozen=True)
class WorkerInfo:
    """One worker of a group. url: of its REST API. since_ms: when it joined, epoch milliseconds."""

    worker_id: str
    url: str
    leads: bool
    since_ms: int
    connectors: tuple[AssignedConnector, ...]


@dataclass(frozen=True)
class HoldingWorker:
    """A worker that has a connector, or has a folder of it. answers: whether it is in the group now."""

    worker_id: str
    runs: bool
    answers: bool


@dataclass(frozen=True)
class Workers:
    """Who has which connectors. epoch: counts assignments. at_ms: when this one was made, epoch milliseconds.

    waiting: connectors that no worker has. group: `group.id`; empty for a worker that is alone. warnings: what is odd
    about the group, with the cure.
    """

    epoch: int
    at_ms: int
    workers: tuple[WorkerInfo, ...]
    waiting: tuple[str, ...] = ()
    group: str = ""
    warnings: tuple[str, ...] = ()


TOPIC: Final = "kafka_topic"
PARTITION: Final = "kafka_partition"
OFFSET: Final = "kafka_offset"
"""Fields of a sink's offsets: of a topic-partition the next offset in the connector's group."""


@dataclass(frozen=True)
class StoredOffset:
    """Where a connector stands, as Kafka Connect's JSON has it: a mapping of its own kind to another.

    offset: None: there is none, or it is to be removed. end: where a sink's topic-partition ends now, exclusive; None
    where that is not known, or is not asked.
    """

    partition: Mapping[str, Any]
    offset: Mapping[str, Any] | None
    end: int | None = None


@dataclass(frozen=True)
class PartitionProgress:
    """lag: records. oldest_s: age of the oldest unflushed record, in seconds; None when nothing waits.

    held_at: the first offset that an open transaction holds back, held_s: for how long; None when none does.
    """

    topic: str
    partition: int
    lag: int
    oldest_s: float | None
    records_per_s: float
    away: bool
    held_at: int | None = None
    held_s: float | None = None


@dataclass(frozen=True)
class LastUpload:
    """The last file of a connector that was accepted, or the last records without one; then size_bytes is 0.

    last_offset: inclusive. at_s: epoch seconds.
    """

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    rows: int
    size_bytes: int
    at_s: float


@dataclass(frozen=True)
class LastError:
    """What went wrong last, with its cure in the message. at_s: epoch seconds.

    healed_s: since when it is over, likewise; None while it is not, or where that is not known.
    """

    message: str
    at_s: float
    healed_s: float | None = None


@dataclass(frozen=True)
class Flushing:
    """What a connector's micro-batch that runs has taken: it is done as a whole. since_s: epoch seconds."""

    partitions: int
    records: int
    since_s: float


class WarningKind(StrEnum):
    """What a connector is warned of while it runs."""

    FLUSH_INTERVAL_EXCEEDED = "flush_interval_exceeded"
    NO_TOPIC_MATCHES = "no_topic_matches"
    HELD_BACK = "held_back"
    PLANNER_SILENT = "planner_silent"


@dataclass(frozen=True)
class LiveWarning:
    """What goes on now, is no failure, and is not waited for. message: it begins in lower case, and says what helps."""

    kind: WarningKind
    message: str


@dataclass(frozen=True)
class ConnectorProgress:
    """How a connector stands, beyond what Kafka Connect reports. records: delivered without a file.

    archived, not_archived: accepted files since the start that went to the archive, or will not, as far as that was
    known when they were accepted. archive_waiting: files that wait for it now. kind: sink or source. missing_topics:
    those that it names and that are not there, as far as is known. warnings: of its configuration, as of
    `ConnectorInfo`. live_warnings: what goes on now. flushing: None between two micro-batches. planner_silent_s: how
    long ago its planner looked last; None while a micro-batch runs, or it does not.
    """

    status: ConnectorStatus
    files: int
    rows: int
    size_bytes: int
    set_aside: int
    last_upload: LastUpload | None
    last_error: LastError | None
    partitions: tuple[PartitionProgress, ...]
    records: int = 0
    archived: int = 0
    not_archived: int = 0
    archive_waiting: int = 0
    kind: str = "sink"
    missing_topics: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    flushing: Flushing | None = None
    live_warnings: tuple[LiveWarning, ...] = ()
    planner_silent_s: float | None = None


class FlushState(StrEnum):
    """What became of a flush, or of one topic-partition in it.

    WAITING: something has yet to go out. DONE: all that waited is accepted and committed; GONE: its topic-partition is
    not there, or not any more. LOST: the connector was started again or moved meanwhile, and nobody follows it.
    """

    WAITING = "waiting"
    DONE = "done"
    GONE = "gone"
    LOST = "lost"


@dataclass(frozen=True)
class FlushedPartition:
    """Offsets [start, until) waited when the flush was seen; all below `reached` is accepted and committed.

    until: None while that is not known, because the topic-partition is unavailable. files, rows, size_bytes: of
    accepted files that have such offsets. records: that went out without a file.
    """

    topic: str
    partition: int
    start: int
    until: int | None
    reached: int
    state: FlushState
    files: int = 0
    rows: int = 0
    size_bytes: int = 0
    records: int = 0


@dataclass(frozen=True)
class FlushReport:
    """partitions: empty until the connector has seen the request. waits_for: what it waits for, in words, if known."""

    id: str
    connector: str
    state: FlushState
    partitions: tuple[FlushedPartition, ...] = ()
    waits_for: str = ""

    @property
    def files(self) -> int:
        return sum(one.files for one in self.partitions)
