"""Where a sink reads from: the keys of topics and consumers together with the worker's, for any sink class."""

from typing import Final, Literal, cast

from parquet_sink.config.key import ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.kafka import client_settings
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.worker_config.worker import BOOTSTRAP_OPTION, BOOTSTRAP_VARIABLE, Worker

OVERRIDE: Final = "consumer.override."


def check(values: Values, worker: Worker, report: Report) -> None:
    """Tell what is wrong with topics, brokers and overridden settings of the consumer."""
    _topics(values, report)
    _servers(values, worker, report)
    override = client_settings.under(OVERRIDE, values.texts)
    client_settings.check_policy(worker.override_policy, override, report)


def kafka_settings(values: Values, worker: Worker) -> KafkaSettings:
    """Where a sink reads from, of values about which there was no problem."""
    isolation = values.text(f"{OVERRIDE}isolation.level") or worker.isolation_level or "read_committed"
    reset = values.text(f"{OVERRIDE}auto.offset.reset") or worker.offset_reset or "earliest"
    servers = ",".join(values.names(f"{OVERRIDE}bootstrap.servers")) or worker.bootstrap_servers
    return KafkaSettings(
        topics=values.names("topics"),
        topics_regex=values.text("topics.regex"),
        group=values.text(f"{OVERRIDE}group.id") or f"connect-{values.text('name')}",
        client=client_settings.merge(servers, worker.consumer, client_settings.under(OVERRIDE, values.texts)),
        isolation_level=cast(Literal["read_committed", "read_uncommitted"], isolation),
        offset_reset=cast(Literal["earliest", "latest", "none"], reset),
        lost_offsets=cast(Literal["STOP", "CONTINUE"], values.text(ems("lost.offsets.policy"))),
        tasks_max=values.number("tasks.max"),
    )


def _topics(values: Values, report: Report) -> None:
    given = {"topics", "topics.regex"} & values.given
    if len(given) == 2:
        report.problem("topics", "Both topics and topics.regex are set; keep one of them.")
    if not given:
        report.problem("topics", "Neither topics nor topics.regex is set; name the topics to read.")


def _servers(values: Values, worker: Worker, report: Report) -> None:
    name = "consumer.override.bootstrap.servers"
    if name in values.given and worker.bootstrap_origin in (BOOTSTRAP_OPTION, BOOTSTRAP_VARIABLE):
        report.warn(name, f"It wins over {worker.bootstrap_origin} for this connector.")
