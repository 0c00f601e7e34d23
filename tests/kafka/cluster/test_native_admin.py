"""Topics described and offsets listed in C; `integration/test_native_reader.py` compares both ways on a broker."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, OffsetSpec

from parquet_sink.kafka import native
from parquet_sink.kafka.cluster import native_admin
from parquet_sink.kafka.cluster.native_admin import Description, End, described_in_c, listed_in_c

NOT_THERE = KafkaError.UNKNOWN_TOPIC_OR_PART
TIMED_OUT = KafkaError._TIMED_OUT


def answers(monkeypatch: pytest.MonkeyPatch, answer: Any) -> "dict[str, Any]":
    """What comes of the topics `a` and `b` where the extension answers so: descriptions, and codes of errors."""

    def describe(admin: object, topics: list[str], timeout_ms: int) -> Any:
        assert (topics, timeout_ms) == (["a", "b"], 2_500)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(native, "extension", lambda: SimpleNamespace(describe=describe))
    found = described_in_c(AdminClient({"bootstrap.servers": "none:9092", "log_level": 0}), ["a", "b", "a"], 2.5)
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
    monkeypatch.setattr(native, "is_used", lambda: True)
    admin = AdminClient({"bootstrap.servers": "none:9092", "log_level": 0})
    for name, asked in {"rdkafka#producer-1": True, "no client": False}.items():
        monkeypatch.setattr(native, "extension", lambda name=name: SimpleNamespace(client_name=lambda admin: name))
        assert native_admin.is_asked(admin) is asked
    assert not native_admin.is_asked(SimpleNamespace())


def listed(monkeypatch: pytest.MonkeyPatch, answer: Any) -> Any:
    """The ends of `a-0` and `b-7` where the extension answers so: errors by their codes; or what is raised."""

    def list_offsets(admin: object, keys: list[tuple[str, int]], at: int, isolation: int, timeout_ms: int) -> Any:
        assert (keys, at, isolation, timeout_ms) == ([("a", 0), ("b", 7)], -1, 1, 2_500)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(native, "extension", lambda: SimpleNamespace(list_offsets=list_offsets))
    admin = AdminClient({"bootstrap.servers": "none:9092", "log_level": 0})
    asked = listed_in_c(admin, (("a", 0), ("b", 7)), OffsetSpec.latest(), IsolationLevel.READ_COMMITTED, 2.5)
    error = asked.exception(5.0)
    if error is not None:
        return error.args[0].code() if isinstance(error, KafkaException) else error
    return [one.code() if isinstance(one, KafkaError) else one for one in asked.result().values()]


def test_each_topic_partition_has_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the leader's epoch where it tells one, or why there is none; the others count as silent."""
    assert listed(monkeypatch, {("b", 7): (0, 12, 3), ("a", 0): (0, 5, -1)}) == [End(5, None), End(12, 3)]
    assert listed(monkeypatch, {("a", 0): (0, 5, 0)}) == [End(5, 0), TIMED_OUT]
    assert listed(monkeypatch, {("a", 0): (NOT_THERE, -1, -1), ("b", 7): (0, 1, 0)}) == [NOT_THERE, End(1, 0)]
    assert listed(monkeypatch, dict.fromkeys([("a", 0), ("b", 7)], (NOT_THERE, -1, -1))) == [NOT_THERE, NOT_THERE]


def test_without_any_answer_the_request_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a client which hangs is replaced, as for requests that confluent-kafka makes."""
    error = ValueError("no client that can be asked")
    assert listed(monkeypatch, {}) == TIMED_OUT
    assert listed(monkeypatch, dict.fromkeys([("a", 0), ("b", 7)], (TIMED_OUT, -1, -1))) == TIMED_OUT
    assert listed(monkeypatch, error) is error
