"""The tree of errors. Each branch says what its reader must do.

    SinkError
    ├── InvalidConfiguration     fix the configuration          (exit status 2)
    ├── SetupError               install or reach what is named (exit status 2)
    ├── NoSuchRecord             a command names a record that is not there (exit status 2)
    ├── NothingSampled           there is nothing to tune by: no records, no history (exit status 2)
    ├── NotVerified              a target did not say what it has (exit status 1)
    ├── HistoryUnusable          the history of uploads cannot be read or written: nothing else is lost (exit status 1)
    ├── ArchiveUnusable          the archive cannot be read (exit status 1)
    ├── WorkerRefused            a worker did not do what it was asked for over HTTP, or was silent (exit status 1)
    ├── DemoFailed               the demo did not get to its proof (exit status 1)
    └── ConnectorError           the connector stops            (exit status 1)
        ├── InvalidRecord        fix the file or the producer, or skip the offset by resetting the group
        ├── UploadError
        │   ├── UploadRefused    the target said no: fix the cause, start again
        │   ├── UploadExhausted  the target could not be reached, or did not answer, within the retry budget
        │   └── UploadPostponed  not accepted yet: the driver plans the next attempt
        ├── OffsetsLost          Kafka deleted records before they were read
        ├── TransactionOpen      records stayed behind an open transaction: end it, run again
        ├── TopicUnusable        the settings have no place for a topic that was found: correct them
        ├── AnotherInstance      the same connector runs elsewhere
        ├── KafkaFailed          the broker refused or stayed away
        │   ├── BrokerAway       no answer in time; it may come back
    │   │   └── LeaseLost    nor does this worker know whether the connector is still its own
        │   ├── BrokersGone      no answer for as long as the settings wait
        │   ├── KafkaRefused     the broker says no, and would say so again: fix the cause, start again
        │   └── TopicGone        a topic is not there, or not any more: make it, or correct the connector's topics
        ├── RegistryFailed       the schema registry refused or stayed away
        │   └── RegistryAway     no answer in time, or trouble of its own; it may come back
        ├── ConverterFailed      a converter of a user's own could not do its work, and no record is to blame
        ├── RecordSinkFailed     a record sink could not take records, and no record is to blame
        ├── TransformFailed      a transform could not do its work, and no record is to blame
        │   └── RetryLater       what a transform needs is away; it may come back
        ├── SourceFailed         what a source reads from cannot be used, or its task failed
        │   ├── WrongPlace       a source cannot go on from a position that somebody wants to set
        │   └── SourceAway       what a source reads from is away; it may come back
        ├── StorageFailed        a folder of ours cannot be used
        │   ├── RunFilesLost     somebody removed what a running connector uses; it is made again
        │   └── ParkedFull       what was passed over takes all the room it may: mend the cause and replay it
        ├── MachineBusy          Spark could not start a process in time; it may the next time
        └── Defect               nobody raised it on purpose: a lost worker, a full heap, a bug

What the program does about an error is in its class: `reaction`. No other module decides by the name of an error.
Messages are for an operator: what happened, where (topic, topic-partition, offset or key), and the cure.
Which topic-partition failed, where it is only one, is a field of the error, which `ConnectorError.at` fills.
No message ever holds a secret. All errors survive pickling. Between processes they cross as a `Failure`, which
`SinkError.failure` makes; `failure_named` makes it from the text in which Spark passes an exception on.
"""

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import ClassVar, Final, Self

from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import NO_TRIES, Again, AttemptCount
from parquet_sink.model.receipts import FATAL, Failure, Reaction, Restart

RESET_TOOL: Final = "kafka-consumer-groups (or: parquet-sink kafka --tool consumer-groups)"
"""What moves a group's offsets, for messages that cannot have the whole command (`kafka.resets`)."""


def install(extra: str) -> str:
    """How to install an extra, for messages. No package index has the package, so an index is not what pip may ask."""
    return f"Install the extra '{extra}' from your copy of the repository: pip install '.[{extra}]'"


_TO_PASS: Final = " Or set errors.tolerance=all: then such records are diverted, and the connector goes on."


class SinkError(Exception):
    """Base of everything this program raises on purpose."""

    exit_status: ClassVar[int] = 1
    reaction: ClassVar[Reaction] = FATAL

    def failure(self) -> Failure:
        """This error by value."""
        return Failure(type(self).__name__, str(self), self.reaction)


class InvalidConfiguration(SinkError):
    """One or more keys are wrong; `problems` has one line for each."""

    exit_status = 2

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(self.problems)


