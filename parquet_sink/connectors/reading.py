"""What any sink has: topics, consumer, dead letters and folder, by its keys together with the worker's."""

import re
from typing import Final

from parquet_sink.config.declared import made
from parquet_sink.config.report import Report
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.files.settings import TMP_DIR
from parquet_sink.kafka import client_settings
from parquet_sink.kafka.settings import ADMIN, CONSUMER, NAME_KEY, PRODUCER, DeadLetterSettings, KafkaSettings
from parquet_sink.notify.settings import NOTIFY_TOPIC
from parquet_sink.settings.connector import ErrorSettings, tolerates
from parquet_sink.worker_config.internal_topics import find_internal_topics
from parquet_sink.worker_config.worker import BOOTSTRAP_OPTION, BOOTSTRAP_VARIABLE, Worker

SERVERS: Final = f"{CONSUMER}bootstrap.servers"


def check(values: Values, worker: Worker, report: Report) -> None:
    """Report what is wrong with topics, brokers and overridden settings of the consumer."""
    given = {"topics", "topics.regex"} & values.given
    if len(given) == 2:
        report.problem("topics", "Both topics and topics.regex are set; keep one of them.")
    if not given:
        report.problem("topics", "Neither topics nor topics.regex is set; name the topics to read.")
    if SERVERS in values.given and worker.bootstrap_origin in (BOOTSTRAP_OPTION, BOOTSTRAP_VARIABLE):
        report.warn(SERVERS, f"It wins over {worker.bootstrap_origin} for this connector.")
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
        internal=tuple(sorted(find_internal_topics(worker))),
    )


def check_errors(values: Values, worker: Worker, report: Report) -> None:
    """Report what is wrong with the dead-letter topic, and with settings of its clients."""
    name = values.text(NAME_KEY)
    if name is not None:
        _check_dead_letter_topic(name, values, report)
    notices = values.text(NOTIFY_TOPIC) if values.knows(NOTIFY_TOPIC) else None
    if name is None and notices is None:
        others = f" or {NOTIFY_TOPIC}" if values.knows(NOTIFY_TOPIC) else ""
        for given in sorted(one for one in values.given if one.startswith(PRODUCER)):
            report.warn(given, f"It has no effect unless {NAME_KEY}{others} is set.")
    for prefix in (PRODUCER, ADMIN):
        override = client_settings.under(prefix, values.texts)
        client_settings.check_policy(worker.override_policy, override, report, prefix)


def error_settings(values: Values, worker: Worker, kafka: KafkaSettings) -> ErrorSettings:
    """What becomes of errors, of values about which there was no problem."""
    return made(ErrorSettings, values, worker.machine, dead_letters=_dead_letters(values, worker, kafka))


def check_folder(values: Values, worker: Worker, report: Report) -> None:
    """Report a file where the folder for temporary files should be."""
    tmp_dir = values.text(TMP_DIR)
    if tmp_dir is not None and worker.machine.is_file(worker.machine.absolute(tmp_dir)):
        report.problem(TMP_DIR, f"{values.quoted(TMP_DIR)} is a file; name a folder.")


def _dead_letters(values: Values, worker: Worker, kafka: KafkaSettings) -> DeadLetterSettings | None:
    if values.text(NAME_KEY) is None:
        return None
    shared = client_settings.shared_with_consumer(kafka.client)
    producer = producer_client(values, worker, kafka)
    admin = {**shared, **worker.admin, **client_settings.under(ADMIN, values.texts)}
    return made(DeadLetterSettings, values, worker.machine, producer=producer, admin=admin)


def producer_client(values: Values, worker: Worker, kafka: KafkaSettings) -> dict[str, str | Secret]:
    """Settings of the connector's producer, of dead letters and of notices."""
    shared = client_settings.shared_with_consumer(kafka.client)
    return {**shared, **worker.producer, **client_settings.under(PRODUCER, values.texts)}


def _check_dead_letter_topic(name: str, values: Values, report: Report) -> None:
    pattern = values.text("topics.regex")
    if name in values.names("topics") or (pattern is not None and re.fullmatch(pattern, name)):
        which = "topics.regex matches it" if pattern is not None else "topics names it"
        report.problem(
            NAME_KEY,
            f"{values.quoted(NAME_KEY)} is one of the connector's own topics ({which}), so it would read its dead "
            "letters; name another.",
        )
    if not tolerates(values):
        report.warn(
            NAME_KEY, "With errors.tolerance=none the connector stops at the first record there; set all to go on."
        )
