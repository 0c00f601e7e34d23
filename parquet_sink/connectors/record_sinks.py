"""What any sink that takes records has: its keys beside those of its own, their check, and its settings."""

from typing import Final

from parquet_sink.config.declared import keys_of, made
from parquet_sink.config.key import Key
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors import reading
from parquet_sink.connectors.connect_keys import CONNECT_KEYS, CONNECTOR_KEYS
from parquet_sink.convert import configuration
from parquet_sink.convert.configuration import build_converter, build_headers
from parquet_sink.convert.json.settings import PLAIN_JSON
from parquet_sink.convert.keys import CONVERTER_KEYS
from parquet_sink.kafka.settings import NAME_KEY, OVERRIDE_KEYS, TOPIC_KEYS
from parquet_sink.notify.settings import NOTIFY_TOPIC, NOTIFY_URL
from parquet_sink.settings.connector import TOLERANCE, ErrorSettings
from parquet_sink.settings.record_sink import DELIVERY, RecordSinkSettings
from parquet_sink.targets.settings import ERRORS, RecordSinkSetup
from parquet_sink.transform.keys import TRANSFORM_KEYS
from parquet_sink.worker_config.worker import Worker

RECORD_SINK_KEYS: Final[tuple[Key, ...]] = (
    *CONNECTOR_KEYS,
    *TOPIC_KEYS,
    *OVERRIDE_KEYS,
    *CONVERTER_KEYS,
    *TRANSFORM_KEYS,
    *keys_of(RecordSinkSettings, DELIVERY),
    *keys_of(RecordSinkSettings, ERRORS),
    *keys_of(ErrorSettings),
    *CONNECT_KEYS,
)
"""Those of a class begin or end with these."""


def check(values: Values, worker: Worker, report: Report) -> None:
    """Every rule of these keys that needs two of them, or a key and the machine."""
    reading.check(values, worker, report)
    configuration.check(values, worker.converters, worker.source, worker.machine, report)
    reading.check_errors(values, worker, report)
    if values.text(TOLERANCE) == "all" and values.text(NAME_KEY) is None:
        report.problem(
            TOLERANCE,
            f"With all, records that fail are diverted, and there is no {NAME_KEY} to keep them in; name one, or "
            "leave none.",
        )
    reading.check_folder(values, worker, report)
    for name in (NOTIFY_TOPIC, NOTIFY_URL):
        if name in values.given and not values.knows(name):
            report.problem(name, "Notices are of files, and this class sends records to its target; leave it out.")


def settings(values: Values, worker: Worker, sink: RecordSinkSetup) -> RecordSinkSettings:
    """Of values about which there was no problem. sink: where the records go."""
    kafka, machine = reading.kafka_settings(values, worker), worker.machine
    return made(
        RecordSinkSettings,
        values,
        machine,
        kafka=kafka,
        sink=sink,
        value=build_converter("value", values, worker.converters, machine) or PLAIN_JSON,
        key=build_converter("key", values, worker.converters, machine),
        header=build_headers(values, worker.converters, machine),
        errors=reading.error_settings(values, worker, kafka),
    )
