"""What a sink that takes records runs from, made by its connector class. Durations are milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from parquet_sink import __version__
from parquet_sink.config.secret import digest
from parquet_sink.convert.connect_values.settings import SIMPLE_HEADER
from parquet_sink.convert.json.settings import PLAIN_JSON
from parquet_sink.convert.settings import Converter
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.settings import description
from parquet_sink.settings.connector import ErrorSettings, RestartSettings, TopicSinkSettings
from parquet_sink.targets.record_sink_setup import RecordSinkSetup
from parquet_sink.transform.settings import StepSettings


@dataclass(frozen=True)
class RecordSinkSettings(TopicSinkSettings):
    """One connector, ready to run. sink: where records go, and with what. flush: when they are due.

    tmp_dir: where the connector's folder is. All else is as in `settings.sink.SinkSettings`.
    """

    kind: ClassVar[str] = "record_sink"
    name: str
    kafka: KafkaSettings
    flush: FlushSettings
    sink: RecordSinkSetup
    tmp_dir: str
    value: Converter = PLAIN_JSON
    key: Converter | None = None
    header: Converter = SIMPLE_HEADER
    transforms: tuple[StepSettings, ...] = ()
    errors: ErrorSettings = field(default_factory=ErrorSettings)
    restart: RestartSettings = field(default_factory=RestartSettings)
    registry_patience_ms: int = 0
    registry_pause_ms: int = 60_000
    stop_timeout_ms: int = 30_000

    @property
    def of_files(self) -> Literal[False]:
        """What it delivers is told in records."""
        return False

    @property
    def set_aside_in(self) -> str:
        """Where records are kept that are set aside, in words."""
        letters = self.errors.dead_letters
        return "nowhere" if letters is None else f"dead letters in topic {letters.topic}"

    def with_transforms(self, steps: tuple[StepSettings, ...]) -> Self:
        """The same with these transforms."""
        return replace(self, transforms=steps)

    def why_unusable(self, topic: str) -> str | None:
        """Any topic can be read."""
        return None

    @property
    def fingerprint(self) -> str:
        """Stands for the settings, and the version, that records of a range come out by."""
        converters = [one and one.recorded() for one in (self.value, self.key, self.header)]
        return digest(__version__, converters, self.errors.invalid_records, self.transforms)

    def summary(self) -> str:
        """From where to where, in a few words."""
        return f"{description.named_topics(self.kafka)} -> {self.sink.address}"

    def description(self, *, keys: bool, headers: bool) -> Sequence[str]:
        """What happens to a record, in order: a line for each step. keys, headers: whether transforms look at them."""
        needs = self.sink.needs
        of_record = (self.value, self.key, self.header, self.transforms)
        steps = description.decoded(*of_record, keys=keys or needs.keys, headers=headers or needs.headers)
        return (*steps, f"given to {self.sink.address}", description.invalid(self.errors))
