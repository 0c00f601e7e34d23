"""A file counts as accepted once its notice is in the topic; a webhook never holds it up."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from parquet_sink.archive.target import AcceptedFiles
from parquet_sink.files.parquet import FinishedFile
from parquet_sink.net.settings import HttpSettings
from parquet_sink.notify import target as module
from parquet_sink.notify.settings import NotifySettings
from parquet_sink.notify.target import NotifiedTarget
from parquet_sink.notify.topic import TopicNotices
from parquet_sink.notify.waiting import NoticeFolder
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict
from tests.factories import Clock
from tests.messages import assert_says
from tests.notify.files import FILE

ACCEPTED = Outcome(Verdict.ACCEPTED, "taken")


class FakeTarget:
    """Gives its outcomes one after the other, the last one for ever."""

    name = "http://target/"

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes, self.pushed = list(outcomes), 0

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        self.pushed += 1
        return self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]

    def probe(self, seconds_left: float) -> ProbeResult:
        return ProbeResult(Health.OK, "")

    def close(self) -> None:
        """Has nothing open."""


class FakeProducer:
    """Delivers at the next poll, with these errors one after the other, then without; None: never."""

    def __init__(self, clock: Clock, *errors: KafkaError | None) -> None:
        self.clock, self.errors, self.sent = clock, list(errors), list[dict[str, Any]]()
        self.there: KafkaError | None = None
        self._waiting: list[Any] = []

    def produce(self, topic: str, value: bytes, key: bytes, *, headers: Any, on_delivery: Any) -> None:
        self.sent.append({"topic": topic, "key": key, "headers": dict(headers), **json.loads(value)})
        self._waiting.append(on_delivery)

    def poll(self, seconds: float) -> None:
        self.clock.sleep(seconds)
        if self.there is None and self._waiting:
            self._waiting.pop()(self.errors.pop(0) if self.errors else None, None)

    def list_topics(self, topic: str, timeout: float) -> Any:
        class Found:
            topics: Mapping[str, Any] = {topic: type("Topic", (), {"error": self.there})}

        return Found


class FakeCache:
    """Has one producer."""

    def __init__(self, producer: FakeProducer) -> None:
        self.one: Any = type("Cached", (), {"producer": producer, "client_log": None})
        self.kept, self.discarded = 0, 0

    def take(self, settings: object) -> Any:
        return self.one

    def put_back(self, one: object) -> None:
        self.kept += 1

    def discard(self, one: object) -> None:
        self.discarded += 1


def settings(tmp_path: Path, topic: str | None = "notices", url: str | None = None) -> NotifySettings:
    """Of a connector; without an address for a webhook."""
    return NotifySettings("c", "T", str(tmp_path / ".notices"), HttpSettings(), topic, url)


@pytest.fixture
def producer() -> FakeProducer:
    """One that delivers."""
    return FakeProducer(Clock())


def made(target: FakeTarget, producer: FakeProducer, about: NotifySettings) -> tuple[NotifiedTarget, FakeCache]:
    """The target with a topic whose producer is a fake one."""
    cache, found = FakeCache(producer), NotifiedTarget(target, about, AcceptedFiles())
    if about.topic is not None:
        found._topic = TopicNotices(about, cache, producer.clock)  # type: ignore[arg-type]
    return found, cache


def test_a_notice_follows_an_accepted_file(tmp_path: Path, producer: FakeProducer) -> None:
    """By topic-partition, with the attributes as headers; the producer is kept."""
    target, cache = made(FakeTarget(ACCEPTED), producer, settings(tmp_path))
    assert target.push(FILE, 10.0) == ACCEPTED
    [sent] = producer.sent
    assert (sent["topic"], sent["key"], sent["file"], sent["connector"]) == ("orders", b"orders-3", FILE.name, "c")
    assert {"ce_id", "ce_type", "ce_source", "ce_specversion", "ce_time", "content-type"} <= set(sent["headers"])
    assert (cache.kept, cache.discarded) == (1, 0)


@pytest.mark.parametrize("verdict", [Verdict.REFUSED, Verdict.RETRIABLE, Verdict.UNKNOWN])
def test_what_is_not_accepted_has_no_notice(verdict: Verdict, tmp_path: Path, producer: FakeProducer) -> None:
    """The target's word stays as it is."""
    outcome = Outcome(verdict, "no")
    target, _ = made(FakeTarget(outcome), producer, settings(tmp_path, url="http://localhost/"))
    assert target.push(FILE, 10.0) == outcome
    assert producer.sent == []
    assert not (tmp_path / ".notices").exists()


