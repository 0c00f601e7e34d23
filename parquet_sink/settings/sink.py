"""What a sink that writes Parquet files runs from, made by its connector class. Durations are milliseconds."""

from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from typing import ClassVar, Literal, TypeGuard

from parquet_sink import __version__
from parquet_sink.archive.settings import URL, ArchiveSettings
from parquet_sink.config.declared import Milliseconds, by_key, declared, filled_by
from parquet_sink.config.key import Origin, ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.secret import digest
from parquet_sink.config.values import Values
from parquet_sink.convert.connect_values.settings import SIMPLE_HEADER
from parquet_sink.convert.json.settings import PLAIN_JSON
from parquet_sink.convert.settings import Converter
from parquet_sink.files import naming
from parquet_sink.files.settings import CODEC, ROW_GROUP, FileSettings
from parquet_sink.history.settings import HistorySettings
from parquet_sink.kafka.settings import COMMIT_RECORDS, COMMIT_SIZE, FlushSettings, KafkaSettings
from parquet_sink.net.settings import ENDPOINT
from parquet_sink.notify.settings import NotifySettings
from parquet_sink.parked.settings import ParkedSettings
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings import description
from parquet_sink.settings.connector import (
    TOLERANCE,
    ConnectorSettings,
    ErrorSettings,
    RestartSettings,
    TopicSinkSettings,
)
from parquet_sink.targets.settings import ERRORS, RetrySettings, TargetSettings, longest_name
from parquet_sink.targets.table_map import MAP_KEY, TableMap, parse
from parquet_sink.transform.settings import StepSettings


def _tables(values: Values, machine: Machine) -> TableMap:
    text = values.text(MAP_KEY)
    return TableMap() if text is None else parse(text)


@declared(group=ERRORS, origin=Origin.OWN)
class SinkSettings(TopicSinkSettings):
    """One connector, ready to run.

    tables: of topics; target has that of all others.
    header: of the header converter. transforms: between decoding and shaping, in this order.
    registry_patience_ms: how long a registry, or what a transform needs, may stay unavailable, -1 for ever.
    registry_pause_ms: the longest between tries.
    stop_timeout_ms: how long a stop waits for the flush in progress. restart: what follows a failure that may pass.
    """

    kind: ClassVar[str] = "sink"
    name: str = filled_by("name")
    kafka: KafkaSettings
    flush: FlushSettings
    shape: ShapeSettings
    files: FileSettings
    target: TargetSettings
    value: Converter = PLAIN_JSON
    key: Converter | None = None
    tables: TableMap = filled_by(MAP_KEY, default=TableMap(), computed=_tables)
    header: Converter = SIMPLE_HEADER
    transforms: tuple[StepSettings, ...] = ()
    retry: RetrySettings = field(default_factory=RetrySettings)
    errors: ErrorSettings = field(default_factory=ErrorSettings)
    parked: ParkedSettings = field(default_factory=ParkedSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    archive: ArchiveSettings | None = None
    notify: NotifySettings | None = None
    restart: RestartSettings = field(default_factory=RestartSettings)
    registry_patience_ms: int = filled_by("errors.retry.timeout", default=0)
    registry_pause_ms: int = filled_by("errors.retry.delay.max.ms", default=60_000)
    stop_timeout_ms: Milliseconds = filled_by(ems("stop.timeout.ms"), default=30_000)

    @property
    def tmp_dir(self) -> str:
        """Where the connector's folder is."""
        return self.files.tmp_dir

    @property
    def of_files(self) -> Literal[True]:
        """What it delivers is counted in files."""
        return True

    def summary(self) -> str:
        """From where to where, in a few words."""
        return description.summary(self.kafka, self.target, self.tables)

    def description(self, *, keys: bool, headers: bool) -> Sequence[str]:
        """What happens to a record, in order: a line for each step. keys, headers: whether transforms look at them."""
        ending = description.delivered(self.target, self.tables)
        if self.shape.raw:
            return (*description.raw(self.shape), ending)
        keys = keys or self.shape.tombstone_column is not None
        of_record = (self.value, self.key, self.header, self.transforms)
        steps = description.decoded(*of_record, keys=keys, headers=headers)
        return (*steps, *description.rows(self.shape), ending, description.invalid(self.errors))

    @property
    def parked_folder(self) -> str:
        """Where this connector's parked records are, if it has any."""
        return self.parked.folder(self.files.tmp_dir, self.name)

    @property
    def history_file(self) -> str:
        """Where this connector's history of uploads is, if it has any."""
        return naming.history_file(self.files.tmp_dir, self.name)

    @property
    def diverted_to(self) -> str:
        """Where diverted records are kept, in words."""
        letters = self.errors.dead_letters
        return f"parked in {self.parked_folder}" if letters is None else f"dead letters in topic {letters.topic}"

    def table_of(self, topic: str) -> str:
        """The table that a topic's files go to."""
        return self.tables.table(topic) or self.target.target_table

    def why_unusable(self, topic: str) -> str | None:
        """Why a topic cannot be read, with the cure; None when it can."""
        reason = self.tables.why_unusable(topic)
        return self._why_too_long(topic) if reason is None else f"Invalid [{MAP_KEY}]. {reason}"

    def _why_too_long(self, topic: str) -> str | None:
        """Return why no file of a topic can have its name, with the cure; None if a short one can."""
        shortest = len(naming.file_name(topic, 0, 0, 0, size_bytes=1, records=1))
        places = {ENDPOINT: self.target, URL: None if self.archive is None else self.archive.place}
        for key, place in places.items():
            if (limit := longest_name(place)) is not None and shortest > limit:
                return (
                    f"Invalid [{key}]. Names of files of topic {topic} have {shortest} bytes or more, and a folder "
                    f"takes {limit}. Set {key} to another kind of place, or leave this topic to another connector."
                )
        return None

    @cached_property
    def fingerprint(self) -> str:
        """Stands for the settings, and the version, that the files of a range depend on, by the names of their keys.

        Of secrets those that change what is in a file: salts and keys of obfuscation, all of a user's own classes.
        """
        converters = [one and one.recorded() for one in (self.value, self.key, self.header)]
        keys = {
            **by_key(self.shape),
            COMMIT_SIZE: self.flush.commit_size_bytes,
            COMMIT_RECORDS: self.flush.commit_records,
            CODEC: self.files.codec,
            ROW_GROUP: self.files.row_group_size_bytes,
            TOLERANCE: self.errors.invalid_records,
        }
        return digest(__version__, keys, converters, self.transforms)


def of_sink(settings: ConnectorSettings) -> TypeGuard[SinkSettings]:
    """Whether they are of a sink that writes Parquet files."""
    return settings.kind == SinkSettings.kind
