"""From checked values to settings. Nothing is judged here: everything wrong was reported before."""

from typing import Any, cast

from parquet_sink.archive.settings import URL, ArchiveSettings
from parquet_sink.config.declared import made
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems.raw_checks import is_raw
from parquet_sink.connectors.ems.required import number, text
from parquet_sink.connectors.error_handling import error_settings
from parquet_sink.connectors.reading import kafka_settings
from parquet_sink.convert.configuration import build_converter, build_headers
from parquet_sink.files import naming
from parquet_sink.files.settings import CODEC, Codec, FileSettings
from parquet_sink.history.settings import HistorySettings
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.parked.settings import ParkedSettings
from parquet_sink.rows.settings import PRIMARY_KEYS, RAW_ORDER, ShapeSettings
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.settings import RetrySettings
from parquet_sink.targets.table_map import MAP_KEY, TableMap, parse
from parquet_sink.targets.target_class import target_of
from parquet_sink.worker_config.worker import Worker


def build(values: Values, worker: Worker) -> SinkSettings:
    """The settings of an EMS connector, from values about which there was no problem."""
    kafka, machine = kafka_settings(values, worker), worker.machine
    files = made(FileSettings, values, machine, codec=_codec(values))
    raw = is_raw(values)
    return SinkSettings(
        name=text(values, "name"),
        kafka=kafka,
        flush=made(FlushSettings, values, machine),
        shape=_raw_shape(values) if raw else made(ShapeSettings, values, machine),
        files=files,
        target=target_of(values).settings(values, machine),
        tables=_tables(values),
        retry=made(RetrySettings, values, machine),
        errors=error_settings(values, worker, kafka),
        parked=made(ParkedSettings, values, machine),
        history=made(HistorySettings, values, machine),
        archive=_archive(values, worker, files.tmp_dir),
        restart=made(RestartSettings, values, machine),
        **({} if raw else _converters(values, worker)),
        registry_patience_ms=values.number("errors.retry.timeout") or 0,
        registry_pause_ms=values.number("errors.retry.delay.max.ms") or 0,
        stop_timeout_ms=number(values, "stop.timeout.ms"),
    )


def _converters(values: Values, worker: Worker) -> dict[str, Any]:
    """Fields of SinkSettings."""
    value = build_converter("value", values, worker.converters, worker.machine)
    assert value is not None
    key = build_converter("key", values, worker.converters, worker.machine)
    return {"value": value, "key": key, "header": build_headers(values, worker.converters, worker.machine)}


def _codec(values: Values) -> Codec:
    """That of the target, unless the file says another."""
    usual = target_of(values).codec
    return cast(Codec, text(values, CODEC)) if usual is None or CODEC in values.given else usual


def _archive(values: Values, worker: Worker, tmp_dir: str) -> ArchiveSettings | None:
    if values.text(URL) is None:
        return None
    waiting = naming.waiting_folder(tmp_dir, text(values, "name"))
    return made(ArchiveSettings, values, worker.machine, waiting=waiting)


def _tables(values: Values) -> TableMap:
    text = values.text(MAP_KEY)
    return TableMap() if text is None else parse(text)


def _raw_shape(values: Values) -> ShapeSettings:
    primary_keys = values.names(PRIMARY_KEYS)
    return ShapeSettings(raw=True, primary_keys=primary_keys, order_field=RAW_ORDER if primary_keys else None)
