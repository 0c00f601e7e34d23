"""Kinds of connectors: what differs between them in each room, by name, so that a room loads its own part alone."""

from dataclasses import dataclass
from typing import Any, Final

from parquet_sink import plugins
from parquet_sink.plugins import Kind
from parquet_sink.settings.connector import ConnectorSettings, ConnectorType


@dataclass(frozen=True, kw_only=True)
class ConnectorKind:
    """A plug-in of the group `parquet_sink.connector_kinds`; settings and connector classes name theirs as `kind`.

    type: in Kafka Connect's words. The others are names, `module:attribute`, of what one room loads and calls:
    flow: with the settings; gives a `worker.loop.flow.Flow`.
    stored_offsets: with the settings; gives a `worker.loop.flow.StoredOffsets`.
    problems: with the settings and a `validate.preflight.Found`, to which it adds what is wrong.
    probe: with the settings; gives what `check --connect` finds (`validate.probe_kafka.Finding`). "": nothing is tried.
    writer: with a `spark.handoff.Handoff`; gives a `spark.sink.RangeWriter` of the data source `parquet_sink`. "": the
    flow's query has a data source of its own.
    """

    type: ConnectorType
    flow: str
    stored_offsets: str
    problems: str
    probe: str = ""
    writer: str = ""


CONNECTOR_KINDS: Final = Kind(plugins.CONNECTOR_KINDS, "kind of connectors", (), ConnectorKind, by_path=True)

SINK: Final = ConnectorKind(
    type="sink",
    flow="parquet_sink.worker.loop.flow:ParquetFlow",
    stored_offsets="parquet_sink.worker.loop.flow:OfGroup",
    problems="parquet_sink.validate.preflight:sink_problems",
    probe="parquet_sink.validate.probe:probe_sink",
    writer="parquet_sink.spark.sink:PushWriter",
)
"""Sinks that write Parquet files: `settings.sink.SinkSettings`."""
RECORD_SINK: Final = ConnectorKind(
    type="sink",
    flow="parquet_sink.worker.loop.flow:TopicFlow",
    stored_offsets="parquet_sink.worker.loop.flow:OfGroup",
    problems="parquet_sink.validate.preflight:record_sink_problems",
    probe="parquet_sink.validate.probe:probe_record_sink",
    writer="parquet_sink.spark.sink:RecordWriter",
)
"""Sinks that take records: `settings.record_sink.RecordSinkSettings`."""


def find_kind(name: str) -> ConnectorKind:
    """The kind of a name. Raises plugins.PluginUnusable."""
    return plugins.find(CONNECTOR_KINDS, name)


def part(settings: ConnectorSettings, name: str) -> Any:
    """What a connector's kind has of that name, loaded. Raises plugins.PluginUnusable."""
    return plugins.named(getattr(find_kind(settings.kind), name))
