"""What is common to the settings of all connectors: what runtime, REST API and checks need of any of them.

Each kind has a dataclass of its own, which implements this: sinks that write Parquet files
(`settings.sink.SinkSettings`), sinks that take records (`settings.record_sink.RecordSinkSettings`), and sources
(`addons.sources.settings.SourceSettings`). What differs between kinds is behind `connectors.kinds.ConnectorKind`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, Protocol, Self, TypeVar

from parquet_sink.config.declared import Milliseconds, declared, filled_by, key
from parquet_sink.config.key import Origin, ems
from parquet_sink.config.values import Values
from parquet_sink.kafka.settings import (
    SET_ASIDE,
    DeadLetterSettings,
    FlushSettings,
    KafkaSettings,
    Ownership,
    PlanningSettings,
)
from parquet_sink.targets.settings import ERRORS
from parquet_sink.transform.settings import StepSettings

TOLERANCE: Final = "errors.tolerance"
LOG: Final = "errors.log.enable"
LOG_CONTENT: Final = "errors.log.include.messages"
POLICY: Final = ems("error.policy")
INVALID: Final = ems("error.policy.continue.on.invalid.input")

ConnectorType = Literal["sink", "source"]
"""In Kafka Connect's words."""


def _continues(values: Values) -> bool:
    """By a key of the EMS connector, where a class has it."""
    return values.knows(POLICY) and values.text(POLICY) == "CONTINUE"


def tolerates(values: Values) -> bool:
    """Whether records without a row are passed over: by Kafka Connect's key, or one of the EMS connector."""
    return values.text(TOLERANCE) == "all" or _continues(values) or (values.knows(INVALID) and values.flag(INVALID))


@declared(group=SET_ASIDE, origin=Origin.CONNECT)
class ErrorSettings:
    """What becomes of records that have no row, and of files that the target refuses.

    invalid_records, refused_files: whether they are passed over; else the connector fails. What is passed over is set
    aside: in the dead-letter topic, if there is one, else in parked files. log: a log line tells of each, as far as
    there are not too many; log_content: with key, value and headers.
    """

    invalid_records: bool = key(
        TOLERANCE,
        "`none`: the connector stops at the first record that has no row, and names it; all before it is delivered. "
        "`all`: such records are diverted, wherever they fail, and the connector goes on: to the dead-letter topic, "
        "or to parked files where none is named. See [errors.md](../how-to/errors.md) for what is never diverted.",
        default=False,
        absent="none",
        type_=Literal["none", "all"],
        computed=lambda values, machine: tolerates(values),
    )
    refused_files: bool = filled_by(POLICY, default=False, computed=lambda values, machine: _continues(values))
    dead_letters: DeadLetterSettings | None = None
    log: bool = key(
        LOG,
        "A log line for each record that has no row: stage, class, topic, topic-partition, offset, timestamp, reason; "
        "100 at once and 10 a second, and how many more there were. What stops the connector is always logged, and so "
        "is, for each range of offsets, how many records were diverted.",
        default=False,
    )
    log_content: bool = key(
        LOG_CONTENT,
        "Such a log line has key, value and headers, too, up to 1,000 characters each. Kafka Connect never logs them "
        "for sinks; they may be secret.",
        default=False,
        needs=LOG,
        computed=lambda values, machine: values.flag(LOG) and values.flag(LOG_CONTENT),
    )

    @property
    def parks(self) -> bool:
        """Whether anything may be passed over that goes to no dead-letter topic: it is parked in files."""
        return (self.invalid_records or self.refused_files) and self.dead_letters is None


@declared(group=ERRORS, origin=Origin.OWN)
class RestartSettings:
    """How a connector that failed for a reason that may pass is started again."""

    most: int = key(
        ems("restart.max"),
        "How often a connector that failed for a reason that may pass (a lost Spark worker, no answer from Kafka in "
        "the middle of a range) is started again without progress, before it fails; `-1` without end.",
        default=5,
        minimum=-1,
    )
    pause_ms: Milliseconds = key(
        ems("restart.interval.ms"),
        "The pause before the first such start, in milliseconds. The n-th without progress is n times as long, up to "
        "`connect.ems.restart.interval.max.ms`.",
        default=2_000,
        minimum=100,
    )
    longest_ms: Milliseconds = key(
        ems("restart.interval.max.ms"),
        "The longest such pause, also of those below `connect.ems.away.timeout.ms`, in milliseconds.",
        default=60_000,
        minimum=100,
    )
    away_ms: Milliseconds = key(
        ems("away.timeout.ms"),
        "How long brokers that do not answer, and in a worker a config provider or a folder that is unavailable when a "
        "stored connector is to start, are waited for before the connector fails, in milliseconds; `-1` without end. "
        "At the start of `run` without `listeners` brokers are waited for as long as `default.api.timeout.ms` says, a "
        "minute by default.",
        default=-1,
        minimum=-1,
    )


