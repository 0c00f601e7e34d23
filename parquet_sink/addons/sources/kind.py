"""Sources as a kind of connectors: `addons.sources.settings.SourceSettings`."""

from typing import Final

from parquet_sink.connectors.kinds import ConnectorKind

SOURCE: Final = ConnectorKind(
    type="source",
    flow="parquet_sink.addons.sources.flow.flow:SourceFlow",
    stored_offsets="parquet_sink.addons.sources.stored_offsets:OfSource",
    problems="parquet_sink.addons.sources.problems:problems",
)
