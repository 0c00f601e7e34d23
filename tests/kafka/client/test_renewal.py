"""When a client that gets no answer is replaced, and that it is."""

import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from parquet_sink.errors import BrokerAway
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client import renewal
from parquet_sink.kafka.client.renewal import RENEW_S, Renewal
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.group import client as module
from parquet_sink.kafka.group.client import GroupClient
from parquet_sink.kafka.settings import KafkaSettings
from tests.factories import Clock

SILENT = KafkaError._TRANSPORT
KAFKA = KafkaSettings(("orders",), None, "g", {"bootstrap.servers": "localhost:9092"})


def test_a_client_is_replaced_after_a_long_silence() -> None:
    """Counted from the first request without an answer, however long nothing was asked before; then anew."""
    clock = Clock()
    one = Renewal(clock)
    assert not one.is_due(SILENT)
    clock.sleep(10 * RENEW_S)
    due = []
    for _ in range(6):
        one.asked()
        clock.sleep(RENEW_S / 3)
        due.append(one.is_due(SILENT))
    assert due == [False, False, True] * 2


@pytest.mark.parametrize("code", [None, KafkaError.NOT_COORDINATOR, KafkaError._AUTHENTICATION])
def test_an_answer_keeps_a_client(code: int | None) -> None:
    """Whatever it says: an error of a broker, and its refusal, are answers too."""
    clock = Clock()
    one = Renewal(clock)
    one.asked()
    clock.sleep(RENEW_S)
    if code is None:
        one.answered()
    else:
        assert not one.is_due(code)
    assert not one.is_due(SILENT)
    one.asked()
    assert not one.is_due(SILENT)


class Client:
    """An admin client and a consumer whose brokers are gone, or are there."""

    def __init__(self, answers: bool) -> None:
        self._answers, self.closed = answers, threading.Event()

    def describe_topics(self, topics: object, request_timeout: float) -> dict[str, "Future[Any]"]:
        return {"orders": self._future()}

    def list_topics(self, timeout: float) -> object:
        return self._future().result()

    def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        if self._answers:
            return asked
        raise KafkaException(KafkaError(SILENT))

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        return self.committed(offsets, 0)

    def poll(self, timeout: float) -> None:
        """Nothing is said."""

    def close(self) -> None:
        self.closed.set()

    def _future(self) -> "Future[Any]":
        future: Future[Any] = Future()
        if self._answers:
            future.set_result(type("Topic", (), {"topic_id": "A" * 21 + "B", "partitions": [], "topics": {}}))
        else:
            future.set_exception(KafkaException(KafkaError(SILENT)))
        return future


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    """The clients that were made: the first one has lost its brokers. Each silence is long."""
    clients: list[Client] = []

    def build(*about: object) -> Client:
        clients.append(Client(answers=bool(clients)))
        return clients[-1]

    monkeypatch.setattr(client_options, "build", build)
    monkeypatch.setattr(renewal, "RENEW_S", 0.0)
    return clients


def test_the_client_of_a_cluster_is_replaced(made: list[Client]) -> None:
    """What is asked next is the new client's to answer."""
    cluster = KafkaCluster(KAFKA)
    assert cluster.topic_ids(["orders"]) == {"orders": "A" * 21 + "B"}
    assert len(made) == 2


def test_the_client_of_a_group_is_replaced(made: list[Client]) -> None:
    """After a read without an answer; the old one is closed."""
    group = GroupClient(KAFKA)
    with pytest.raises(BrokerAway):
        group.committed([("orders", 0)])
    assert group.committed([("orders", 0)]) == {}
    assert len(made) == 2
    assert made[0].closed.wait(10)


def test_a_commit_finds_out_too(made: list[Client]) -> None:
    """The one after it arrives."""
    group, offsets = GroupClient(KAFKA), [TopicPartition("orders", 0, 1)]
    assert [group.commit(offsets) is None for _ in range(2)] == [False, True]
    assert made[0].closed.wait(10)


def test_no_client_is_replaced_while_its_commit_is_on_its_way(
    made: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It might arrive after a later one, by another client, and take the offset back."""
    monkeypatch.setattr(module, "TIMEOUT_S", 0.05)
    group, arrives = GroupClient(KAFKA), threading.Event()
    monkeypatch.setattr(made[0], "commit", lambda offsets, asynchronous: arrives.wait(10) and offsets)
    offsets = [TopicPartition("orders", 0, 1)]
    assert group.commit(offsets) is not None
    with pytest.raises(BrokerAway):
        group.committed([("orders", 0)])
    assert len(made) == 1
    arrives.set()
    while group._commits.busy:
        time.sleep(0.01)
    with pytest.raises(BrokerAway):
        group.committed([("orders", 0)])
    assert len(made) == 2
