"""Checks of any source that look at more than one key."""

from typing import Final

from parquet_sink.addons.sources.settings import SERVERS_KEY
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.values import Values
from parquet_sink.convert import configuration
from parquet_sink.convert.configuration import choose
from parquet_sink.convert.json.settings import JsonConverter
from parquet_sink.convert.settings import SIDES
from parquet_sink.kafka import client_settings
from parquet_sink.kafka.settings import PRODUCER
from parquet_sink.worker_config.worker import BOOTSTRAP_OPTION, BOOTSTRAP_VARIABLE, Worker

_OF_KAFKA: Final = ("offset.field", "partition.field")


def check(values: Values, worker: Worker, report: Report, *, of_input: bool = False) -> None:
    """Tell what is wrong between keys. of_input: it reads standard input, of which no position is kept."""
    configuration.check(values, worker.converters, worker.source, worker.machine, report)
    _converters(values, worker, report)
    _transforms(values, worker, report)
    override = client_settings.under(PRODUCER, values.texts)
    client_settings.check_policy(worker.override_policy, override, report, PRODUCER)
    for name in sorted(one for one in values.given if one.startswith("topic.creation.")):
        report.problem(name, "Topics are not made here; make it, or let the brokers make it, and remove the key.")
    if SERVERS_KEY in values.given and worker.bootstrap_origin in (BOOTSTRAP_OPTION, BOOTSTRAP_VARIABLE):
        report.warn(SERVERS_KEY, f"It wins over {worker.bootstrap_origin} for this connector.")
    if not of_input and worker.offset_storage is None:
        report.problem(
            "offset.storage.file.filename",
            "A source keeps its positions there, and the worker file (--worker) names neither that file nor "
            "offset.storage.topic; name one of them there.",
        )


def _converters(values: Values, worker: Worker, report: Report) -> None:
    for side in SIDES:
        chosen = choose(side, values, worker.converters)
        if chosen is None or chosen.writes:
            continue
        where = "" if f"{side}.converter" in values.given else f" It is set in {worker.source}."
        report.problem(
            f"{side}.converter",
            f"{quoted(chosen.name)} only reads here; for a source set StringConverter, JsonConverter or "
            f"ByteArrayConverter.{where}",
        )


def _transforms(values: Values, worker: Worker, report: Report) -> None:
    """What a transform asks of a record that only Kafka can tell, and names that are not kept."""
    value = choose("value", values, worker.converters)
    for name in values.names("transforms"):
        type_ = values.texts.get(f"transforms.{name}.type", "").partition("$")[0].rpartition(".")[2]
        for field in _OF_KAFKA:
            if type_ == "InsertField" and values.texts.get(key := f"transforms.{name}.{field}", "").strip():
                report.problem(key, "A record has none before it is in Kafka; remove the key.")
        enveloped = value is not None and value.converter is JsonConverter and value.values.flag("schemas.enable")
        if type_ == "SetSchemaMetadata" and enveloped:
            report.problem(
                f"transforms.{name}.type",
                "SetSchemaMetadata names schemas, and names are not kept on the way to JsonConverter; remove it, or "
                "set value.converter.schemas.enable=false.",
            )
