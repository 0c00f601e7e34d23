"""A trace for each flush of a topic-partition, made of events: OpenTelemetry's spans, with the times that events have.

The span `flush` is from when its range was planned to when it was accepted, put off or failed; below it a span `upload`
for each file, from the first attempt to the last, with an event for each attempt.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode, Tracer, set_span_in_context

from parquet_sink import __version__
from parquet_sink.model.events import (
    ConnectorStarting,
    Event,
    FileAccepted,
    FileFailed,
    FilePassedOver,
    PartitionEvent,
    RangeFailed,
    RangeFlushed,
    RangePlanned,
    RangePostponed,
    RecordsSetAside,
)
from parquet_sink.model.ranges import Attempt
from parquet_sink.model.receipts import Receipt
from parquet_sink.worker.metrics.labels import label

END_S: Final = 3.0
"""How long the end of the program waits for the last spans to be sent."""
PREFIX: Final = "parquet_sink."

Ended = RangeFlushed | RangePostponed | RangeFailed
_OUTCOMES: Final[Mapping[type[Event], str]] = {
    RangeFlushed: "flushed",
    RangePostponed: "postponed",
    RangeFailed: "failed",
}


@dataclass
class _Flush:
    """What is known of the flush of one topic-partition that is under way."""

    planned: RangePlanned
    receipts: list[Receipt] = field(default_factory=list)
    set_aside: int = 0


class Traces:
    """A `worker.loop.events.Listener`. processor: takes finished spans; None: one that sends them, as `OTEL_*` say."""

    def __init__(self, processor: SpanProcessor | None = None) -> None:
        name = os.environ.get("OTEL_SERVICE_NAME") or "parquet-sink"
        resource = Resource.create({SERVICE_NAME: name, SERVICE_VERSION: __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor or BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer: Tracer = self._provider.get_tracer("parquet_sink", __version__)
        self._flushes: dict[tuple[str, str, int], _Flush] = {}

    def on_event(self, event: Event) -> None:
        """Keeps what a flush has done so far; when it ends its spans are made, with their own times."""
        if isinstance(event, ConnectorStarting):
            self._flushes = {key: flush for key, flush in self._flushes.items() if key[0] != event.connector}
        elif isinstance(event, RangePlanned):
            self._flushes[_key(event)] = _Flush(event)
        elif isinstance(event, FileAccepted | FileFailed | FilePassedOver) and _key(event) in self._flushes:
            self._flushes[_key(event)].receipts.append(event.receipt)
        elif isinstance(event, RecordsSetAside) and _key(event) in self._flushes:
            self._flushes[_key(event)].set_aside += event.count
        elif isinstance(event, RangeFlushed | RangePostponed | RangeFailed):
            flush = self._flushes.pop(_key(event), None)
            if flush is not None:
                self._record(flush, event)

    def refresh(self, connectors: Sequence[object]) -> None:
        """Nothing stands; it all happens."""

    def close(self, connectors: Sequence[object]) -> None:
        """Sends what waits, for END_S at most: an unavailable collector holds up no end."""
        ending = Thread(target=self._provider.shutdown, name="traces-end", daemon=True)
        ending.start()
        ending.join(END_S)

    def _record(self, flush: _Flush, ended: Ended) -> None:
        planned = flush.planned
        span = self._tracer.start_span(
            "flush", Context(), start_time=_ns(planned.at_s), attributes=_known(_of_flush(flush, ended))
        )
        within = set_span_in_context(span, Context())
        for receipt in flush.receipts:
            self._upload(receipt, planned.at_s, within)
        if isinstance(ended, RangeFailed):
            span.set_status(Status(StatusCode.ERROR, ended.failure.message))
        span.end(_ns(max(ended.at_s, planned.at_s)))

    def _upload(self, receipt: Receipt, since_s: float, within: Context) -> None:
        """Only of attempts of this flush: a file that was tried before has those in an earlier trace."""
        made = [one for one in receipt.tried if one.at_ms >= since_s * 1000]
        if not made:
            return
        attributes = _known(_of_file(receipt))
        span = self._tracer.start_span("upload", within, start_time=made[0].at_ms * 1_000_000, attributes=attributes)
        for one in made:
            span.add_event("attempt", _known(_of_attempt(one)), one.at_ms * 1_000_000)
        if not receipt.accepted:
            span.set_status(Status(StatusCode.ERROR, made[-1].cause))
        span.end(made[-1].at_ms * 1_000_000 + _ns(made[-1].seconds))


def _of_flush(flush: _Flush, ended: Ended) -> dict[str, Any]:
    planned = flush.planned
    return {
        "messaging.system": "kafka",
        "messaging.destination.name": planned.topic,
        "messaging.destination.partition.id": str(planned.partition),
        f"{PREFIX}connector": planned.connector,
        f"{PREFIX}offset.start": planned.start,
        f"{PREFIX}offset.end": planned.end,
        f"{PREFIX}reason": planned.reason,
        f"{PREFIX}outcome": _OUTCOMES[type(ended)],
        f"{PREFIX}files": sum(receipt.accepted for receipt in flush.receipts),
        f"{PREFIX}records": sum(receipt.records for receipt in flush.receipts if receipt.accepted),
        f"{PREFIX}set_aside": flush.set_aside,
        **(_of_waiting(ended) if isinstance(ended, RangePostponed) else {}),
    }


def _of_waiting(ended: RangePostponed) -> dict[str, Any]:
    return {
        f"{PREFIX}trying": str(ended.trying),
        f"{PREFIX}attempts": ended.attempts,
        f"{PREFIX}wait_s": ended.wait_s,
    }


def _of_file(receipt: Receipt) -> dict[str, Any]:
    return {
        f"{PREFIX}file": receipt.file_name,
        f"{PREFIX}rows": receipt.rows,
        f"{PREFIX}records": receipt.records,
        f"{PREFIX}bytes": receipt.size_bytes,
        f"{PREFIX}reason": receipt.reason,
        f"{PREFIX}attempts": receipt.attempts,
        f"{PREFIX}write_s": receipt.seconds.get("write"),
        f"{PREFIX}table": receipt.table,
    }


def _of_attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        f"{PREFIX}outcome": attempt.verdict,
        f"{PREFIX}seconds": attempt.seconds,
        f"{PREFIX}cause": attempt.cause or None,
        "http.response.status_code": attempt.status,
    }


def _key(event: PartitionEvent) -> tuple[str, str, int]:
    return event.connector, event.topic, event.partition


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    """What is not known is absent, and what is no Unicode is an escape."""
    known = {name: value for name, value in values.items() if value is not None}
    return {name: label(value) if isinstance(value, str) else value for name, value in known.items()}


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
