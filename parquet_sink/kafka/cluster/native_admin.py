"""Requests of an admin client about very many topic-partitions, made in C: their topics, and their offsets.

confluent-kafka makes four Python objects of each partition that it describes, 27 µs of CPU on a busy machine, and a
future, a lock and four more of each of which it lists an offset: 41 µs with what librdkafka takes for it. In C
(`native_reader.c`) it is 1 µs, and 10.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, OffsetSpec, TopicDescription  # type: ignore[attr-defined]

from parquet_sink.kafka import native
from parquet_sink.kafka.cluster.requests import SILENT
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.process.threads import in_thread

ADMIN: Final = "#producer-"
"""A part of the name of an admin client, as librdkafka has it."""


class Description(NamedTuple):
    """Of one topic. partitions: their numbers."""

    topic_id: str
    partitions: list[int]


class End(NamedTuple):
    """An offset, and the epoch of the leader that told it; None where it tells none."""

    offset: int
    epoch: int | None


def is_asked(admin: AdminClient) -> bool:
    """Whether this client can be asked in C."""
    if not (native.is_used() and isinstance(admin, AdminClient)):
        return False
    return ADMIN in (native.extension().client_name(admin) or "")


def described(admin: AdminClient, topics: Sequence[str], timeout_s: float) -> "dict[str, Future[Description]]":
    """Asks for topics by name, which never creates one."""
    asked = admin.describe_topics(TopicCollection(list(topics)), request_timeout=timeout_s)
    return {topic: _description(answer) for topic, answer in asked.items()}


def _description(asked: "Future[TopicDescription]") -> "Future[Description]":
    answer: Future[Description] = Future()

    def take(found: "Future[TopicDescription]") -> None:
        try:
            about = found.result()
            answer.set_result(Description(str(about.topic_id), [one.id for one in about.partitions]))
        except Exception as error:  # noqa: BLE001 - whoever waits for the answer gets it
            answer.set_exception(error)

    asked.add_done_callback(take)
    return answer


def described_in_c(admin: AdminClient, topics: Sequence[str], timeout_s: float) -> "dict[str, Future[Description]]":
    """As `described`; for a client that `is_asked`."""
    extension, names = native.extension(), list(dict.fromkeys(topics))
    answers: dict[str, Future[Description]] = {topic: Future() for topic in names}
    asked = in_thread(lambda: extension.describe(admin, names, int(1_000 * timeout_s)))
    asked.add_done_callback(lambda found: _spread(found, answers))
    return answers


def _spread(asked: "Future[Any]", answers: "Mapping[str, Future[Description]]") -> None:
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


def listed_in_c(
    admin: AdminClient, keys: Sequence[PartitionKey], spec: OffsetSpec, isolation: IsolationLevel, timeout_s: float
) -> "Future[dict[PartitionKey, End | KafkaError]]":
    """Asks for the offset of each topic-partition; likewise. KafkaException where none answers."""
    extension, at = native.extension(), int(spec._value)  # noqa: SLF001 - as confluent-kafka itself takes it

    def ask() -> dict[PartitionKey, End | KafkaError]:
        found = extension.list_offsets(admin, list(keys), at, isolation.value, int(1_000 * timeout_s))
        ends = {key: _end(*found[key]) if key in found else SILENT for key in keys}
        codes = {end.code() if isinstance(end, KafkaError) else 0 for end in ends.values()}
        if len(codes) == 1 and min(codes) < 0:
            raise KafkaException(ends[keys[0]])
        return ends

    return in_thread(ask)


def _end(code: int, offset: int, epoch: int, text: str | None = None) -> End | KafkaError:
    return KafkaError(code, text) if code else End(offset, epoch if epoch >= 0 else None)
