"""What a source remembers of its files follows it to another worker, by the topic that has its places."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from parquet_sink.addons.sources.offsets.connect_form import Places
from parquet_sink.addons.sources.offsets.file import FileStorage
from parquet_sink.addons.sources.topic_memory import AGAIN_S, TopicMemory
from parquet_sink.errors import BrokerAway
from parquet_sink.model.source_records import Place
from tests.factories import Clock

OLD, NEW = {'{"f":"a"}': {"position": 9}}, {'{"f":"a"}': {"position": 2}}


class Storage(FileStorage):
    """Both workers' topic, whose brokers may be away."""

    away = False

    def write(self, connector: str, changes: Mapping[str, Place | None]) -> None:
        if self.away:
            raise BrokerAway("no broker answers")
        super().write(connector, changes)


class Workers:
    """A connector's memory at two workers."""

    def __init__(self, folder: Path) -> None:
        self.storage, self.clock = Storage(str(folder / "offsets")), Clock(100.0)
        self._folder = folder

    def at(self, worker: str) -> TopicMemory:
        """Return the memory as a worker begins with it."""
        (self._folder / worker).mkdir(exist_ok=True)
        return TopicMemory(str(self._folder / worker), "s", self.storage, self.clock)

    def write(self, worker: str, before: Places, after: Places, inode: int) -> None:
        """Let a worker run it up to a place."""
        memory = self.at(worker)
        memory.read(before)
        memory.write(before, after, {0: {"inode": inode}})
        memory.publish()


@pytest.fixture
def workers(tmp_path: Path) -> Workers:
    """Neither has run it yet."""
    return Workers(tmp_path)


def test_the_next_worker_knows_what_the_last_one_remembered(workers: Workers) -> None:
    """Of both places, because they may not be stored yet; and so does the first one when it is back."""
    workers.write("a", {}, OLD, 1)
    workers.write("a", OLD, NEW, 2)
    assert workers.at("b").read(OLD) == {0: {"inode": 1}}
    assert workers.at("b").read(NEW) == {0: {"inode": 2}}
    workers.write("b", NEW, NEW, 3)
    assert workers.at("a").read(NEW) == {0: {"inode": 3}}


def test_what_was_noticed_before_places_were_known_counts(workers: Workers) -> None:
    """At the worker that has the latest; one that is behind takes what the topic has."""
    workers.write("a", {}, OLD, 1)
    memory = workers.at("a")
    memory.update(lambda places, tasks: {0: {"inode": 5}})
    assert memory.read(OLD) == {0: {"inode": 5}}
    workers.write("b", OLD, OLD, 7)
    memory = workers.at("a")
    memory.update(lambda places, tasks: {0: {"inode": 6}})
    assert memory.read(OLD) == {0: {"inode": 7}}


def test_of_two_that_are_as_late_the_one_counts_that_has_the_places(workers: Workers) -> None:
    """A worker that could not publish what it noticed did not see what the next one sent."""
    workers.write("a", {}, OLD, 1)
    workers.at("a").write(OLD, OLD, {0: {"inode": 5}})
    workers.write("b", OLD, NEW, 2)
    assert workers.at("a").read(NEW) == {0: {"inode": 2}}


def test_positions_that_somebody_removed_have_no_memory_anywhere(workers: Workers) -> None:
    """The next worker, and one that had it before, begin without."""
    workers.write("a", {}, {}, 1)
    workers.write("b", {}, {}, 2)
    workers.at("b").forget()
    assert workers.at("a").read({}) == {}
    assert workers.at("b").read({}) == {}


def test_brokers_that_are_away_get_it_later(workers: Workers) -> None:
    """What is noticed meanwhile stays in the file, and is published again after a while."""
    memory = workers.at("a")
    memory.read({})
    workers.storage.away = True
    memory.write({}, {}, {0: {"inode": 1}})
    memory.publish_late()
    workers.storage.away = False
    memory.publish_late()
    assert workers.at("b").read({}) == {}
    workers.clock.seconds += AGAIN_S
    memory.publish_late()
    assert workers.at("c").read({}) == {0: {"inode": 1}}


def test_a_source_that_remembers_nothing_writes_no_record(workers: Workers, tmp_path: Path) -> None:
    """Its offsets topic stays as Kafka Connect writes it."""
    memory = workers.at("a")
    memory.read({})
    memory.write({}, OLD, {})
    memory.publish()
    assert not (tmp_path / "offsets").exists() or " s" not in json.loads((tmp_path / "offsets").read_text())
