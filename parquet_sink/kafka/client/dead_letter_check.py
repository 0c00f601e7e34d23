"""What the clients of the dead-letter topic would refuse, found before anything starts: nothing connects."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from parquet_sink.config.secret import Secret
from parquet_sink.kafka.client import check
from parquet_sink.kafka.client.options import admin_options
from parquet_sink.kafka.client.producer_options import MEMORY, NO_EFFECT, RENAMED, producer_options
from parquet_sink.kafka.client.security.translation import Problem
from parquet_sink.kafka.settings import DeadLetterSettings, KafkaSettings

_NUMBERS: Final = (MEMORY, "delivery.timeout.ms", "default.api.timeout.ms")

DeadLetterProblem = tuple[str, str, str]
"""`producer` or `admin`, the name of a setting as the operator wrote it ("": no single one), and what is wrong."""


def problems(settings: DeadLetterSettings) -> list[DeadLetterProblem]:
    """Everything that they would refuse; a value that is a secret is never shown."""
    found = []
    for client, given in (("producer", settings.producer), ("admin", settings.admin)):
        names = list(_of(given)) or list(_together(client, settings))
        found += [(client, name, reason) for name, reason in names]
    return found


def _of(given: Mapping[str, str | Secret]) -> Iterator[Problem]:
    """Settings one by one."""
    wrong = [name for name in _NUMBERS if name in given and not str(given[name]).isdecimal()]
    yield from ((name, f"{given[name]} is not a whole number; write digits only.") for name in wrong)
    known = {name: value for name, value in given.items() if name not in {*NO_EFFECT, *_NUMBERS}}
    java = {theirs: name for name, theirs in RENAMED.items()}
    renamed = {RENAMED.get(name, name): value for name, value in known.items()}
    yield from ((java.get(name, name), reason) for name, reason in check.problems_one_by_one(renamed))


def _together(client: str, settings: DeadLetterSettings) -> Iterator[Problem]:
    """What is wrong only when settings meet."""
    producer, admin = (
        {name: value for name, value in given.items() if name != "bootstrap.servers"}
        for given in (settings.producer, settings.admin)
    )
    try:
        if client == "producer":
            Producer({**producer_options(replace(settings, producer=producer)), "logger": check.SILENT})
        else:
            quiet: dict[str, Any] = {**admin_options(KafkaSettings(client=admin)), "logger": check.SILENT}
            AdminClient(quiet)
    except KafkaException as error:
        yield check.of_all(producer if client == "producer" else admin, error.args[0].str())
