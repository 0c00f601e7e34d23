"""For PySpark programs: both data sources by name, and the sink for any DataFrame.

    from parquet_sink import spark as parquet_sink

    parquet_sink.register(session)
    with parquet_sink.connector("orders.properties", worker="worker.properties") as options:
        stream = session.readStream.format("parquet_sink_kafka").options(**options).load()
        query = (
            stream.writeStream.format("parquet_sink").options(**options)
            .option("checkpointLocation", folder).trigger(processingTime="1 second").start()
        )

The source alone, with `.option("rows", "records")`, gives one row for each record (topic, partition, offset, timestamp
in epoch milliseconds, value), for any sink. The sink takes the rows of the source as they are, one for each range: a
program may filter them by topic or topic-partition, and may not change them. Offsets are committed to the connector's
group when the micro-batch after them begins, and these offsets alone say where a query goes on: the checkpoint may be
kept from run to run, or be a new folder at each start.

DataFrames with columns of your own:

    with parquet_sink.dataframes("events.properties") as options:
        frame.writeStream.format("parquet_sink").options(**options).option("checkpointLocation", folder).start()
        other.write.format("parquet_sink").options(**options).mode("append").save()
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Final

from pyspark.sql import SparkSession

from parquet_sink.config.files import read_configuration, this_machine
from parquet_sink.config.key import ems
from parquet_sink.config.report import in_log
from parquet_sink.connectors.check import Checked, check_files
from parquet_sink.connectors.loading import load
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.notify.settings import NOTIFY_TOPIC
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.spark import handoff
from parquet_sink.spark.behind_commit import behind_commit
from parquet_sink.spark.run_folder import run_folder
from parquet_sink.spark.sink import PushSink
from parquet_sink.spark.source import KafkaRanges
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.targets.table_map import MAP_KEY
from parquet_sink.task.frame_settings import for_frame
from parquet_sink.worker_config.worker import BOOTSTRAP, BOOTSTRAP_VARIABLE, NO_ORIGIN
from parquet_sink.worker_config.worker_file import load_worker

__all__ = ["connector", "dataframes", "register"]

log = logging.getLogger(__name__)

_NO_BROKERS: Final = "none:9092"
_STANDS_IN: Final = {
    "topics": "none",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    ems("commit.interval.ms"): "1000",
    "consumer.override.bootstrap.servers": _NO_BROKERS,
}
"""Keys without which no connector file is whole, and which mean nothing for a DataFrame."""
_NO_EFFECT: Final = ("topics", "topics.regex", "value.converter", "key.converter", "consumer.override.", "tasks.max")
_INTERVAL: Final = ems("commit.interval.ms")
_METADATA: Final = ems("embed.kafka.metadata")


def register(spark: SparkSession) -> None:
    """Makes `parquet_sink_kafka` and `parquet_sink` known to a session."""
    spark.dataSource.register(KafkaRanges)
    spark.dataSource.register(PushSink)


@contextmanager
def connector(
    file: str, *, worker: str | None = None, bootstrap_servers: str | None = None
) -> Iterator[dict[str, str]]:
    """The options of both data sources for a connector file; keep it open as long as the query runs.

    file: a connector file. worker: a worker file. bootstrap_servers: brokers, which win over those of the worker file.
    The options hold no secret: they name a private folder, which is removed at the end, or by the next start after a
    kill. Raises InvalidConfiguration, also where no broker is named, StorageFailed, and AnotherInstance when the
    connector runs on this machine already.
    """
    checked = check_files([file], worker, bootstrap_servers=bootstrap_servers)
    settings = checked.require()[0]
    _check_brokers(checked, file)
    lock = ConnectorLock(settings.files.tmp_dir, settings.name)
    with (
        lock,
        _behind(settings),
        run_folder() as folder,
        _state(settings) as state,
    ):
        handoff.write(settings, folder.path, state.ids)
        yield {handoff.RUN_FOLDER: str(folder.path)}


def _check_brokers(checked: Checked, file: str) -> None:
    """Raises InvalidConfiguration where a broker would be guessed, which a program could not see."""
    if checked.worker.worker.bootstrap_origin != NO_ORIGIN or checked.connectors[0].names_brokers:
        return
    raise InvalidConfiguration(
        [
            (
                f"Invalid [{BOOTSTRAP}]. No broker is named; name it in the worker file (worker=...), in the "
                f'environment variable {BOOTSTRAP_VARIABLE}, or give bootstrap_servers="host:9092". (in {file})'
            )
        ]
    )


def _behind(settings: ConnectorSettings) -> AbstractContextManager[None]:
    return behind_commit(settings) if isinstance(settings, SinkSettings) else nullcontext()


def _state(settings: ConnectorSettings) -> closing[SqliteStore]:
    """Open as long as the query runs: SQLite removes what is beside the file when the last process closes it."""
    return closing(SqliteStore.for_new_run(handoff.state_path(settings)))


@contextmanager
def dataframes(file: str, *, worker: str | None = None) -> Iterator[dict[str, str]]:
    """The options of the sink for DataFrames; keep it open as long as queries or saves run.

    file: a connector file, whose keys about Kafka and converters may be left out. worker: a worker file, for the
    providers of secrets in it. Warnings are logged. Raises InvalidConfiguration, StorageFailed, and AnotherInstance
    when a connector of this name runs on this machine already.
    """
    settings = _frame_settings(file, worker)
    with (
        ConnectorLock(settings.files.tmp_dir, settings.name),
        behind_commit(settings),
        run_folder() as folder,
    ):
        handoff.write(settings, folder.path)
        yield {handoff.RUN_FOLDER: str(folder.path)}


def _frame_settings(file: str, worker: str | None) -> SinkSettings:
    parsed = read_configuration(file)
    if parsed.properties.get(_METADATA, "false").strip().lower() == "true":
        raise InvalidConfiguration(
            [
                (
                    f"Invalid [{_METADATA}]. Rows of a DataFrame have no Kafka metadata; leave it out, and select the "
                    f"columns that you want. (in {file})"
                )
            ]
        )
    shared = {} if worker is None else read_configuration(worker).properties
    defaults = load_worker(shared, source=worker or "no worker file", machine=this_machine()).require()
    given = {name: value for name, value in parsed.properties.items() if not _is_about_kafka(name)}
    loaded = load({**given, **_STANDS_IN}, defaults, source=file)
    for warning in (*parsed.warnings, *loaded.warnings, *_without_effect(parsed.properties)):
        log.warning("%s (in %s)", in_log(warning), file)
    settings = loaded.require()
    _check_notices(settings, file)
    return for_frame(settings)


def _check_notices(settings: SinkSettings, file: str) -> None:
    """Raises InvalidConfiguration where nobody says at which brokers the topic of notices is."""
    notify = settings.notify
    if notify is None or notify.topic is None or notify.producer.get("bootstrap.servers") != _NO_BROKERS:
        return
    raise InvalidConfiguration(
        [
            (
                f'Invalid [{NOTIFY_TOPIC}]. A DataFrame has no brokers at which topic "{notify.topic}" would be; name '
                f"them in producer.override.bootstrap.servers. (in {file})"
            )
        ]
    )


def _is_about_kafka(name: str) -> bool:
    return name.startswith(_NO_EFFECT) or name in (_INTERVAL, MAP_KEY)


def _without_effect(properties: Mapping[str, str]) -> Iterator[str]:
    for name in properties:
        if name == _INTERVAL:
            yield f"Warning [{name}]. It has no effect for a DataFrame: the trigger of the query says when a batch is."
        elif name == MAP_KEY:
            yield f"Warning [{name}]. It has no effect for a DataFrame, whose rows have no topic: all go to one table."
        elif _is_about_kafka(name):
            yield f"Warning [{name}]. It has no effect for a DataFrame, whose rows Spark has read and decoded."
