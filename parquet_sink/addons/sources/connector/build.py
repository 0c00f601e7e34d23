"""From checked values to the settings of a source: what any class of sources gives beside its own tasks."""

from collections.abc import Mapping, Sequence

from parquet_sink.addons.sources.settings import SERVERS_KEY, SourceSettings
from parquet_sink.config.declared import made
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.convert.configuration import build_converter, build_headers
from parquet_sink.convert.plain.settings import BYTES
from parquet_sink.convert.settings import Converter
from parquet_sink.kafka import client_settings
from parquet_sink.kafka.client_settings import ClientSetting
from parquet_sink.worker_config.worker import Worker


def source_settings(
    values: Values,
    worker: Worker,
    *,
    task: str,
    tasks: Sequence[Mapping[str, str | Secret]],
    origin: str,
    topics: Sequence[str],
    spool: str | None = None,
) -> SourceSettings:
    """Of values about which there was no problem.

    task: of the class of tasks, as `module:Class`. tasks: what each of them is told. origin: what is read, in words.
    topics: that records go to, as far as that is known. spool: a file that standard input
    is copied to, where that is read: no position is kept of it beyond a run.
    """
    return made(
        SourceSettings,
        values,
        worker.machine,
        task=task,
        tasks=tuple(tasks),
        origin=origin,
        topics=tuple(topics),
        storage=worker.offset_storage if spool is None else None,
        spool=spool,
        producer=_producer(values, worker),
        value=_converter("value", values, worker),
        key=_converter("key", values, worker),
        header=build_headers(values, worker.converters, worker.machine),
    )


def _converter(side: str, values: Values, worker: Worker) -> Converter:
    """Keys without a converter are bytes."""
    found = build_converter("key" if side == "key" else "value", values, worker.converters, worker.machine)
    return found or BYTES


def _producer(values: Values, worker: Worker) -> dict[str, ClientSetting]:
    shared = client_settings.shared_with_consumer(worker.consumer)
    override = client_settings.under("producer.override.", values.texts)
    servers = ",".join(values.names(SERVERS_KEY)) or str(
        worker.producer.get("bootstrap.servers", worker.bootstrap_servers)
    )
    return {**shared, **worker.producer, **override, "bootstrap.servers": servers}
