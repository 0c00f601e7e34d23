"""From checked values to settings. Nothing is judged here: everything wrong was reported before."""

import posixpath
from typing import cast

from parquet_sink.config.key import ems
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.connectors.error_handling import error_settings
from parquet_sink.connectors.reading import kafka_settings
from parquet_sink.connectors.worker import Worker
from parquet_sink.convert.configuration import build_converter, build_headers
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.files.settings import Codec, FileSettings
from parquet_sink.history import keys as history_keys
from parquet_sink.history.settings import HistorySettings
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.net.settings import ProxySettings, ProxyType
from parquet_sink.parked.keys import DIR, MAX_BYTES
from parquet_sink.parked.settings import ParkedSettings
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.shape.settings import ObfuscationMethod, ObfuscationSettings, ShapeSettings
from parquet_sink.targets.directory.address import folder_of, is_directory
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.push.value_checks import clean_authorization
from parquet_sink.targets.settings import ErrorPolicy, RetrySettings, TargetSettings
from parquet_sink.targets.table_map import MAP_KEY, TableMap, parse

ORDER_COLUMN = "__celonis_order"
_MEMORY_FOLDER = "parquet-sink"


def build(values: Values, worker: Worker) -> SinkSettings:
    """The settings of an EMS connector, from values about which there was no problem."""
    kafka = kafka_settings(values, worker)
    return SinkSettings(
        name=_text(values, "name"),
        kafka=kafka,
        flush=FlushSettings(
            commit_size_bytes=_number(values, "commit.size.bytes"),
            commit_records=_number(values, "commit.records"),
            commit_interval_ms=_number(values, "commit.interval.ms"),
        ),
        shape=_shape(values),
        files=_files(values, worker),
        target=_target(values, worker),
        tables=_tables(values),
        retry=_retry(values),
        errors=error_settings(values, worker, kafka),
        parked=_parked(values, worker),
        history=_history(values),
        value=_value(values, worker),
        key=build_converter("key", values, worker.converters, worker.machine),
        header=build_headers(values, worker.converters, worker.machine),
        registry_patience_ms=values.number("errors.retry.timeout") or 0,
        registry_pause_ms=values.number("errors.retry.delay.max.ms") or 0,
        stop_timeout_ms=_number(values, "stop.timeout.ms"),
    )


def _value(values: Values, worker: Worker) -> ConverterSettings:
    value = build_converter("value", values, worker.converters, worker.machine)
    assert value is not None
    return value


def _text(values: Values, name: str) -> str:
    text = values.text(name)
    assert text is not None, name
    return text


def _number(values: Values, name: str) -> int:
    number = values.number(ems(name))
    assert number is not None, name
    return number


def _files(values: Values, worker: Worker) -> FileSettings:
    in_memory = values.flag(ems("inmemfs.enable"))
    row_group = values.number(ems("parquet.row.group.size.bytes"))
    return FileSettings(
        tmp_dir=_tmp_dir(values, worker, in_memory),
        codec=cast(Codec, _text(values, ems("parquet.compression.codec"))),
        row_group_size_bytes=None if row_group is None else min(row_group, _number(values, "commit.size.bytes")),
        keep_files=values.flag(ems("debug.keep.parquet.files")) and not in_memory,
    )


def _tmp_dir(values: Values, worker: Worker, in_memory: bool) -> str:
    machine = worker.machine
    if in_memory and machine.memory_dir is not None:
        return posixpath.join(machine.memory_dir, _MEMORY_FOLDER)
    return _absolute(values.text(ems("tmp.dir")) or machine.tmp_dir, worker)


def _absolute(path: str, worker: Worker) -> str:
    """Worker processes of Spark may have another working directory."""
    return posixpath.normpath(posixpath.join(worker.machine.working_dir, path))


def _retry(values: Values) -> RetrySettings:
    return RetrySettings(
        error_policy=cast(ErrorPolicy, _text(values, ems("error.policy"))),
        max_retries=_number(values, "max.retries"),
        retry_interval_ms=_number(values, "retry.interval"),
        put_timeout_ms=_number(values, "sink.put.timeout.ms"),
    )


def _parked(values: Values, worker: Worker) -> ParkedSettings:
    base = values.text(DIR)
    return ParkedSettings(None if base is None else _absolute(base, worker), values.number(MAX_BYTES) or 0)


