"""What is told of connectors beside log lines and figures: traces, where the environment names a collector for them."""

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from parquet_sink.errors import install

if TYPE_CHECKING:
    from parquet_sink.worker.loop.events import Listener

log = logging.getLogger(__name__)

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
HTTP: Final = "http/protobuf"


def trace_listeners(environment: Mapping[str, str] | None = None) -> "list[Listener]":
    """One that sends traces, if a collector is named by OpenTelemetry's own variables; none otherwise.

    Such variables are set for every program of a machine, so what cannot be honoured is a warning and no error.
    """
    given = os.environ if environment is None else environment
    named = next((name for name in _ENDPOINTS if given.get(name)), None)
    off = given.get("OTEL_SDK_DISABLED", "").lower() == "true" or given.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp"
    if named is None or off:
        return []
    protocol = next((given[name] for name in _PROTOCOLS if given.get(name)), HTTP)
    if protocol != HTTP:
        log.warning("%s names a collector, but traces are sent by %s alone, and not by %s.", named, HTTP, protocol)
        return []
    try:
        from parquet_sink.worker.metrics.traces import Traces
    except ModuleNotFoundError as error:
        log.warning("%s names a collector, but traces need an extra (%s). %s", named, error, install("traces"))
        return []
    from parquet_sink.worker.loop.events import Isolated

    return [Isolated("traces", Traces)]
