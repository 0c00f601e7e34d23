"""What a source runs from, made by its connector class from a connector file. Durations are milliseconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal

from parquet_sink.config.secret import Secret
from parquet_sink.convert.settings import KIND_TEXTS, ConverterSettings
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.transform.settings import StepSettings
from parquet_sink.worker_config.worker import OffsetStorageSettings

MAX_REQUEST: Final = "max.request.size"
DEFAULT_MAX_REQUEST: Final = 1_048_576
"""Bytes of a record that Java's producer takes at most, unless it is told otherwise."""


@dataclass(frozen=True)
class SourceSettings:
    """One source, ready to run.

    task: of the class of its tasks, as `module:Class`; tasks: what each of them is told. origin: what is read, in
    words. topics: where records go, as far as that is known before. storage: of its positions; None keeps them for a
    run alone. spool: a file that standard input is copied to, where that is read; else None. producer: settings of
    the client, with Java's names. tolerant: records that cannot be transformed or converted are passed over; log: a
    line tells of each. poll_interval_ms: how often a source is asked that cannot tell whether there is anything new.
    """

    kind: ClassVar[str] = "source"
    name: str
    task: str
    tasks: tuple[Mapping[str, str | Secret], ...]
    origin: str
    topics: tuple[str, ...]
    storage: OffsetStorageSettings | None
    spool: str | None = None
    producer: Mapping[str, str | Secret] = field(default_factory=dict)
    value: ConverterSettings = field(default_factory=ConverterSettings)
    key: ConverterSettings = field(default_factory=ConverterSettings)
    header: ConverterSettings = field(default_factory=lambda: ConverterSettings("simple_header"))
    transforms: tuple[StepSettings, ...] = ()
    tolerant: bool = False
    log: bool = False
    tmp_dir: str = "/tmp"
    tasks_max: int | None = 1
    poll_interval_ms: int = 1_000
    restart: RestartSettings = field(default_factory=RestartSettings)
    registry_patience_ms: int = 0
    registry_pause_ms: int = 60_000
    stop_timeout_ms: int = 30_000

    @property
    def of_files(self) -> Literal[False]:
        """What it sends is told in records."""
        return False

    @property
    def makes_topics(self) -> tuple[str, ...]:
        """Those that it sends to."""
        return self.topics

    @property
    def group(self) -> str | None:
        """A source is in no group."""
        return None

    @property
    def flush_interval_ms(self) -> int | None:
        """Nothing waits for company."""
        return None

    @property
    def label(self) -> str:
        """Of its producer, as `kafka.settings.ProducerSettings` has it."""
        return f"source-{self.name}"

    @property
    def max_request_bytes(self) -> int:
        """The most that a record may have."""
        return int(str(self.producer.get(MAX_REQUEST, DEFAULT_MAX_REQUEST)))

    def with_transforms(self, steps: tuple[StepSettings, ...]) -> "SourceSettings":
        """The same with these transforms."""
        return replace(self, transforms=steps)

    def summary(self) -> str:
        """From where to where: `file test.txt -> topic connect-test`."""
        plural = "s" if len(self.topics) > 1 else ""
        return f"{self.origin} -> topic{plural} {', '.join(self.topics)}"

    def description(self, *, keys: bool, headers: bool) -> Sequence[str]:
        """What happens to a record, in order."""
        steps = [f"{step.transform.name} ({step.transform.type})" for step in self.transforms]
        kept = "for this run alone" if self.storage is None else f"in {self.storage.what}"
        fault = "is passed over" if self.tolerant else "stops the connector"
        return [
            f"read from {self.origin}, by {len(self.tasks)} task{'s' if len(self.tasks) > 1 else ''}",
            *(f"transform {step}" for step in steps),
            f"value: {KIND_TEXTS[self.value.kind]}; key: {KIND_TEXTS[self.key.kind]}; one that cannot be {fault}",
            f"sent to Kafka, at most {self.max_request_bytes:,} bytes each, and acknowledged by all in-sync replicas",
            f"its position stored {kept}",
        ]
