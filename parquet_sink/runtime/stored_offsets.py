"""Where a connector stands, as an operator sees and sets it while nothing of it runs: one way for each kind."""

from collections.abc import Sequence
from typing import Protocol

from parquet_sink.herder.values import OFFSET, PARTITION, TOPIC, StoredOffset
from parquet_sink.kafka.group import manual_offsets
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.pipeline.connector_settings import ConnectorSettings
from parquet_sink.pipeline.record_sink_settings import RecordSinkSettings
from parquet_sink.pipeline.settings import SinkSettings


class StoredOffsets(Protocol):
    """Of one connector. Methods raise ConnectorError."""

    def read(self) -> tuple[StoredOffset, ...]: ...

    def alter(self, offsets: Sequence[StoredOffset]) -> None:
        """All of them or none; an offset of None removes one."""

    def reset(self) -> None:
        """Removes all."""


class OfGroup:
    """A sink's: those of its consumer group."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka

    def read(self) -> tuple[StoredOffset, ...]:
        found = manual_offsets.read(self._kafka).items()
        return tuple(StoredOffset({TOPIC: topic, PARTITION: number}, {OFFSET: at}) for (topic, number), at in found)

    def alter(self, offsets: Sequence[StoredOffset]) -> None:
        wanted = {
            (one.partition[TOPIC], one.partition[PARTITION]): None if one.offset is None else one.offset[OFFSET]
            for one in offsets
        }
        manual_offsets.alter(self._kafka, wanted)

    def reset(self) -> None:
        manual_offsets.reset(self._kafka)


def stored_offsets_of(settings: ConnectorSettings) -> StoredOffsets:
    """The way of a connector's kind. Raises TypeError for settings of no kind that runs."""
    if isinstance(settings, SinkSettings | RecordSinkSettings):
        return OfGroup(settings.kafka)
    raise TypeError(f"{type(settings).__name__} are settings of no kind of connector that runs")
