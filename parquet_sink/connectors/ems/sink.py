"""The EMS sink, and the same with a bucket as its only target, as connector classes: keys, checks, settings."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from parquet_sink.archive.settings import URL, ArchiveSettings
from parquet_sink.config.declared import declared, key, keys_of, made
from parquet_sink.config.key import PREFIX, Key, Origin
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors.connect_keys import CONNECT_KEYS, CONNECTOR_KEYS
from parquet_sink.connectors.ems import checks
from parquet_sink.connectors.reading import error_settings, kafka_settings, producer_client
from parquet_sink.convert.configuration import build_converter, build_headers
from parquet_sink.convert.keys import CONVERTER_KEYS, PREFIXES
from parquet_sink.files import naming
from parquet_sink.files.settings import CODEC, FileSettings
from parquet_sink.history.settings import HistorySettings
from parquet_sink.kafka.settings import OVERRIDE_KEYS, TOPIC_KEYS, FlushSettings, KafkaSettings
from parquet_sink.net.settings import HttpSettings
from parquet_sink.notify.settings import NOTIFY_TOPIC, NOTIFY_URL, NotifySettings
from parquet_sink.parked.settings import ParkedSettings
from parquet_sink.rows.settings import OBFUSCATION_KEYS, PRIMARY_KEYS, RAW_ORDER, SHAPE_KEYS, ShapeSettings
from parquet_sink.settings.connector import ErrorSettings, RestartSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.keys import ERROR_KEYS, OTHER_TARGET_KEYS, TARGET_KEYS
from parquet_sink.targets.s3.settings import IDLE, TYPE_NAME
from parquet_sink.targets.target_class import TYPE, target_of
from parquet_sink.transform.keys import TRANSFORM_KEYS
from parquet_sink.worker_config.worker import Worker


@declared(group="Removed keys", prefix=PREFIX, origin=Origin.EMS)
class _RemovedKeys:
    """Of former versions of the EMS connector; each is accepted with a warning."""

    client_id: ClassVar[str] = key(
        "client.id",
        "The client's name at the target, which is fixed today.",
        deprecated="the client's name at the target is fixed; remove the key.",
    )
    row_group_records: ClassVar[str] = key(
        "parquet.write.flush.records",
        "Old name of a row group's size.",
        deprecated="use connect.ems.parquet.row.group.size.bytes (bytes, not records) or remove the key.",
    )


EMS_KEYS: Final[tuple[Key, ...]] = (
    *CONNECTOR_KEYS,
    *TOPIC_KEYS,
    *OVERRIDE_KEYS,
    *CONVERTER_KEYS,
    *TRANSFORM_KEYS,
    *TARGET_KEYS,
    *keys_of(FlushSettings),
    *keys_of(FileSettings),
    *SHAPE_KEYS,
    *ERROR_KEYS,
    *keys_of(RestartSettings),
    *keys_of(ErrorSettings),
    *keys_of(ParkedSettings),
    *keys_of(HistorySettings),
    *OTHER_TARGET_KEYS,
    *keys_of(ArchiveSettings),
    *keys_of(NotifySettings),
    *keys_of(HttpSettings),
    *OBFUSCATION_KEYS,
    *CONNECT_KEYS,
    *keys_of(_RemovedKeys),
)
"""Each room's keys, in the order of the documentation."""


class EmsSink:
    """Topics into Parquet files, and those to the push API, with the EMS Kafka connector's keys."""

    keys: Sequence[Key] = EMS_KEYS
    prefixes: Sequence[str] = (PREFIX, *PREFIXES)

    def check(self, values: Values, worker: Worker, report: Report) -> None:
        checks.check(values, worker, report)

    def settings(self, values: Values, worker: Worker) -> SinkSettings:
        machine, kafka, target = worker.machine, kafka_settings(values, worker), target_of(values)
        codec = {} if target.codec is None or CODEC in values.given else {"codec": target.codec}
        files = made(FileSettings, values, machine, **codec)
        waiting = naming.waiting_folder(files.tmp_dir, str(values.text("name")))
        return made(
            SinkSettings,
            values,
            machine,
            kafka=kafka,
            files=files,
            target=target.settings(values, machine),
            errors=error_settings(values, worker, kafka),
            notify=_notices(values, worker, kafka, files.tmp_dir, target.settings(values, machine).target_table),
            archive=made(ArchiveSettings, values, machine, waiting=waiting) if values.text(URL) else None,
            **(_raw_rows(values) if checks.is_raw(values) else _converters(values, worker)),
        )


def _notices(values: Values, worker: Worker, kafka: KafkaSettings, tmp_dir: str, table: str) -> NotifySettings | None:
    if values.text(NOTIFY_TOPIC) is None and values.text(NOTIFY_URL) is None:
        return None
    return made(
        NotifySettings,
        values,
        worker.machine,
        table=table,
        waiting=naming.notices_folder(tmp_dir, str(values.text("name"))),
        http=made(HttpSettings, values, worker.machine),
        producer=producer_client(values, worker, kafka),
    )


def _converters(values: Values, worker: Worker) -> dict[str, Any]:
    files = values, worker.converters, worker.machine
    return {
        "value": build_converter("value", *files),
        "key": build_converter("key", *files),
        "header": build_headers(*files),
    }


def _raw_rows(values: Values) -> dict[str, Any]:
    primary_keys = values.names(PRIMARY_KEYS)
    return {
        "shape": ShapeSettings(raw=True, primary_keys=primary_keys, order_field=RAW_ORDER if primary_keys else None)
    }


def _of_buckets(one: Key) -> Key:
    if one.name == TYPE:
        doc = "What takes the files; this class knows buckets only."
        return replace(one, default=TYPE_NAME, choices=(TYPE_NAME,), doc=doc)
    return replace(one, default="none", default_text="") if one.name == CODEC else one


class S3Sink(EmsSink):
    """Topics into Parquet files, and those into a bucket of S3; without the keys of the push API."""

    keys: Sequence[Key] = tuple(_of_buckets(one) for one in EMS_KEYS if one.name not in IDLE)
