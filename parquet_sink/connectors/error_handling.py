"""What becomes of errors: the keys of dead letters and tolerance together with the worker's, for any sink class."""

import re

from parquet_sink.config.declared import made
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.kafka import client_settings
from parquet_sink.kafka.settings import ADMIN, NAME_KEY, PRODUCER, DeadLetterSettings, KafkaSettings
from parquet_sink.settings.connector import ErrorSettings, tolerates
from parquet_sink.worker_config.worker import Worker


def check(values: Values, worker: Worker, report: Report) -> None:
    """Tell what is wrong with the dead-letter topic, and with settings of its clients."""
    name = values.text(NAME_KEY)
    if name is not None:
        _check_topic(name, values, report)
    for prefix in (PRODUCER, ADMIN):
        override = client_settings.under(prefix, values.texts)
        client_settings.check_policy(worker.override_policy, override, report, prefix)


def error_settings(values: Values, worker: Worker, kafka: KafkaSettings) -> ErrorSettings:
    """What becomes of errors, of values about which there was no problem."""
    return made(ErrorSettings, values, worker.machine, dead_letters=_dead_letters(values, worker, kafka))


def _dead_letters(values: Values, worker: Worker, kafka: KafkaSettings) -> DeadLetterSettings | None:
    if values.text(NAME_KEY) is None:
        return None
    shared = client_settings.shared_with_consumer(kafka.client)
    producer = {**shared, **worker.producer, **client_settings.under(PRODUCER, values.texts)}
    admin = {**shared, **worker.admin, **client_settings.under(ADMIN, values.texts)}
    return made(DeadLetterSettings, values, worker.machine, producer=producer, admin=admin)


def _check_topic(name: str, values: Values, report: Report) -> None:
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
