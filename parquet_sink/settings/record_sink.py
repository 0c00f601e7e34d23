"""Keys and settings of a sink that takes records, made by its connector class. Durations are milliseconds."""

from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from typing import ClassVar, Final, Literal

from parquet_sink import __version__
from parquet_sink.config.declared import LocalPath, Milliseconds, declared, filled_by, key
from parquet_sink.config.key import Origin, ems
from parquet_sink.config.secret import digest
from parquet_sink.convert.connect_values.settings import SIMPLE_HEADER
from parquet_sink.convert.json.settings import PLAIN_JSON
from parquet_sink.convert.settings import Converter
from parquet_sink.files.settings import TMP_DIR
from parquet_sink.kafka.settings import INTERVAL, FlushSettings, KafkaSettings
from parquet_sink.settings import description
from parquet_sink.settings.connector import ErrorSettings, RestartSettings, TopicSinkSettings
from parquet_sink.targets.settings import ERRORS, RecordSinkSetup
from parquet_sink.transform.settings import StepSettings

DELIVERY: Final = "Delivery: when records are handed over"
_MOST_RECORDS: Final = 100_000


@declared(group=DELIVERY, origin=Origin.OWN)
class DeliverySettings(FlushSettings):
    """When records are due: after so long, or when there are so many."""

    commit_size_bytes: int = 64_000_000
    commit_records: int = _MOST_RECORDS
    commit_interval_ms: Milliseconds = key(
        INTERVAL,
        "Records are handed over when the oldest one of a topic-partition arrived this many milliseconds ago, or when "
        f"there are {_MOST_RECORDS:,}. Their offsets are committed once the sink has them durably.",
        default=1_000,
        minimum=1_000,
    )
    schedule_interval_ms: int = -1
    timezone: str = "UTC"


@declared(group=DELIVERY, origin=Origin.OWN)
class RecordSinkSettings(TopicSinkSettings):
    """One connector, ready to run. sink: where records go, and with what. flush: when they are due.

    tmp_dir: where the connector's folder is. All else is as in `settings.sink.SinkSettings`.
    """

    kind: ClassVar[str] = "record_sink"
    name: str = filled_by("name")
    kafka: KafkaSettings
    flush: DeliverySettings
    sink: RecordSinkSetup
    tmp_dir: LocalPath = key(
        TMP_DIR,
        "Folder for the connector's lock and state; made when it is not there.",
        default_text="the system's temporary folder; in a worker `connectors` below `config.storage.folder`",
        computed=lambda values, machine: values.text(TMP_DIR) or machine.tmp_dir,
    )
    stop_timeout_ms: Milliseconds = key(
        ems("stop.timeout.ms"),
        "How long a stop waits for the flush in progress, in milliseconds; connectors of a process stop side by side. "
        "Then it is given up, and its records are delivered again at the next start.",
        default=30_000,
        minimum=0,
        group=ERRORS,
    )
    restart: RestartSettings = field(default_factory=RestartSettings)
    errors: ErrorSettings = field(default_factory=ErrorSettings)
    registry_patience_ms: int = filled_by("errors.retry.timeout", default=0)
    registry_pause_ms: int = filled_by("errors.retry.delay.max.ms", default=60_000)
    transforms: tuple[StepSettings, ...] = ()
    value: Converter = PLAIN_JSON
    key: Converter | None = None
    header: Converter = SIMPLE_HEADER

    @property
    def of_files(self) -> Literal[False]:
        """What it delivers is counted in records."""
        return False

    @property
    def diverted_to(self) -> str:
        """Where diverted records are kept, in words."""
        letters = self.errors.dead_letters
        return "nowhere" if letters is None else f"dead letters in topic {letters.topic}"

    def why_unusable(self, topic: str) -> str | None:
        """Any topic can be read."""
        return None

    @cached_property
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
