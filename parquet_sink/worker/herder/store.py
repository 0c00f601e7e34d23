"""What a worker remembers of its connectors, behind a protocol: their configurations, and what each is to do.

Nothing that a connector needs to go on is in it: positions are offsets of its consumer group.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from parquet_sink.worker.herder.values import TargetState


@dataclass(frozen=True)
class StoredConnector:
    """config: as it was given, placeholders unresolved, passwords in the clear. topics: active since the last reset."""

    config: Mapping[str, str] = field(repr=False)
    target: TargetState = TargetState.STARTED
    topics: tuple[str, ...] = ()


class ConfigStore(Protocol):
    """Of one worker at a time. Whatever a method did is there after a crash, whole; a method that raises did nothing.

    Raises StoreFailed.
    """

    @property
    def generation(self) -> int:
        """Grows with each change, also over restarts."""

    def connectors(self) -> Mapping[str, StoredConnector]:
        """All of them by name."""

    def put(self, name: str, connector: StoredConnector) -> None:
        """Adds a connector, or replaces it."""

    def delete(self, name: str) -> None:
        """Forgets a connector; one that is not there is forgotten already."""

    def close(self) -> None:
        """Lets another worker have it."""


class MemoryConfigStore:
    """A `ConfigStore` for as long as the process lives: of `run`, whose connectors are files."""

    def __init__(self, connectors: Mapping[str, StoredConnector] | None = None) -> None:
        self._connectors = dict(connectors or {})
        self.generation = 0

    def connectors(self) -> Mapping[str, StoredConnector]:
        return dict(self._connectors)

    def put(self, name: str, connector: StoredConnector) -> None:
        self._connectors[name] = connector
        self.generation += 1

    def delete(self, name: str) -> None:
        if self._connectors.pop(name, None) is not None:
            self.generation += 1

    def close(self) -> None:
        """There is nothing to give up."""