class ConnectorSettings(Protocol):
    """One connector, ready to run. Durations are milliseconds.

    kind: its name in the registry. group: the consumer group, which no two connectors may share; None for a source.
    tasks_max: None leaves the number to Spark. tmp_dir: where its folder, lock and state are. flush_interval_ms: the
    age at which records are due; None where nothing waits. stop_timeout_ms: how long a stop waits for the flush in
    progress. restart: what follows a failure that may pass. registry_patience_ms: how long a registry, or what a
    transform or a record sink needs, may stay unavailable, -1 for ever; registry_pause_ms: the longest between tries.
    of_files: whether what it delivers is counted in files, and not in records. makes_topics: those that a source sends
    to, as far as that is known before; the first record makes them where brokers do that.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def group(self) -> str | None: ...
    @property
    def tasks_max(self) -> int | None: ...
    @property
    def tmp_dir(self) -> str: ...
    @property
    def flush_interval_ms(self) -> int | None: ...
    @property
    def stop_timeout_ms(self) -> int: ...
    @property
    def restart(self) -> RestartSettings: ...
    @property
    def registry_patience_ms(self) -> int: ...
    @property
    def registry_pause_ms(self) -> int: ...
    @property
    def of_files(self) -> bool: ...
    @property
    def makes_topics(self) -> tuple[str, ...]: ...
    @property
    def transforms(self) -> tuple[StepSettings, ...]: ...

    def with_transforms(self, steps: tuple[StepSettings, ...]) -> Self:
        """The same with these transforms."""
        ...

    def summary(self) -> str:
        """From where to where, in a few words: `orders -> table ORDERS`."""
        ...

    def description(self, *, keys: bool, headers: bool) -> Sequence[str]:
        """What happens to a record, in order: a line for each step. keys, headers: whether transforms look at them."""
        ...


S = TypeVar("S", bound=ConnectorSettings)


def with_cluster(
    settings: S, *, fence: str | None = None, lease: str | None = None, state_topic: str | None = None
) -> S:
    """The same, of a connector that other workers may have had, and may get: see `kafka.settings.Ownership`.

    A kind whose settings have no `with_ownership` is left as it is: nothing keeps two workers from running it at once
    while one of them has lost its session and does not know.
    """
    give = getattr(settings, "with_ownership", None)
    found: S = settings if give is None else give(Ownership(fence, lease, state_topic))
    return found


class TopicSettings(ConnectorSettings, PlanningSettings, Protocol):
    """Of a sink of either kind: it reads topics, and what it delivered is committed to its group."""

    @property
    def errors(self) -> ErrorSettings: ...


class TopicSinkSettings:
    """What follows from settings that sinks of either kind have: they read topics, and are in a group."""

    kafka: KafkaSettings
    flush: FlushSettings
    restart: RestartSettings
    transforms: tuple[StepSettings, ...]

    def with_transforms(self, steps: tuple[StepSettings, ...]) -> Self:
        """The same with these transforms."""
        return replace(self, transforms=steps)  # type: ignore[type-var]

    def with_ownership(self, owned: Ownership) -> Self:
        """The same, owned so."""
        return replace(self, kafka=replace(self.kafka, owned=owned))  # type: ignore[type-var]

    @property
    def group(self) -> str:
        """The consumer group."""
        return self.kafka.group

    @property
    def tasks_max(self) -> int | None:
        """The most Spark tasks at once; None leaves the number to Spark."""
        return self.kafka.tasks_max

    @property
    def flush_interval_ms(self) -> int:
        """The age at which records are due."""
        return self.flush.commit_interval_ms

    @property
    def makes_topics(self) -> tuple[str, ...]:
        """It only reads."""
        return ()

    @property
    def away_timeout_ms(self) -> int:
        """How long brokers that do not answer are waited for; -1 without end."""
        return self.restart.away_ms