def _history(values: Values) -> HistorySettings:
    return HistorySettings(
        enabled=values.flag(history_keys.ENABLE),
        max_files=values.number(history_keys.MAX_FILES) or 0,
        max_bytes=values.number(history_keys.MAX_BYTES) or 0,
        retention_ms=values.number(history_keys.RETENTION) or 0,
    )


def _target(values: Values, worker: Worker) -> TargetSettings:
    endpoint = _text(values, ems("endpoint"))
    if is_directory(endpoint):
        return DirectorySettings(folder_of(endpoint), _text(values, ems("target.table")))
    return _push(values, worker)


def _tables(values: Values) -> TableMap:
    text = values.text(MAP_KEY)
    return TableMap() if text is None else parse(text)


def _push(values: Values, worker: Worker) -> PushSettings:
    authorization, ca_file = values.secret(ems("authorization.key")), values.text(ems("tls.ca.file"))
    assert authorization is not None
    primary_keys = values.names(ems("data.primary.key"))
    return PushSettings(
        endpoint=_text(values, ems("endpoint")),
        authorization=Secret(clean_authorization(authorization.reveal())),
        target_table=_text(values, ems("target.table")),
        connection_id=values.text(ems("connection.id")),
        fallback_varchar_length=values.number(ems("data.fallback.varchar.length")),
        primary_keys=primary_keys,
        order_column=(values.text(ems("order.field.name")) or ORDER_COLUMN) if primary_keys else None,
        connect_timeout_ms=_number(values, "http.connect.timeout.ms"),
        response_timeout_ms=_number(values, "http.response.timeout.ms"),
        ca_file=None if ca_file is None else _absolute(ca_file, worker),
        proxy=_proxy(values),
        pool_max_idle=_number(values, "pool.max.idle"),
        pool_keepalive_ms=_number(values, "pool.keepalive"),
        pool_explicit_close=values.flag(ems("pool.explicit.close")),
    )


def _proxy(values: Values) -> ProxySettings | None:
    host, port = values.text(ems("proxy.host")), values.number(ems("proxy.port"))
    if host is None or port is None:
        return None
    username, password = values.text(ems("proxy.auth.username")), values.secret(ems("proxy.auth.password"))
    signs_in = values.text(ems("proxy.auth.type")) == "BASIC" and username is not None and password is not None
    return ProxySettings(
        host=host,
        port=port,
        type=cast(ProxyType, _text(values, ems("proxy.type"))),
        username=username if signs_in else None,
        password=password if signs_in else None,
    )


def _shape(values: Values) -> ShapeSettings:
    primary_keys = values.names(ems("data.primary.key"))
    chunks = values.number(ems("flattener.jsonblob.chunks"))
    return ShapeSettings(
        flatten=values.flag(ems("flattener.enable")),
        discard_collections=values.flag(ems("flattener.collections.discard")),
        embed_metadata=values.flag(ems("embed.kafka.metadata")),
        primary_keys=primary_keys,
        allow_null_primary_keys=values.flag(ems("allow.null.pk")),
        order_field=values.text(ems("order.field.name")) if primary_keys else None,
        decimals_to_double=values.flag(ems("convert.decimals.to.double")),
        lowercase=values.flag(ems("convert.lowercase.fields")),
        chunks=chunks,
        chunk_bytes=None if chunks is None else values.number(ems("data.fallback.varchar.length")),
        explode=values.text(ems("explode.mode")) == "List",
        obfuscation=_obfuscation(values),
        tombstone_column=values.text(ems("tombstones.column")) if values.text(ems("tombstones")) == "row" else None,
    )


def _obfuscation(values: Values) -> ObfuscationSettings | None:
    """Salt and key only where the method uses them; a fixed salt wins over random ones, as in the EMS connector."""
    fields = values.names(ems("obfuscation.fields"))
    if not fields:
        return None
    method = cast(ObfuscationMethod, values.text(ems("obfuscation.method")))
    salt = values.secret(ems("obfuscation.sha512.salt")) if method == "sha512" else None
    random_salt = method == "sha512" and salt is None and values.flag(ems("obfuscation.sha512.randomsalt"))
    key = values.secret(ems("obfuscation.hmac.key")) if method == "hmac-sha256" else None
    return ObfuscationSettings(fields=fields, method=method, salt=salt, random_salt=random_salt, key=key)
