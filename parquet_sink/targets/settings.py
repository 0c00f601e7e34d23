"""What a target and a record sink are set up with, what a target does with a file, when uploads are tried again.

The push API is a target, a folder another. It hands over one file once, and says what that came to; order, retries and
receipts are the same for all of them (`targets.uploader`, `targets.retry`). Durations are milliseconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol

from parquet_sink.config.declared import Milliseconds, declared, key
from parquet_sink.config.key import Origin, ems
from parquet_sink.targets.outcome import Outcome, ProbeResult

if TYPE_CHECKING:  # these load Arrow, and planners know settings alone
    from parquet_sink.files.accumulator import FinishedFile
    from parquet_sink.model.records import RecordParts
    from parquet_sink.targets.record_sink import RecordSink

ERRORS: Final = "Errors and retries"
ErrorPolicy = Literal["THROW", "RETRY", "CONTINUE"]


class Target(Protocol):
    """Takes files of one connector; threads may share it.

    It may also have `probe_topic(topic, table, seconds_left)`, see the function of that name.
    """

    @property
    def name(self) -> str:
        """Where files go, for a message: an address or a folder, without secrets."""
        ...

    def push(self, file: "FinishedFile", seconds_left: float) -> Outcome:
        """One attempt to hand over a file under its name, within so many seconds.

        ACCEPTED only when the target has the whole file durably. A file of the same name and content that is there
        already is accepted; one of another content is never silently replaced by half of this one. Leaves the local
        file alone. Raises StorageFailed when the local file cannot be read, and nothing else on purpose.
        """
        ...

    def probe(self, seconds_left: float) -> ProbeResult:
        """Tries whether files would be taken, within so many seconds. Stores nothing. Raises nothing on purpose."""
        ...

    def close(self) -> None:
        """Lets go of what is open. May be called twice."""
        ...


class TargetSettings(Protocol):
    """What one target is set up with: a frozen dataclass, handed over by value, that opens its target.

    target_table: what the target makes of the files, for messages. Settings may also have, each read by a function
    below: `address`, `place`, `told_by_address`, `problems(environment)`, `problems_may_pass`, `longest_name`,
    `needs_timestamp`, `read_outs`.
    """

    @property
    def target_table(self) -> str: ...

    def open(self) -> Target:
        """A target of its own for the caller, who closes it.

        Raises InvalidConfiguration for what cannot be used, SetupError where a package is not installed.
        """
        ...


OtherTargetSettings = TargetSettings
"""The former name."""


def address_of(target: TargetSettings) -> str:
    """Where files go, without secrets; of settings without an address the name of their class."""
    return str(getattr(target, "address", type(target).__name__))


def place_of(target: TargetSettings) -> str | None:
    """What the addresses of all files begin with; None where files have none."""
    return getattr(target, "place", None)


def told_by_address(target: TargetSettings) -> bool:
    """Whether an address tells where rows go, and not the name of a table."""
    return bool(getattr(target, "told_by_address", False))


def problems_of(target: TargetSettings, environment: Mapping[str, str]) -> Iterable[str]:
    """What is wrong as far as it can be told without connecting or writing, each as `Invalid [key]. reason; cure`."""
    problems = getattr(target, "problems", None)
    return () if problems is None else problems(environment)


def may_pass(place: object) -> bool:
    """Return True if the problems of a target, an archive or a record sink may pass: a folder may be mounted again."""
    return bool(getattr(place, "problems_may_pass", False))


def longest_name(place: object) -> int | None:
    """Return how many bytes the name of a file may have at a target or an archive; None without a known bound."""
    return getattr(place, "longest_name", None)


def probe_topic(target: Target, topic: str, table: str, seconds_left: float) -> ProbeResult:
    """As `Target.probe`, where a target has it as for a file of this topic and table. topic: empty for none."""
    tried = getattr(target, "probe_topic", None)
    if tried is None or not topic:
        return target.probe(seconds_left)
    result: ProbeResult = tried(topic, table, seconds_left)
    return result


def needs_timestamp(target: TargetSettings) -> str:
    """The key and value by which names of files need the timestamp of a first record; empty where they do not."""
    return str(getattr(target, "needs_timestamp", ""))


@declared(group=ERRORS, origin=Origin.EMS)
class RetrySettings:
    """When an upload is tried again. max_retries: attempts in all. put_timeout_ms: for a file with all attempts."""

    error_policy: ErrorPolicy = key(
        ems("error.policy"),
        "What to do when an upload fails. What may pass (no connection, no answer, 408, 429, 5xx) is tried again under "
        "all three, up to `connect.ems.max.retries` attempts and `connect.ems.sink.put.timeout.ms`, and then stops the "
        "connector. A file that the target refuses stops it at once under `THROW`, and is tried again likewise under "
        "`RETRY`. Under `CONTINUE` the records of a file that is refused for what is in it are diverted, as records "
        "that have no row are, and the next file goes on; a wrong key stops the connector all the same. See "
        "[errors.md](../how-to/errors.md).",
        default="THROW",
    )
    max_retries: int = key(
        ems("max.retries"), "Attempts to upload one file, the first one included.", default=10, minimum=1
    )
    retry_interval_ms: Milliseconds = key(
        ems("retry.interval"),
        "Milliseconds before the second attempt; the pause doubles with each attempt, up to 5 minutes, varied at "
        "random. What the target asks for in `Retry-After`, or with a 429 in `x-ratelimit-reset`, is honoured, up to "
        "the same bound.",
        default=60_000,
        minimum=1_000,
    )
    put_timeout_ms: Milliseconds = key(
        ems("sink.put.timeout.ms"),
        "Bound on the upload of one file with all its attempts and pauses, in milliseconds.",
        default=288_000,
        minimum=1,
    )


class RecordSinkSetup(Protocol):
    """What a record sink is set up with: a frozen dataclass, handed to Spark's processes by value.

    address: where records go, in words, without secrets. needs: what of a record it looks at beside its value.
    """

    @property
    def address(self) -> str: ...
    @property
    def needs(self) -> "RecordParts": ...

    def problems(self) -> Sequence[str]:
        """What is wrong as far as it can be told without writing, each as `Invalid [key]. reason; cure`."""
        ...

    def probe(self, seconds_left: float) -> ProbeResult:
        """Tries whether records would be taken, within so many seconds. Stores nothing. Raises nothing on purpose."""
        ...

    def open(self) -> "RecordSink":
        """A sink of its own for the caller, who closes it. Raises as `RecordSink.put`."""
        ...