class SetupError(SinkError):
    """Something this program needs on the machine is missing (Java, the registry, a folder)."""

    exit_status = 2


class NoSuchRecord(SinkError):
    """The record that a command names is not there; the message says what is."""

    exit_status = 2


class NothingSampled(SinkError):
    """Nothing is known of what topics get, so nothing can be said; the message says what to do instead."""

    exit_status = 2


class NotVerified(SinkError):
    """A target that could say what it has did not, so nothing is proven; the message says what it did instead."""


class HistoryUnusable(SinkError):
    """The history of uploads cannot be read or written. damaged: what is in the file is no history of this version."""

    def __init__(self, message: str, damaged: bool = False) -> None:
        super().__init__(message, damaged)
        self.message, self.damaged = message, damaged

    def __str__(self) -> str:
        return self.message


class ArchiveUnusable(SinkError):
    """An archive cannot be read; the message names it, and where to look."""


class WorkerRefused(SinkError):
    """A worker said no to a request, or nothing. status: of its answer, None when none came."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message, status)
        self.message, self.status = message, status

    def __str__(self) -> str:
        return self.message


class DemoFailed(SinkError):
    """A part of the demo ended too early or took too long; the message ends with that part's last words."""


class ConnectorError(SinkError):
    """The connector cannot go on; offsets are committed up to the last accepted file and no further."""

    topic_partition: PartitionKey | None = None

    def at(self, topic_partition: PartitionKey | None) -> Self:
        """This error, of one topic-partition: the others may go on."""
        self.topic_partition = topic_partition
        return self

    def failure(self) -> Failure:
        return replace(super().failure(), topic_partition=self.topic_partition)


class InvalidRecord(ConnectorError):
    """A record that has no row: names topic, topic-partition, offset and reason, never the content.

    may_pass: whether settings could have such a record set aside. command: what passes it; empty: nobody knows whole.
    next_offset: after it, where it stands for several records; else 0.
    """

    reaction = Reaction(delivers_before=True)

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        reason: str,
        may_pass: bool = True,
        command: str = "",
        next_offset: int = 0,
    ) -> None:
        super().__init__(topic, partition, offset, reason, may_pass, command, next_offset)
        self.topic_partition = topic, partition
        self.topic, self.partition, self.offset, self.reason = topic, partition, offset, reason
        self.may_pass, self.command, self.next_offset = may_pass, command, next_offset or offset + 1

    def __str__(self) -> str:
        return (
            f"topic {self.topic}, topic-partition {self.partition}, offset {self.offset}: {self.reason}. "
            "Everything before this record is delivered and committed. Correct the connector file if it asks for "
            "something else than the record has; otherwise correct the producer, then pass the record by resetting "
            f"the group's offset to {self.next_offset} with {self.command or RESET_TOOL}."
            f"{_TO_PASS if self.may_pass else ''}"
        )


class UploadError(ConnectorError):
    """A file was not accepted. `status` is the HTTP status, None when no answer came.

    tries: made at the file, in all. answers: to those of them that were made in this Spark task.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message, status)
        self.message, self.status = message, status
        self.again: Again | None = None
        self.tries = NO_TRIES
        self.answers: tuple[AttemptCount, ...] = ()

    def __str__(self) -> str:
        return self.message

    def failure(self) -> Failure:
        return replace(super().failure(), status=self.status, again=self.again)


class UploadRefused(UploadError):
    """The target answered that it will not take the file, and would answer so again.

    of_file: what it said, where it said so for what is in the file, so that another one may be accepted; else None.
    """

    def __init__(self, message: str, status: int | None = None, of_file: str | None = None) -> None:
        super().__init__(message, status)
        self.args = (message, status, of_file)
        self.of_file = of_file


class UploadExhausted(UploadError):
    """The retry budget (attempts or time) ended without an acceptance; the outcome may be unknown."""

    reaction = Reaction(passes=True)


class UploadPostponed(UploadError):
    """The file was not accepted yet, and the next attempt is further away than a Spark task may wait."""

    def __init__(self, message: str, status: int | None, again: Again) -> None:
        super().__init__(message, status)
        self.args = (message, status, again)
        self.again = again


class OffsetsLost(ConnectorError):
    """Retention deleted offsets that were not read yet."""

    reaction = Reaction(delivers_before=True)


class TransactionOpen(ConnectorError):
    """A drain ended while an open transaction of a producer held records back; the message says which."""


class TopicUnusable(ConnectorError):
    """A topic was found whose files cannot go anywhere by the connector's settings; the message names key and cure."""


