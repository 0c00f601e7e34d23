"""What any sink that takes records has: its keys beside those of its own, their check, and its settings."""

from typing import Final

from parquet_sink.config.declared import keys_of, made
from parquet_sink.config.key import Key, Origin, Type, ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors import error_handling, reading
from parquet_sink.connectors.connect_keys import CONNECT_KEYS, CONNECTOR_KEYS
from parquet_sink.convert import configuration
from parquet_sink.convert.configuration import build_converter, build_headers
from parquet_sink.convert.json.settings import PLAIN_JSON
from parquet_sink.convert.keys import CONVERTER_KEYS
from parquet_sink.kafka.settings import INTERVAL, NAME_KEY, OVERRIDE_KEYS, TOPIC_KEYS, FlushSettings
from parquet_sink.settings.connector import TOLERANCE, ErrorSettings, RestartSettings
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.targets.record_sink_setup import RecordSinkSetup
from parquet_sink.targets.settings import ERRORS
from parquet_sink.transform.keys import TRANSFORM_KEYS
from parquet_sink.worker_config.worker import Worker

DELIVERY: Final = "Delivery: when records are handed over"
TMP_DIR: Final = ems("tmp.dir")
STOP: Final = ems("stop.timeout.ms")
_MOST_BYTES: Final = 64_000_000
_MOST_RECORDS: Final = 100_000

DELIVERY_KEYS: Final = (
    Key(
        INTERVAL,
        DELIVERY,
        Type.LONG,
        "Records are handed over when the oldest one of a topic-partition arrived this many milliseconds ago, or when "
        f"there are {_MOST_RECORDS:,}. Their offsets are committed once the sink has them durably.",
        default=1_000,
        minimum=1_000,
        origin=Origin.OWN,
    ),
    Key(
        TMP_DIR,
        DELIVERY,
        Type.STRING,
        "Folder for the connector's lock and state; made when it is not there.",
        default_text="the system's temporary folder; in a worker `connectors` below `config.storage.folder`",
        origin=Origin.OWN,
    ),
    Key(
        STOP,
        ERRORS,
        Type.LONG,
        "How long a stop waits for the flush in progress, in milliseconds; connectors of a process stop side by side. "
        "Then it is given up, and its records are delivered again at the next start.",
        default=30_000,
        minimum=0,
        origin=Origin.OWN,
    ),
)

RECORD_SINK_KEYS: Final[tuple[Key, ...]] = (
    *CONNECTOR_KEYS,
    *TOPIC_KEYS,
    *OVERRIDE_KEYS,
    *CONVERTER_KEYS,
    *TRANSFORM_KEYS,
    *DELIVERY_KEYS,
    *keys_of(RestartSettings),
    *keys_of(ErrorSettings),
    *CONNECT_KEYS,
)
"""Those of a class begin or end with these."""


def check(values: Values, worker: Worker, report: Report) -> None:
    """Every rule of these keys that needs two of them, or a key and the machine."""
    reading.check(values, worker, report)
    configuration.check(values, worker.converters, worker.source, worker.machine, report)
    error_handling.check(values, worker, report)
    if values.text(TOLERANCE) == "all" and values.text(NAME_KEY) is None:
        report.problem(
            TOLERANCE,
            f"With all, records that fail are passed over, and there is no {NAME_KEY} to keep them in; name one, or "
            "leave none.",
        )
    tmp_dir = values.text(TMP_DIR)
    if tmp_dir is not None and worker.machine.is_file(worker.machine.absolute(tmp_dir)):
        report.problem(TMP_DIR, f"{values.quoted(TMP_DIR)} is a file; name a folder.")


def settings(values: Values, worker: Worker, sink: RecordSinkSetup) -> RecordSinkSettings:
    """Of values about which there was no problem. sink: where the records go."""
    kafka, machine = reading.kafka_settings(values, worker), worker.machine
    name, interval_ms, stop_ms = values.text("name"), values.number(INTERVAL), values.number(STOP)
    assert name is not None
    assert interval_ms is not None
    assert stop_ms is not None
    return RecordSinkSettings(
        name=name,
        kafka=kafka,
        flush=FlushSettings(_MOST_BYTES, _MOST_RECORDS, interval_ms),
        sink=sink,
        tmp_dir=machine.absolute(values.text(TMP_DIR) or machine.tmp_dir),
        value=build_converter("value", values, worker.converters, machine) or PLAIN_JSON,
        key=build_converter("key", values, worker.converters, machine),
        header=build_headers(values, worker.converters, machine),
        errors=error_handling.error_settings(values, worker, kafka),
        restart=made(RestartSettings, values, machine),
        registry_patience_ms=values.number("errors.retry.timeout") or 0,
        registry_pause_ms=values.number("errors.retry.delay.max.ms") or 0,
        stop_timeout_ms=stop_ms,
    )
