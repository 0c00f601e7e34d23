"""Where a connector stands, as an operator sees and sets it while nothing of it runs: one way for each kind."""

from collections.abc import Sequence
from typing import Protocol

from parquet_sink.connectors.kinds import part
from parquet_sink.kafka.group import manual_offsets
from parquet_sink.settings.connector import ConnectorSettings, TopicSettings
from parquet_sink.worker.herder.values import OFFSET, PARTITION, TOPIC, StoredOffset


class StoredOffsets(Protocol):
    """Of one connector. Methods raise ConnectorError."""

    def read(self) -> tuple[StoredOffset, ...]: ...

    def alter(self, offsets: Sequence[StoredOffset]) -> None:
        """All of them or none; an offset of None removes one."""

    def reset(self) -> None:
        """Removes all."""


class OfGroup:
    """A sink's: those of its consumer group."""

    def __init__(self, settings: TopicSettings) -> None:
        self._kafka = settings.kafka

    def read(self) -> tuple[StoredOffset, ...]:
        found = manual_offsets.read(self._kafka).items()
        return tuple(
            StoredOffset({TOPIC: topic, PARTITION: number}, {OFFSET: at}, end) for (topic, number), (at, end) in found
        )

    def alter(self, offsets: Sequence[StoredOffset]) -> None:
        wanted = {
            (one.partition[TOPIC], one.partition[PARTITION]): None if one.offset is None else one.offset[OFFSET]
            for one in offsets
        }
        manual_offsets.alter(self._kafka, wanted)

    def reset(self) -> None:
        manual_offsets.reset(self._kafka)


def stored_offsets_of(settings: ConnectorSettings) -> StoredOffsets:
    """The way of a connector's kind."""
    found: StoredOffsets = part(settings, "stored_offsets")(settings)
    return found
