"""What is common to the settings of all connectors: what runtime, REST API and checks need of any of them.

Three kinds there are, and each has a dataclass of its own, which implements this: sinks that write Parquet files
(`task.settings.SinkSettings`), sinks that take records (`task.record_sink_settings.RecordSinkSettings`), and
sources (`addons.sources.settings.SourceSettings`). What differs in a run is behind `worker.loop.flow.Flow`.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, Self

from parquet_sink.kafka.settings import PlanningSettings
from parquet_sink.task.settings import ErrorSettings, RestartSettings
from parquet_sink.transform.settings import StepSettings

ConnectorType = Literal["sink", "source"]
"""In Kafka Connect's words."""


class ConnectorSettings(Protocol):
    """One connector, ready to run. Durations are milliseconds.

    kind: in Kafka Connect's words. group: the consumer group, which no two connectors may share; None for a source.
    tasks_max: None leaves the number to Spark. tmp_dir: where its folder, lock and state are. flush_interval_ms: the
    age at which records are due; None where nothing waits. stop_timeout_ms: how long a stop waits for the flush in
    progress. restart: what follows a failure that may pass. registry_patience_ms: how long a registry, or what a
    transform or a record sink needs, may stay away, -1 for ever; registry_pause_ms: the longest between tries.
    of_files: whether what it delivers is told in files, and not in records. makes_topics: those that a source sends
    to, as far as that is known before; the first record makes them where brokers do that.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> ConnectorType: ...
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


class TopicSettings(ConnectorSettings, PlanningSettings, Protocol):
    """Of a sink of either kind: it reads topics, and what it delivered is committed to its group."""

    @property
    def errors(self) -> ErrorSettings: ...
