"""Where a sink reads from: the keys of topics and consumers together with the worker's, for any sink class."""

from typing import Final

from parquet_sink.config.declared import made
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.kafka import client_settings
from parquet_sink.kafka.settings import CONSUMER, KafkaSettings
from parquet_sink.worker_config.worker import BOOTSTRAP_OPTION, BOOTSTRAP_VARIABLE, Worker

SERVERS: Final = f"{CONSUMER}bootstrap.servers"


def check(values: Values, worker: Worker, report: Report) -> None:
    """Tell what is wrong with topics, brokers and overridden settings of the consumer."""
    _topics(values, report)
    _servers(values, worker, report)
    override = client_settings.under(CONSUMER, values.texts)
    client_settings.check_policy(worker.override_policy, override, report)


def kafka_settings(values: Values, worker: Worker) -> KafkaSettings:
    """Where a sink reads from, of values about which there was no problem."""
    servers = ",".join(values.names(SERVERS)) or worker.bootstrap_servers
    return made(
        KafkaSettings,
        values,
        worker.machine,
        client=client_settings.merge(servers, worker.consumer, client_settings.under(CONSUMER, values.texts)),
        isolation_level=values.text(f"{CONSUMER}isolation.level") or worker.isolation_level or "read_committed",
        offset_reset=values.text(f"{CONSUMER}auto.offset.reset") or worker.offset_reset or "earliest",
    )


def _topics(values: Values, report: Report) -> None:
    given = {"topics", "topics.regex"} & values.given
    if len(given) == 2:
        report.problem("topics", "Both topics and topics.regex are set; keep one of them.")
    if not given:
        report.problem("topics", "Neither topics nor topics.regex is set; name the topics to read.")


def _servers(values: Values, worker: Worker, report: Report) -> None:
    if SERVERS in values.given and worker.bootstrap_origin in (BOOTSTRAP_OPTION, BOOTSTRAP_VARIABLE):
        report.warn(SERVERS, f"It wins over {worker.bootstrap_origin} for this connector.")