def test_a_file_whose_notice_fails_is_not_accepted_and_not_sent_again(tmp_path: Path, producer: FakeProducer) -> None:
    """The next attempt writes the notice alone, with the same id; the producer that failed is not kept."""
    inner = FakeTarget(ACCEPTED, Outcome(Verdict.REFUSED, "I know it"))
    producer.errors = [KafkaError(KafkaError.NOT_ENOUGH_REPLICAS)]
    target, cache = made(inner, producer, settings(tmp_path))
    first = target.push(FILE, 10.0)
    assert (first.verdict, first.of_file) == (Verdict.UNKNOWN, False)
    assert_says(first.fate, "accepted", "its notice was not")
    assert_says(first.cause, "connect.ems.notify.topic", "topic notices")
    assert target.push(FILE, 10.0) == ACCEPTED
    assert (inner.pushed, cache.kept, cache.discarded) == (1, 1, 1)
    assert len({one["headers"]["ce_id"] for one in producer.sent}) == 1
    assert target.push(FILE, 10.0).cause == "I know it"


def test_a_topic_that_is_not_there_is_named(tmp_path: Path, producer: FakeProducer) -> None:
    """Soon, with the cure; it is tried again."""
    producer.there = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    target, _ = made(FakeTarget(ACCEPTED), producer, settings(tmp_path))
    found = target.push(FILE, 60.0)
    assert (found.verdict, producer.clock.seconds < 5) == (Verdict.UNKNOWN, True)
    assert_says(found.cause, "topic notices", "not there")
    assert "Make the topic" in found.cure


def test_a_missing_right_is_named(tmp_path: Path, producer: FakeProducer) -> None:
    """It is refused: waiting cures nothing."""
    producer.errors = [KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    target, _ = made(FakeTarget(ACCEPTED), producer, settings(tmp_path))
    found = target.push(FILE, 10.0)
    assert found.verdict is Verdict.REFUSED
    assert "Write" in found.cure


def test_a_notice_for_the_webhook_waits_on_the_disk(
    tmp_path: Path, producer: FakeProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the program posts it; a disk that is full costs the notice, not the file."""
    monkeypatch.setattr(NoticeFolder, "tended", True)
    about = settings(tmp_path, topic=None, url="http://localhost:1/")
    target, _ = made(FakeTarget(ACCEPTED), producer, about)
    assert target.push(FILE, 10.0) == ACCEPTED
    [waiting] = NoticeFolder(about.waiting).notices()
    notice = waiting.read()
    assert notice is not None
    assert (json.loads(notice.data)["file"], notice.id) == (FILE.name, waiting.id)
    (tmp_path / "file").write_text("")
    blocked = settings(tmp_path / "file", topic=None, url="http://localhost:1/")
    outcome = made(FakeTarget(ACCEPTED), producer, blocked)[0].push(FILE, 10.0)
    assert replace(outcome, notice=None) == ACCEPTED
    assert outcome.notice is not None
    assert (outcome.notice.notice_id, bool(outcome.notice.cause)) == (waiting.id, True)


def test_without_the_program_it_is_posted_once(
    tmp_path: Path, producer: FakeProducer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is not taken then is given up, which is logged, and told with the file; so is what is taken."""
    monkeypatch.setattr(module, "ONCE_S", 0.5)
    about = settings(tmp_path, topic=None, url="http://127.0.0.1:1/")
    outcome = made(FakeTarget(ACCEPTED), producer, about)[0].push(FILE, 10.0)
    assert outcome.verdict is Verdict.ACCEPTED
    assert "is given up" in caplog.text
    assert outcome.notice is not None
    assert_says(caplog.text, outcome.notice.notice_id, str(outcome.notice.cause))
    monkeypatch.setattr(module.Webhook, "post", lambda webhook, notice, within_s: (None, None))
    outcome = made(FakeTarget(ACCEPTED), producer, about)[0].push(FILE, 10.0)
    assert outcome.notice is not None
    assert outcome.notice.cause is None
