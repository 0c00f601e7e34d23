"""What a sink runs from, made by its connector class from a connector file. Durations are milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from parquet_sink import __version__
from parquet_sink.archive.settings import ArchiveSettings
from parquet_sink.config.declared import Milliseconds, declared, key
from parquet_sink.config.key import Origin, ems
from parquet_sink.config.secret import digest
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.files import naming
from parquet_sink.files.settings import FileSettings
from parquet_sink.history.settings import HistorySettings
from parquet_sink.kafka.settings import DeadLetterSettings, FlushSettings, KafkaSettings
from parquet_sink.parked.settings import ParkedSettings
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.targets.settings import ERRORS, RetrySettings, TargetSettings
from parquet_sink.targets.table_map import MAP_KEY, TableMap
from parquet_sink.task import description
from parquet_sink.transform.settings import StepSettings


@dataclass(frozen=True)
class ErrorSettings:
    """What becomes of records that have no row, and of files that the target refuses.

    invalid_records, refused_files: whether they are passed over; else the connector fails. What is passed over is set
    aside: in the dead-letter topic, if there is one, else in parked files. log: a log line tells of each, as far as
    there are not too many; log_content: with key, value and headers.
    """

    invalid_records: bool = False
    refused_files: bool = False
    dead_letters: DeadLetterSettings | None = None
    log: bool = False
    log_content: bool = False

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
        "How long brokers that do not answer, and in a worker a config provider that does not answer when a stored "
        "connector is to start, are waited for before the connector fails, in milliseconds; `-1` without end. At the "
        "start of `run` without `listeners` brokers are waited for as long as `default.api.timeout.ms` says, a minute "
        "by default.",
        default=-1,
        minimum=-1,
    )


class TopicSinkSettings:
    """What follows from settings that sinks of either kind have: they read topics, and are in a group."""

    kafka: KafkaSettings
    flush: FlushSettings
    restart: RestartSettings

    @property
    def kind(self) -> Literal["sink"]:
        """In Kafka Connect's words."""
        return "sink"

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


@dataclass(frozen=True)
class SinkSettings(TopicSinkSettings):
    """One connector, ready to run.

    tables: of topics; target has that of all others.
    header: of the header converter. transforms: between decoding and shaping, in this order.
    registry_patience_ms: how long a registry, or what a transform needs, may stay away, -1 for ever.
    registry_pause_ms: the longest between tries.
    stop_timeout_ms: how long a stop waits for the flush in progress. restart: what follows a failure that may pass.
    """

    name: str
    kafka: KafkaSettings
    flush: FlushSettings
    shape: ShapeSettings
    files: FileSettings
    target: TargetSettings
    value: ConverterSettings = field(default_factory=ConverterSettings)
    key: ConverterSettings | None = None
    tables: TableMap = field(default_factory=TableMap)
    header: ConverterSettings = field(default_factory=lambda: ConverterSettings("simple_header"))
    transforms: tuple[StepSettings, ...] = ()
    retry: RetrySettings = field(default_factory=RetrySettings)
    errors: ErrorSettings = field(default_factory=ErrorSettings)
    parked: ParkedSettings = field(default_factory=ParkedSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    archive: ArchiveSettings | None = None
    restart: RestartSettings = field(default_factory=RestartSettings)
    registry_patience_ms: int = 0
    registry_pause_ms: int = 60_000
    stop_timeout_ms: int = 30_000

    @property
    def tmp_dir(self) -> str:
        """Where the connector's folder is."""
        return self.files.tmp_dir

    @property
    def of_files(self) -> Literal[True]:
        """What it delivers is told in files."""
        return True

    def with_transforms(self, steps: tuple[StepSettings, ...]) -> Self:
        """The same with these transforms."""
        return replace(self, transforms=steps)

    def summary(self) -> str:
        """From where to where, in a few words."""
        return description.summary(self)

    def description(self, *, keys: bool, headers: bool) -> Sequence[str]:
        """What happens to a record, in order: a line for each step. keys, headers: whether transforms look at them."""
        return description.described(self, keys=keys, headers=headers)

    @property
    def parked_folder(self) -> str:
        """Where this connector's parked records are, if it has any."""
        return self.parked.folder(self.files.tmp_dir, self.name)

    @property
    def history_file(self) -> str:
        """Where this connector's history of uploads is, if it has any."""
        return naming.history_file(self.files.tmp_dir, self.name)

    @property
    def set_aside_in(self) -> str:
        """Where records are kept that are set aside, in words."""
        letters = self.errors.dead_letters
        return f"parked in {self.parked_folder}" if letters is None else f"dead letters in topic {letters.topic}"

    def table_of(self, topic: str) -> str:
        """The table that a topic's files go to."""
        return self.tables.table(topic) or self.target.target_table

    def why_unusable(self, topic: str) -> str | None:
        """Why a topic cannot be read, with the cure; None when it can."""
        reason = self.tables.why_unusable(topic)
        return None if reason is None else f"Invalid [{MAP_KEY}]. {reason}"

    @property
    def fingerprint(self) -> str:
        """Stands for the settings, and the version, that the files of a range depend on.

        Of secrets those that change what is in a file: salts and keys of obfuscation, all of a user's own classes.
        """
        limits = (self.flush.commit_size_bytes, self.flush.commit_records)
        files = (self.files.codec, self.files.row_group_size_bytes, self.errors.invalid_records)
        converters = [(repr(one), one and one.own) for one in (self.value, self.key, self.header)]
        return digest(__version__, self.shape, converters, limits, files, self.transforms)
