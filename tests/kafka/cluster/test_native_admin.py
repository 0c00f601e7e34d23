"""Topics that are described in C, and what becomes of answers; `integration/test_native_reader.py` compares both."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from parquet_sink.kafka import native
from parquet_sink.kafka.cluster import native_admin
from parquet_sink.kafka.cluster.native_admin import Description, described_in_c

NOT_THERE = KafkaError.UNKNOWN_TOPIC_OR_PART
TIMED_OUT = KafkaError._TIMED_OUT


def answers(monkeypatch: pytest.MonkeyPatch, answer: Any, client: str = "rdkafka#producer-1") -> "dict[str, Any]":
    """What comes of the topics `a` and `b` where the extension answers so: descriptions, and codes of errors."""

    def describe(admin: object, topics: list[str], timeout_ms: int) -> Any:
        assert (topics, timeout_ms) == (["a", "b"], 2_500)
        if isinstance(answer, Exception):
            raise answer
        return answer

    extension = SimpleNamespace(client_name=lambda admin: client, describe=describe)
    monkeypatch.setattr(native, "is_used", lambda: True)
    monkeypatch.setattr(native, "extension", lambda: extension)
    monkeypatch.setattr(native_admin, "described", lambda *asked: "by confluent-kafka")
    found = described_in_c(AdminClient({"bootstrap.servers": "none:9092", "log_level": 0}), ["a", "b", "a"], 2.5)
    if not isinstance(found, dict):
        return found
    failures = {topic: one.exception(5.0) for topic, one in found.items()}
    return {
        topic: error.args[0].code() if isinstance(error, KafkaException) else error or found[topic].result()
        for topic, error in failures.items()
    }


def test_each_topic_has_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its id and its partitions, or why there is none."""
    found = answers(monkeypatch, {"a": (0, "", "id", [0, 1]), "b": (NOT_THERE, "Unknown", "", [])})
    assert found == {"a": Description("id", [0, 1]), "b": NOT_THERE}


@pytest.mark.parametrize("answer", [(TIMED_OUT, "Timed out"), None, {}])
def test_without_an_answer_each_topic_fails(monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
    """As for confluent-kafka: nobody waits for ever."""
    assert answers(monkeypatch, answer) == {"a": TIMED_OUT, "b": TIMED_OUT}


def test_what_goes_wrong_is_raised_where_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the thread that nobody looks after."""
    error = ValueError("no client that can be asked")
    assert answers(monkeypatch, error) == {"a": error, "b": error}


def test_another_object_is_not_asked_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a client that is not where it usually is."""
    assert answers(monkeypatch, None, client="no client") == "by confluent-kafka"
    assert described_in_c(SimpleNamespace(), ["a"], 2.5) == "by confluent-kafka"
