"""Records of a source to bytes: transforms, then converters, then the bound on a request."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from parquet_sink.addons.sources.encoding.encoders import encoder_for
from parquet_sink.addons.sources.encoding.faults import NotEncodable
from parquet_sink.addons.sources.flow.record_sender import Outgoing
from parquet_sink.addons.sources.flow.transform import transform
from parquet_sink.addons.sources.settings import MAX_REQUEST, SourceSettings
from parquet_sink.model.source_records import SourceRecord
from parquet_sink.transform.building import chain_for


@dataclass(frozen=True)
class Unwritable:
    """A record that cannot be sent, and why, without its content. may_pass: whether settings may pass it over."""

    reason: str
    may_pass: bool = True
    cure: str = ""


class SourceEncoding:
    """As the settings of a connector say. Raises TransformFailed when a class of a transform is not here."""

    def __init__(self, settings: SourceSettings, clock: Callable[[], float] = time.time) -> None:
        self._settings, self._clock = settings, clock
        self._chain = chain_for(settings.transforms, settings.key, settings.header)
        self._key, self._value, self._header = (
            encoder_for(one) for one in (settings.key, settings.value, settings.header)
        )

    def encoded(self, records: Sequence[SourceRecord]) -> list[Sequence[Outgoing] | Unwritable]:
        """For each record what is sent for it: nothing where a transform dropped it. Raises ConnectorError."""
        if self._chain is None:
            return [self._all((record,)) for record in records]
        done = transform(self._chain, records, int(self._clock() * 1000))
        return [
            Unwritable(done.faults[index]) if index in done.faults else self._all(done.records.get(index, ()))
            for index in range(len(records))
        ]

    def _all(self, records: Sequence[SourceRecord]) -> Sequence[Outgoing] | Unwritable:
        try:
            found = [self._one(record) for record in records]
        except NotEncodable as error:
            return Unwritable(str(error))
        largest = max((one.size for one in found), default=0)
        return self._too_large(largest) if largest > self._settings.max_request_bytes else found

    def _one(self, record: SourceRecord) -> Outgoing:
        return Outgoing(
            record.topic,
            record.partition,
            self._key(record.key, record.key_type),
            self._value(record.value, record.value_type),
            [(one.name, self._header(one.value, one.type)) for one in record.headers],
            record.timestamp_ms or 0,
        )

    def _too_large(self, size: int) -> Unwritable:
        most = self._settings.max_request_bytes
        return Unwritable(
            f"it has {size:,} bytes, and a request may have {most:,}",
            may_pass=False,
            cure=f"Raise [producer.override.{MAX_REQUEST}], and max.message.bytes of the topic (message.max.bytes of "
            "the brokers), then start again",
        )
