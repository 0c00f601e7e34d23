"""Workers of two releases in one group: the newer one knows a later form of the workers' own records, and more."""

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import pytest

import parquet_sink
from integration.harness import Sink
from integration.numbered import numbered, numbers
from integration.worker_group import WorkerGroup, create
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.distributed.records import ASSIGNMENT

COUNT: Final = 2
PACKAGE: Final = Path(parquet_sink.__file__).parent
UNKNOWN: Final = 'self._commit({b"parquet-sink.quotas": b"[1]"})'
LATER: Final = {
    "distributed/assignment.py": ("FORM: Final = 1\n", "FORM: Final = 2\n"),
    "distributed/records.py": (
        'named = {"epoch": assignment.epoch,',
        'named = {"quota": {"of": "a later release"}, "epoch": assignment.epoch,',
    ),
    "distributed/leader.py": (
        "        if is_due(state.session_key",
        f"        if not state.unreadable:\n            {UNKNOWN}\n        if is_due(state.session_key",
    ),
}
"""What the newer release has otherwise: the form, a further field of the assignment, and a further kind of record."""


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the newer release, which is to be first on PYTHONPATH."""
    folder = tmp_path_factory.mktemp("later")
    shutil.copytree(PACKAGE, folder / PACKAGE.name)  # with what is compiled of it
    for name, (before, after) in LATER.items():
        path = folder / PACKAGE.name / name
        text = path.read_text()
        assert text.count(before) == 1, (name, before)
        path.write_text(text.replace(before, after))
    return folder


class Scene:
    """A group with workers of both releases, and connectors that have to deliver at each step."""

    def __init__(self, broker: Broker, target: TargetProcess, folder: Path, later: Path) -> None:
        self.group, self._broker = WorkerGroup(folder, broker, 0), broker
        self.environments: dict[str, Mapping[str, str]] = {"older": {}, "newer": {"PYTHONPATH": str(later)}}
        self.sinks = [Sink(cast(Any, None), broker, target, folder) for _ in range(COUNT)]
        self.topics = [f"topic-{time.time_ns()}-{number}" for number in range(COUNT)]
        self._produced = 0
        for topic in self.topics:
            broker.create_topic(topic, 2)

    def start(self, release: str) -> WorkerProcess:
        """One more worker; it is a member when this returns."""
        worker = self.group.add(environment=self.environments[release])
        self.group.workers.append(worker)
        worker.start()
        self.group.until(lambda: len(self.group.placed(self.group.workers[0])) == len(self.group.workers))
        return worker

    def end(self, worker: WorkerProcess) -> None:
        """In order."""
        self.group.workers.remove(worker)
        worker.stop()
        self.group.until(lambda: len(self.group.placed(self.group.workers[0])) == len(self.group.workers))

    def delivers(self) -> None:
        """Every connector runs, each with one of the workers, and what is produced now arrives once."""
        for topic in self.topics:
            self._broker.produce(topic, numbered(20, self._produced))
        self._produced += 20
        wanted = list(range(self._produced))
        self.group.until(lambda: all(sorted(numbers(sink.rows())) == wanted for sink in self.sinks))
        asked = self.group.workers[-1]
        self.group.until(lambda: set(asked.states().values()) == {"RUNNING"})

    def form(self) -> int:
        """Of the last assignment."""
        last = [one.value for one in self.group.config_records() if one.key == ASSIGNMENT.key()][-1]
        return int(json.loads(last or b"")["version"])

    def leads(self, worker: WorkerProcess) -> bool:
        """As it says itself."""
        found = worker.do("GET", "/workers")["workers"]
        return any(one["leads"] and worker.url.endswith(one["worker_id"]) for one in found)

    def ends_without(self, newer: WorkerProcess, older: WorkerProcess) -> None:
        """The newer one leads, in words that the older one reads, which is left alone then, and leads."""
        self.group.until(lambda: self.shares() == [1, 1])
        self.delivers()
        assert self.form() == 1
        self.group.until(lambda: "'parquet-sink.quotas'" in older.command.said)
        assert "no such key" in older.command.said
        self.end(newer)
        self.delivers()
        assert self.leads(older)
        unknown = {one.value for one in self.group.config_records() if one.key == b"parquet-sink.quotas"}
        assert unknown == {b"[1]"}

    def shares(self) -> list[int]:
        """How many connectors each worker has."""
        return sorted(map(len, self.group.placed(self.group.workers[0]).values()))


@pytest.fixture
def scene(broker: Broker, target: TargetProcess, tmp_path: Path, later: Path) -> Iterator[Scene]:
    """Without a worker yet."""
    made = Scene(broker, target, tmp_path, later)
    try:
        yield made
    finally:
        made.group.close()


@pytest.mark.in_turn(seconds=60)
def test_workers_of_two_releases_are_one_group(scene: Scene) -> None:
    """Whoever leads, connectors move and run; what one does not know it leaves alone and tells; both ways."""
    older = scene.start("older")
    create(older, scene.sinks, scene.topics)
    scene.delivers()

    newer = scene.start("newer")  # the older one leads
    assert scene.leads(older)
    scene.group.until(lambda: scene.shares() == [1, 1])
    scene.delivers()
    assert scene.form() == 1

    scene.end(older)
    scene.group.until(lambda: scene.leads(newer))
    scene.group.until(lambda: scene.form() == 2)  # all are of the newer release
    scene.delivers()

    back = scene.start("older")
    scene.group.until(lambda: scene.form() == 1)
    scene.ends_without(newer, back)


@pytest.mark.slow
def test_a_newer_release_leads_beside_an_older_one_at_once(scene: Scene) -> None:
    """An older worker stays when the one that led ends, so that the newer one begins in words that it reads."""
    older = scene.start("older")
    create(older, scene.sinks, scene.topics)
    newer, other = scene.start("newer"), scene.start("older")
    scene.end(older)
    scene.group.until(lambda: scene.leads(other) or scene.leads(newer))
    if scene.leads(other):  # the coordinator may choose either
        scene.end(other)
        scene.group.until(lambda: scene.leads(newer))
        other = scene.start("older")
        scene.group.until(lambda: scene.form() == 1)
    assert scene.form() == 1
    scene.ends_without(newer, other)
