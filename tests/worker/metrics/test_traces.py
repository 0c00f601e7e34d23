"""Traces of flushes, made of events, and sent to a collector."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from parquet_sink.errors import failure_named
from parquet_sink.model.events import (
    ConnectorStarting,
    Event,
    FileAccepted,
    FilePassedOver,
    RangeFailed,
    RangeFlushed,
    RangePlanned,
    RangePostponed,
    RecordsSetAside,
)
from parquet_sink.model.ranges import Attempt, AttemptCount
from parquet_sink.worker.metrics import traces as module
from parquet_sink.worker.metrics.traces import Traces
from tests.worker.metrics.figures import RECEIPT

ABOUT = ("orders", "t", 0)
PLANNED = RangePlanned("orders", 100.0, "t", 0, 0, 60, "interval")
TRIED = (Attempt(101_000, 0.5, "unknown", 503, "busy"), Attempt(102_000, 0.25, "accepted", 200))
FILE = FileAccepted("orders", 102.25, "t", 0, replace(RECEIPT, tried=TRIED, attempts=2))
FLUSHED = RangeFlushed("orders", 103.0, "t", 0, 0, 60, 1, 10, 30, 5_000_000, read=60)


def spans(*events: Event) -> list[ReadableSpan]:
    """What is made of them, in the order in which it ends."""
    kept = InMemorySpanExporter()
    traces = Traces(SimpleSpanProcessor(kept))
    for event in events:
        traces.on_event(event)
    traces.close([])
    return list(kept.get_finished_spans())


def times(span: ReadableSpan) -> tuple[float, float]:
    """Epoch seconds."""
    return (span.start_time or 0) / 1e9, (span.end_time or 0) / 1e9


def test_a_flush_is_a_trace_with_its_uploads() -> None:
    """With the times that events have, an event for each attempt, and what it was about."""
    upload, flush = spans(PLANNED, FILE, FLUSHED)
    assert (flush.name, upload.name) == ("flush", "upload")
    assert upload.parent is not None
    assert upload.parent.span_id == flush.context.span_id
    assert flush.parent is None
    assert (times(flush), times(upload)) == ((100.0, 103.0), (101.0, 102.25))
    told = flush.attributes or {}
    assert told["messaging.destination.name"] == "t"
    assert (told["parquet_sink.connector"], told["parquet_sink.outcome"]) == ("orders", "flushed")
    assert (told["parquet_sink.offset.end"], told["parquet_sink.files"]) == (60, 1)
    assert [
        (one.timestamp / 1e9, (one.attributes or {}).get("http.response.status_code")) for one in upload.events
    ] == [
        (101.0, 503),
        (102.0, 200),
    ]
    assert flush.status.status_code is not StatusCode.ERROR
    assert flush.resource.attributes["service.name"] == "parquet-sink"


def test_attempts_of_an_earlier_flush_are_in_its_own_trace() -> None:
    """A file that comes again brings the attempts that were made before: they are not told twice."""
    (first,) = spans(
        PLANNED,
        RangePostponed("orders", 102.0, "t", 0, 0, 60, 0, 3, 1.5, 8.0, answers=(AttemptCount("unknown", 503, 3),)),
    )
    assert (first.attributes or {})["parquet_sink.outcome"] == "postponed"
    assert (first.attributes or {})["parquet_sink.wait_s"] == 8.0
    upload, _ = spans(replace(PLANNED, at_s=101.5), FILE, FLUSHED)
    assert [one.timestamp / 1e9 for one in upload.events] == [102.0]


def test_what_fails_is_an_error() -> None:
    """The flush with its failure, a file that was passed over with what was answered, records set aside as a number."""
    failure = failure_named("UploadRefused", "the target answered 403")
    refused = replace(RECEIPT, tried=(Attempt(101_000, 0.5, "refused", 422, "no such column"),), passed_over="no")
    upload, flush = spans(
        PLANNED,
        FilePassedOver("orders", 101.5, "t", 0, refused),
        RecordsSetAside("orders", 102.0, "t", 0, 10, 0, 9, {"TASK_PUT": 10}, "no"),
        RangeFailed("orders", 103.0, "t", 0, 0, 60, 10, failure),
    )
    assert (upload.status.status_code, upload.status.description) == (StatusCode.ERROR, "no such column")
    assert (flush.status.status_code, flush.status.description) == (StatusCode.ERROR, failure.message)
    assert (flush.attributes or {})["parquet_sink.set_aside"] == 10
    assert (flush.attributes or {})["parquet_sink.files"] == 0


def test_a_flush_that_never_ended_is_no_trace() -> None:
    """A query that starts again plans anew; nothing of the former range goes into the next one's trace."""
    assert spans(FILE, FLUSHED) == []
    assert spans(PLANNED, FILE, ConnectorStarting("orders", 102.5), FLUSHED) == []
    assert len(spans(PLANNED, FILE, ConnectorStarting("other", 102.5), FLUSHED)) == 2
    (flush,) = spans(PLANNED, FILE, replace(PLANNED, at_s=102.5), FLUSHED)
    assert times(flush) == (102.5, 103.0)


def test_flushes_side_by_side_do_not_mix() -> None:
    """Each topic-partition of each connector has its own."""
    other = replace(PLANNED, connector="items", partition=1)
    found = spans(PLANNED, other, FILE, replace(FLUSHED, connector="items", partition=1), FLUSHED)
    assert [(one.name, (one.attributes or {}).get("parquet_sink.connector")) for one in found] == [
        ("flush", "items"), ("upload", None), ("flush", "orders"),
    ]  # fmt: skip
    assert len({one.context.trace_id for one in found}) == 2


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Takes what is posted."""
    taken: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", taken
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_collector_gets_what_was_told(
    collector: tuple[str, list[tuple[str, bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over OTLP, where OpenTelemetry's own variable says, at the end at the latest."""
    address, taken = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    traces = Traces()
    for event in (PLANNED, FILE, FLUSHED):
        traces.on_event(event)
    traces.close([])
    ((path, body),) = taken
    sent = ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans
    assert (path, sorted(span.name for span in sent)) == ("/v1/traces", ["flush", "upload"])


def test_a_collector_that_is_away_holds_up_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits to be sent is given up after some seconds, whatever the exporter still tries."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")
    monkeypatch.setattr(module, "END_S", 0.05)
    traces = Traces()
    for event in (PLANNED, FILE, FLUSHED):
        traces.on_event(event)
    traces.close([])
    (ending,) = (thread for thread in threading.enumerate() if thread.name == "traces-end")
    ending.join(30)  # it takes random pauses, which a test of another module must not see
    assert not ending.is_alive()
