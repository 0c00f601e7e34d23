"""A writer of the config topic says whether what it could not confirm may have been written."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from parquet_sink.distributed.log import ConfigWriter, Deposed, NotAnswered
from parquet_sink.errors import KafkaFailed, KafkaRefused
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.settings import KafkaSettings
from tests.messages import saying

SILENT = KafkaError(KafkaError._TIMED_OUT, "no answer", False, True, False)
ABORTABLE = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "not allowed", False, False, True)
FENCED = KafkaError(KafkaError._FENCED, "fenced", True, False, False)
NO_RIGHT = KafkaError(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "not allowed", True, False, False)


class FakeProducer:
    """Fails in the steps that are named, with these errors. undelivered: of each record. waiting: after a flush."""

    def __init__(self, undelivered: KafkaError | None = None, waiting: int = 0, **errors: KafkaError) -> None:
        self._errors, self._undelivered, self._waiting = errors, undelivered, waiting

    def _step(self, name: str) -> None:
        if name in self._errors:
            raise KafkaException(self._errors[name])

    def init_transactions(self, timeout: float) -> None:
        self._step("init")

    def begin_transaction(self) -> None:
        self._step("begin")

    def produce(self, *record: object, on_delivery: Callable[[KafkaError | None, object], None]) -> None:
        self._step("produce")
        on_delivery(self._undelivered, None)

    def flush(self, timeout: float) -> int:
        self._step("flush")
        return self._waiting

    def commit_transaction(self, timeout: float) -> None:
        self._step("commit")

    def poll(self, timeout: float) -> None: ...
    def purge(self, *, blocking: bool) -> None: ...


def writer(monkeypatch: pytest.MonkeyPatch, producer: FakeProducer) -> ConfigWriter:
    """That has this producer."""

    def build(make: Any, settings: object, client_log: object, keys: str) -> FakeProducer:
        return producer

    monkeypatch.setattr(client_options, "build", build)
    kafka = KafkaSettings(group="cluster", client={"bootstrap.servers": "localhost:1"})
    return ConfigWriter(kafka, "configs", "connect-cluster-g")


@pytest.mark.parametrize(
    ("producer", "kind", "may_be_written"),
    [
        pytest.param(FakeProducer(waiting=1), NotAnswered, False, id="not sent"),
        pytest.param(FakeProducer(begin=FENCED), Deposed, False, id="fenced at the beginning"),
        pytest.param(FakeProducer(undelivered=FENCED, commit=FENCED), Deposed, False, id="fenced before the commit"),
        pytest.param(FakeProducer(commit=FENCED), Deposed, True, id="fenced after the commit was asked for"),
        pytest.param(FakeProducer(commit=SILENT), NotAnswered, True, id="commit without an answer"),
        pytest.param(FakeProducer(commit=NO_RIGHT), NotAnswered, True, id="commit that failed otherwise"),
    ],
)
def test_a_failed_write_says_whether_it_may_have_taken_effect(
    monkeypatch: pytest.MonkeyPatch, producer: FakeProducer, kind: type[Deposed], may_be_written: bool
) -> None:
    """It may as soon as the commit was asked for, unless the client says that the transaction is to be aborted."""
    one = writer(monkeypatch, producer)
    one.open()
    words = "may have been written" if may_be_written else "Nothing was written"
    with pytest.raises(kind, match=words) as failed:
        one.write({b"connector-a": b"{}"})
    assert (failed.value.may_be_written, one.is_open) == (may_be_written, False)


def test_a_refused_write_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the client finds that out when it is to commit; the message has the cure."""
    one = writer(monkeypatch, FakeProducer(commit=ABORTABLE))
    one.open()
    with pytest.raises(KafkaRefused, match=saying("Topic configs", "Write on topic configs", "kafka-acls")):
        one.write({b"connector-a": b"{}"})
    assert not one.is_open


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (FENCED, Deposed, "Nothing was written"),
        (SILENT, NotAnswered, "Nothing was written"),
        (NO_RIGHT, KafkaRefused, "Write on transactional-id connect-cluster-g"),
    ],
)
def test_a_writer_that_cannot_begin_is_not_open(
    monkeypatch: pytest.MonkeyPatch, error: KafkaError, kind: type[KafkaFailed], words: str
) -> None:
    """Another one took over at that moment, nobody answers, or a right is missing."""
    one = writer(monkeypatch, FakeProducer(init=error))
    with pytest.raises(kind, match=words):
        one.open()
    assert not one.is_open
