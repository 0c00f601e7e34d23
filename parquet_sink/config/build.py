"""From checked values to settings. Nothing is judged here: everything wrong was told before."""

import posixpath
from collections.abc import Mapping
from typing import Literal, cast

from parquet_sink.config import client
from parquet_sink.config.build_converter import build_converter
from parquet_sink.config.build_shape import build_shape
from parquet_sink.config.checks import clean_authorization
from parquet_sink.config.key import ems
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.config.worker import Worker
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.files.settings import Codec, FileSettings
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.net.settings import ProxySettings, ProxyType
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.targets.push.settings import ErrorPolicy, PushSettings

ORDER_COLUMN = "__celonis_order"
_OVERRIDE = "consumer.override."
_MEMORY_FOLDER = "parquet-sink"


def build(values: Values, override: Mapping[str, client.Setting], worker: Worker) -> SinkSettings:
    """override: the connector's consumer.override.* settings without that prefix."""
    name = _text(values, "name")
    return SinkSettings(
        name=name,
        kafka=_kafka(name, values, override, worker),
        flush=FlushSettings(
            commit_size_bytes=_number(values, "commit.size.bytes"),
            commit_records=_number(values, "commit.records"),
            commit_interval_ms=_number(values, "commit.interval.ms"),
        ),
        shape=build_shape(values),
        files=_files(values, worker),
        push=_push(values, worker),
        value=_value(values, worker),
        key=build_converter("key", values, worker.converters, worker.machine),
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


def _kafka(name: str, values: Values, override: Mapping[str, client.Setting], worker: Worker) -> KafkaSettings:
    isolation = values.text(f"{_OVERRIDE}isolation.level") or worker.isolation_level or "read_committed"
    reset = values.text(f"{_OVERRIDE}auto.offset.reset") or worker.offset_reset or "earliest"
    servers = ",".join(values.names(f"{_OVERRIDE}bootstrap.servers")) or worker.bootstrap_servers
    return KafkaSettings(
        topics=values.names("topics"),
        topics_regex=values.text("topics.regex"),
        group=values.text(f"{_OVERRIDE}group.id") or f"connect-{name}",
        client=client.merge(servers, worker.consumer, override),
        isolation_level=cast(Literal["read_committed", "read_uncommitted"], isolation),
        offset_reset=cast(Literal["earliest", "latest", "none"], reset),
        lost_offsets=cast(Literal["STOP", "CONTINUE"], _text(values, ems("lost.offsets.policy"))),
        tasks_max=values.number("tasks.max"),
    )


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
        error_policy=cast(ErrorPolicy, _text(values, ems("error.policy"))),
        max_retries=_number(values, "max.retries"),
        retry_interval_ms=_number(values, "retry.interval"),
        put_timeout_ms=_number(values, "sink.put.timeout.ms"),
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
