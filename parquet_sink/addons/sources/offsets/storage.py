"""What keeps places of sources, as a protocol, and the settings that choose an implementation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from parquet_sink.addons.sources.offsets.connect_form import Places
from parquet_sink.config.secret import Secret
from parquet_sink.model.source_records import Place


@dataclass(frozen=True)
class OffsetStorageSettings:
    """Where places are kept: in a file, or in a topic. client: settings of its clients, with Java's names.

    partitions, replication_factor: of the topic, where it is made; -1 leaves them to the brokers.
    """

    file: str | None = None
    topic: str | None = None
    partitions: int = 25
    replication_factor: int = 3
    client: Mapping[str, str | Secret] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """In words."""
        return f"topic {self.topic}" if self.topic else f"file {self.file}"


class OffsetStorage(Protocol):
    """The places of all connectors; each process opens its own."""

    def read(self, connector: str) -> Places:
        """All places of a connector. Raises ConnectorError."""

    def write(self, connector: str, changes: Mapping[str, Place | None]) -> None:
        """Places by the text of their source partition, None to remove one: all of them, or none. They last.

        Raises ConnectorError.
        """

    def close(self) -> None: ...
