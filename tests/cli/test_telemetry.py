"""Whether traces are sent: what OpenTelemetry's variables say is honoured, or told."""

import sys

import pytest

from parquet_sink.cli.telemetry import trace_listeners

NAMED = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {**NAMED, "OTEL_SDK_DISABLED": "true"},
        {**NAMED, "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_without_a_collector_there_are_no_traces(environment: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    """Nor is anything loaded or said."""
    assert trace_listeners(environment) == []
    assert caplog.messages == []


def test_another_protocol_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """The variables are for all programs of a machine, so it is no error."""
    assert trace_listeners({**NAMED, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) == []
    assert caplog.messages == [
        "OTEL_EXPORTER_OTLP_ENDPOINT names a collector, but traces are sent by http/protobuf alone, and not by grpc."
    ]


def test_a_missing_extra_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """With the command that cures it; the connectors run."""
    monkeypatch.setitem(sys.modules, "parquet_sink.worker.metrics.traces", None)
    assert trace_listeners({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}) == []
    assert "pip install '.[traces]'" in caplog.text


def test_with_a_collector_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Isolated: whatever goes wrong with it ends nothing."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    (listener,) = trace_listeners(NAMED)
    listener.close([])
