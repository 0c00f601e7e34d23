"""Rights that brokers tell are compared with those that a connector needs; what they do not tell is not missing."""

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]

from parquet_sink.errors import BrokerAway
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.cluster.requests import Rights
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.targets.outcome import Health
from parquet_sink.validate.probe_kafka import of_reading
from tests.messages import assert_says

KAFKA = KafkaSettings(("orders",), None, "g", {"bootstrap.servers": "b:9092"})
SEEN = [AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS]
Answer = list[Any] | int | None


class Admin:
    """Answers with operations, nothing, or an error by its code."""

    def __init__(self, answer: Answer, group: Answer) -> None:
        self.answer, self.group = answer, group

    def describe_topics(self, topics: Any, **options: object) -> dict[str, Future[Any]]:
        assert options["include_authorized_operations"] is True
        return {name: done(self.answer) for name in topics.topic_names}

    def describe_consumer_groups(self, groups: list[str], **options: object) -> dict[str, Future[Any]]:
        assert options["include_authorized_operations"] is True
        return {name: done(self.group) for name in groups}

    def poll(self, timeout: float) -> None:
        """Nothing was logged."""


def done(answer: Answer) -> "Future[Any]":
    """A future that is over."""
    future: Future[Any] = Future()
    if isinstance(answer, int):
        future.set_exception(KafkaException(KafkaError(answer)))
    else:
        future.set_result(SimpleNamespace(authorized_operations=answer))
    return future


@pytest.fixture
def rights(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Rights]:
    """Asks such an admin client."""

    def make(answer: Answer = None, group: Answer = None) -> Rights:
        monkeypatch.setattr(client_options, "build", lambda kind, settings, *more: Admin(answer, group))
        return Rights(KAFKA)

    return make


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([AclOperation.READ, *SEEN], []),
        ([AclOperation.ALL], []),
        (SEEN, ["Read on topic orders"]),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ["Describe on topic orders"]),
        (None, []),
    ],
)
def test_reading(rights: Callable[..., Rights], answer: Answer, expected: list[str]) -> None:
    """`Read`, or all; an old broker tells nothing."""
    assert [right.words for right in rights(answer).lacking_to_read(["orders"])] == expected
    assert rights(answer).lacking_to_read([]) == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([AclOperation.READ, AclOperation.DESCRIBE], []),
        (SEEN, ["Read on group g"]),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, ["Describe on group g"]),
        (KafkaError.GROUP_ID_NOT_FOUND, None),
        (None, None),
    ],
)
def test_committing(rights: Callable[..., Rights], answer: Answer, expected: list[str] | None) -> None:
    """Of a group that is not there brokers tell nothing."""
    found = rights(group=answer).lacking_to_commit("g")
    assert (None if found is None else [right.words for right in found]) == expected


def test_writing(rights: Callable[..., Rights]) -> None:
    """Who may write may describe as well."""
    assert rights([AclOperation.WRITE]).lacking_to_write("dead") == []
    for answer in (SEEN, KafkaError.TOPIC_AUTHORIZATION_FAILED):
        (right,) = rights(answer).lacking_to_write("dead")
        assert right.words == "Write on topic dead"


def test_a_broker_that_does_not_answer_is_not_a_missing_right(rights: Callable[..., Rights]) -> None:
    """It is told as what it is."""
    away = rights(KafkaError._TIMED_OUT, KafkaError._TIMED_OUT)
    for ask in (lambda: away.lacking_to_read(["orders"]), lambda: away.lacking_to_commit("g")):
        with pytest.raises(BrokerAway):
            ask()


def test_what_is_missing_is_a_line_each(rights: Callable[..., Rights]) -> None:
    """Bounded in number, the command with each; nothing missing is one line."""
    rights(SEEN, SEEN)
    found = list(of_reading(KAFKA, [f"t{n}" for n in range(20)]))
    assert [one.health for one in found] == [Health.FAILED] * 9
    assert_says(found[0].text, "Read on topic t0", "missing", "Give the user", "(ACL) Read on")
    assert_says(found[-1].text, "13 more", "missing")
    rights([AclOperation.READ], [AclOperation.READ])
    (line,) = of_reading(KAFKA, ["a", "b"])
    assert line.health is Health.OK
    assert_says(line.text, "read 2 topics", "commit", "group g")
    rights([AclOperation.READ], KafkaError.GROUP_ID_NOT_FOUND)
    (line,) = of_reading(KAFKA, ["a"])
    assert_says(line.text, "read 1 topic", "whether it may commit", "at the start")
