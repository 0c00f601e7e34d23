"""What keeps places of sources, as a protocol, and the storage that settings name."""

from collections.abc import Mapping
from typing import Protocol

from parquet_sink.addons.sources.offsets.connect_form import Places
from parquet_sink.model.source_records import Place
from parquet_sink.worker_config.offset_storage import OffsetStorageSettings


class OffsetStorage(Protocol):
    """The places of all connectors; each process opens its own."""

    def read(self, connector: str) -> Places:
        """All places of a connector. Raises ConnectorError."""

    def write(self, connector: str, changes: Mapping[str, Place | None]) -> None:
        """Places by the text of their source partition, None to remove one: all of them, or none. They last.

        Raises ConnectorError.
        """

    def close(self) -> None: ...


def opened(settings: OffsetStorageSettings) -> OffsetStorage:
    """The one that settings name. Nothing is read, or connected to, before it is asked for."""
    if settings.topic is not None:
        from parquet_sink.addons.sources.offsets.topic import TopicStorage  # loads Kafka's client

        return TopicStorage(settings, settings.topic)
    from parquet_sink.addons.sources.offsets.file import FileStorage

    assert settings.file is not None, "the configuration demands one of them"
    return FileStorage(settings.file)
