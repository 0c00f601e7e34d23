"""The worker as others see it: reads that wait for nothing, and offsets by hand."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from parquet_sink.errors import KafkaFailed, KafkaRefused
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.worker.herder.errors import NotStopped, OffsetsRefused, TimedOut, UnknownConnector
from parquet_sink.worker.herder.values import OFFSET, PARTITION, TOPIC, State, StoredOffset, TargetState
from parquet_sink.worker.loop import flow
from parquet_sink.worker.loop import herder as module
from parquet_sink.worker.loop.herder import AGAIN_S, ClusterId, LocalHerder
from tests.factories import Clock
from tests.worker.loop.worker_doubles import Loop

KEY, END = ("orders", 0), 9


class Offsets:
    """A group's offsets; `error` is raised by the next change."""

    def __init__(self) -> None:
        self.committed: dict[tuple[str, int], int] = {KEY: 5}
        self.error: Exception | None = None
        self.groups: list[str] = []

    def read(self, kafka: KafkaSettings) -> dict[tuple[str, int], tuple[int, int | None]]:
        return {key: (offset, END) for key, offset in self.committed.items()}

    def alter(self, kafka: KafkaSettings, offsets: Mapping[tuple[str, int], int | None]) -> None:
        self.groups.append(kafka.group)
        if self.error is not None:
            raise self.error
        self.committed |= {key: offset or 0 for key, offset in offsets.items()}

    def reset(self, kafka: KafkaSettings) -> None:
        self.alter(kafka, {})
        self.committed = {}


def _stored(offset: int) -> StoredOffset:
    return StoredOffset({TOPIC: "orders", PARTITION: 0}, {OFFSET: offset})


@pytest.fixture
def offsets(monkeypatch: pytest.MonkeyPatch) -> Offsets:
    """In place of Kafka."""
    found = Offsets()
    monkeypatch.setattr(flow, "manual_offsets", found)
    return found


def test_offsets_are_read_in_any_state(loop: Loop, offsets: Offsets) -> None:
    """As Kafka has them, each with the end of its topic-partition."""
    loop.requests.create("one", {})
    assert loop.requests.offsets("one") == (replace(_stored(5), end=END),)
    with pytest.raises(UnknownConnector):
        loop.requests.offsets("none")


def test_offsets_are_set_while_stopped(loop: Loop, offsets: Offsets) -> None:
    """In the connector's group; then it may start again."""
    loop.requests.create("one", {"group": "g"})
    loop.settle()
    with pytest.raises(NotStopped):
        loop.requests.alter_offsets("one", [_stored(7)])
    loop.requests.set_target("one", TargetState.STOPPED)
    loop.settle()
    loop.requests.alter_offsets("one", [_stored(7)])
    assert (offsets.committed, offsets.groups) == ({KEY: 7}, ["g"])
    loop.requests.reset_offsets("one")
    assert offsets.committed == {}
    loop.requests.set_target("one", TargetState.STARTED)
    loop.settle()
    assert loop.state("one") is State.RUNNING


def test_what_kafka_refuses_is_told_and_holds_nothing_up(loop: Loop, offsets: Offsets) -> None:
    """In its words; the connector may start all the same."""
    loop.requests.create("one", {}, TargetState.STOPPED)
    loop.settle()
    offsets.error = KafkaRefused("no right")
    with pytest.raises(OffsetsRefused, match="no right"):
        loop.requests.alter_offsets("one", [_stored(7)])
    loop.requests.set_target("one", TargetState.STARTED)
    loop.settle()
    assert loop.state("one") is State.RUNNING


def test_offsets_of_a_connector_that_cannot_be_are_told(loop: Loop, offsets: Offsets) -> None:
    """Without a configuration nobody knows its group."""
    loop.requests.create("one", {})
    loop.broken.add("one")
    loop.requests.restart("one", include_tasks=True, only_failed=False)
    loop.settle()
    with pytest.raises(OffsetsRefused, match=r"Invalid \[bad\]"):
        loop.requests.offsets("one")


def test_reads_tell_of_all(loop: Loop) -> None:
    """In alphabetical order, with progress of each; topics of one that is not there are none."""
    for name in ("two", "one"):
        loop.requests.create(name, {})
    loop.settle()
    assert loop.requests.names() == ("one", "two")
    assert [one.status.name for one in loop.requests.progress()] == ["one", "two"]
    assert [part.lag for one in loop.requests.progress() for part in one.partitions] == [10, 10]
    assert loop.requests.topics("none") == ()
    assert loop.requests.worker_id == "localhost:8083"
    loop.requests.ping()
    for read in (loop.requests.info, loop.requests.status):
        with pytest.raises(UnknownConnector):
            read("none")


def test_the_id_of_the_cluster_is_asked_once() -> None:
    """When it is known it stays."""
    asked = []
    cluster = ClusterId(KafkaSettings(), lambda kafka: asked.append(1) or "abc", Clock())
    assert (cluster.get(), cluster.get(), asked) == ("abc", "abc", [1])


def test_brokers_that_are_away_are_asked_again_after_a_while() -> None:
    """Who asks again at once does not wait for them again."""
    clock, asked = Clock(), list[int]()

    def ask(kafka: KafkaSettings) -> str:
        asked.append(1)
        if len(asked) == 1:
            raise KafkaFailed("no answer")
        return "abc"

    cluster = ClusterId(KafkaSettings(), ask, clock)
    for _ in range(3):
        with pytest.raises(TimedOut, match="no answer"):
            cluster.get()
    assert asked == [1]
    clock.sleep(AGAIN_S)
    assert cluster.get() == "abc"


def test_nobody_is_told_that_there_are_no_connectors_before_they_were_read(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks while the worker begins waits, and is told in the end that it has not."""
    monkeypatch.setattr(module, "TIMEOUT_S", 0.01)
    early = LocalHerder(loop.registry, loop.queue, KafkaSettings())
    for read in (early.names, early.progress, lambda: early.status("one")):
        with pytest.raises(TimedOut, match="still reading its connectors"):
            read()
    early.publish()
    assert early.names() == ()
