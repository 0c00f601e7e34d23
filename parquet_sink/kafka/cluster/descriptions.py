"""What a cluster says of topics: their ids and partitions.

confluent-kafka makes four Python objects of each partition: 27 µs of CPU, on a busy machine. For connectors with very
many of them the same request is made in C (`native_reader.c`), which takes 1 µs.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription  # type: ignore[attr-defined]

from parquet_sink.kafka import native
from parquet_sink.kafka.cluster.requests import SILENT
from parquet_sink.process.threads import in_thread

ADMIN: Final = "#producer-"
"""A part of the name of an admin client, as librdkafka has it."""


class Description(NamedTuple):
    """Of one topic. partitions: their numbers."""

    topic_id: str
    partitions: list[int]


Described = TopicDescription | Description


def numbers(about: Described) -> list[int]:
    """Of a topic's partitions."""
    return about.partitions if isinstance(about, Description) else [one.id for one in about.partitions]


def described(admin: AdminClient, topics: Sequence[str], timeout_s: float) -> "dict[str, Future[Described]]":
    """Asks for topics by name, which never creates one."""
    asked = TopicCollection(list(topics))
    answers: dict[str, Future[Described]] = admin.describe_topics(asked, request_timeout=timeout_s)
    return answers


def described_in_c(admin: AdminClient, topics: Sequence[str], timeout_s: float) -> "dict[str, Future[Described]]":
    """As `described`, which it does where it cannot be done in C."""
    if not (native.is_used() and isinstance(admin, AdminClient)):
        return described(admin, topics, timeout_s)
    extension, names = native.extension(), list(dict.fromkeys(topics))
    if ADMIN not in (extension.client_name(admin) or ""):
        return described(admin, topics, timeout_s)
    answers: dict[str, Future[Described]] = {topic: Future() for topic in names}
    asked = in_thread(lambda: extension.describe(admin, names, int(1_000 * timeout_s)))
    asked.add_done_callback(lambda found: _spread(found, answers))
    return answers


def _spread(asked: "Future[Any]", answers: "Mapping[str, Future[Described]]") -> None:
    """Gives each topic its part of an answer of `extension.describe`."""
    failed = asked.exception()
    found = None if failed else asked.result()
    silent = SILENT.code(), SILENT.str()
    for topic, answer in answers.items():
        code, text, *about = found if isinstance(found, tuple) else (found or {}).get(topic, silent)
        if failed or code:
            answer.set_exception(failed or KafkaException(KafkaError(code, text)))
        else:
            answer.set_result(Description(*about))
