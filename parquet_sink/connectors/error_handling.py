"""What becomes of errors: the keys of dead letters and tolerance together with the worker's, for any sink class."""

import re
from collections.abc import Mapping
from typing import Final

from parquet_sink.config.key import ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.kafka import client_settings
from parquet_sink.kafka.client_settings import ClientSetting
from parquet_sink.kafka.dead_letter_names import NAME_KEY, REPLICATION_KEY
from parquet_sink.kafka.settings import DeadLetterSettings, KafkaSettings
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.worker_config.worker import Worker

_POLICY: Final = ems("error.policy")
_INVALID: Final = ems("error.policy.continue.on.invalid.input")
_OVERRIDES: Final = ("producer.override.", "admin.override.")


def check(values: Values, worker: Worker, report: Report) -> None:
    """Tell what is wrong with the dead-letter topic, and with settings of its clients."""
    name = values.text(NAME_KEY)
    if name is not None:
        _check_topic(name, values, report)
    for prefix in _OVERRIDES:
        override = client_settings.under(prefix, values.texts)
        client_settings.check_policy(worker.override_policy, override, report, prefix)


def error_settings(values: Values, worker: Worker, kafka: KafkaSettings) -> ErrorSettings:
    """What becomes of errors, of values about which there was no problem."""
    continues = _continues(values)
    tolerant = values.text("errors.tolerance") == "all" or _passes_over(values)
    return ErrorSettings(
        invalid_records=continues or tolerant,
        refused_files=continues,
        dead_letters=_dead_letters(values, worker, kafka),
        log=values.flag("errors.log.enable"),
        log_content=values.flag("errors.log.enable") and values.flag("errors.log.include.messages"),
    )


def _dead_letters(values: Values, worker: Worker, kafka: KafkaSettings) -> DeadLetterSettings | None:
    name, factor = values.text(NAME_KEY), values.number(REPLICATION_KEY)
    if name is None or factor is None:
        return None
    shared = client_settings.shared_with_consumer(kafka.client)
    both: list[Mapping[str, ClientSetting]] = [worker.producer, worker.admin]
    producer, admin = (
        {**shared, **ours, **client_settings.under(prefix, values.texts)}
        for prefix, ours in zip(_OVERRIDES, both, strict=True)
    )
    context = values.flag("errors.deadletterqueue.context.headers.enable")
    return DeadLetterSettings(name, factor, context, producer, admin)


def _check_topic(name: str, values: Values, report: Report) -> None:
    pattern = values.text("topics.regex")
    if name in values.names("topics") or (pattern is not None and re.fullmatch(pattern, name)):
        which = "topics.regex matches it" if pattern is not None else "topics names it"
        report.problem(
            NAME_KEY,
            f"{values.quoted(NAME_KEY)} is one of the connector's own topics ({which}), so it would read its dead "
            "letters; name another.",
        )
    if values.text("errors.tolerance") == "none" and not _passes_over(values):
        report.warn(
            NAME_KEY, "With errors.tolerance=none the connector stops at the first record there; set all to go on."
        )


def _continues(values: Values) -> bool:
    return values.knows(_POLICY) and values.text(_POLICY) == "CONTINUE"


def _passes_over(values: Values) -> bool:
    """By the keys of the EMS connector, where a class has them."""
    return _continues(values) or (values.knows(_INVALID) and values.flag(_INVALID))