class AnotherInstance(ConnectorError):
    """A second instance of this connector is at work, or an operator moved the offsets while it ran."""


class KafkaFailed(ConnectorError):
    """A Kafka request failed for good, or longer than the budget allows."""

    reaction = Reaction(Restart.BOUNDED, passes=True)


class BrokerAway(KafkaFailed):
    """No broker answered in time; it may come back, and nothing is lost meanwhile."""


class LeaseLost(BrokerAway):
    """This worker's lease is over: it lost its session with the brokers, and waits to hear what is still its own."""


class BrokersGone(KafkaFailed):
    """No broker answered for as long as `connect.ems.away.timeout.ms` says."""

    reaction = Reaction(passes=True)


class KafkaRefused(KafkaFailed):
    """A broker refused a request, and would refuse it again: rights, versions, limits."""

    reaction = FATAL


class TopicGone(KafkaFailed):
    """A topic or topic-partition is not there; while a connector runs it is let go of, and the others go on."""

    reaction = Reaction(range_again_s=1.0)  # by then the driver knows whether the topic is there


class RegistryFailed(ConnectorError):
    """The schema registry refused us, or did not answer within the budget: no record is to blame."""


class RegistryAway(RegistryFailed):
    """No registry answered in time, or only with trouble of its own; nothing is lost meanwhile."""

    reaction = Reaction(Restart.REGISTRY, passes=True)


class ConverterFailed(ConnectorError):
    """A converter of a user's own failed, and no record is to blame; the message names it by its key and its class."""


class TransformFailed(ConnectorError):
    """A transform or predicate failed, and no record is to blame; the message names it by its name in the file."""


class RetryLater(TransformFailed):
    """Raised by a transform, or a record sink, when what it needs is away and may come back: the records come again.

    How long and how often is for a transform in errors.retry.timeout and errors.retry.delay.max.ms, for a record sink
    in connect.ems.restart.max and connect.ems.restart.interval.ms.
    """

    reaction = Reaction(passes=True, range_retries=True)


class SourceFailed(ConnectorError):
    """A source's task cannot go on, or what it reads from cannot be used; positions stay before what is not sent."""


class WrongPlace(SourceFailed):
    """A position that a source could not begin with; the text is Kafka Connect's."""


class SourceAway(SourceFailed):
    """Raised by a source's task when what it reads from is away and may come back: the connector is started again."""

    reaction = Reaction(Restart.BOUNDED, passes=True)


class RecordSinkFailed(ConnectorError):
    """A record sink could not take records for as long as the settings try; the message has its own words."""

    reaction = Reaction(passes=True)


class StorageFailed(ConnectorError):
    """A local file could not be made, written, read or verified."""


class RunFilesLost(StorageFailed):
    """Files that a running connector's processes share were removed or replaced: what is in them is not believed.

    They are made again, and the query starts again from what is committed.
    """

    reaction = Reaction(Restart.BOUNDED, at_start=True, passes=True)


class ParkedFull(StorageFailed):
    """A record that is to be passed over cannot be kept, because parked records take all the room they may."""


class MachineBusy(ConnectorError):
    """Spark gives its Python processes ten seconds to start, which cannot be set; a busy machine takes longer."""

    reaction = Reaction(Restart.MACHINE, at_start=True, passes=True)


class Defect(ConnectorError):
    """Something that nobody raised on purpose: a lost worker, a full heap, a bug."""

    reaction = Reaction(Restart.BOUNDED, at_start=True, passes=True)


def failure_named(kind: str, message: str) -> Failure:
    """The failure of the error class of this name, or of a `Defect` where there is no such class."""
    reaction = next((one.reaction for one in _classes(SinkError) if one.__name__ == kind), Defect.reaction)
    return Failure(kind, message, reaction)


def _classes(base: type[SinkError]) -> Iterator[type[SinkError]]:
    yield base
    for one in base.__subclasses__():
        yield from _classes(one)


_OURS: Final = PurePath(__file__).parent


def code_place(error: Exception) -> str:
    """What kind of error, and the line of the user's code; its text is nowhere."""
    return f"{type(error).__name__}{_where(error)}"


def _where(error: Exception) -> str:
    """The deepest line in the file that ours called."""
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    foreign = [(name, line) for name, line in places if not PurePath(name).is_relative_to(_OURS)]
    if not foreign:
        return ""
    name, line = [one for one in foreign if one[0] == foreign[0][0]][-1]
    return f" in {PurePath(name).name}, line {line}"
