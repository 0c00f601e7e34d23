"""When tasks of a source have work, and that nothing is planned beyond positions that are not stored."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from parquet_sink.addons.sources.flow import planner as source_planner
from parquet_sink.addons.sources.flow.outcome import SourceOutcome, SourceWork
from parquet_sink.addons.sources.flow.planner import SourcePlanner
from parquet_sink.addons.sources.flow.positions import SourcePositions
from parquet_sink.addons.sources.flow.reached import SourceReached
from parquet_sink.addons.sources.memory import MemoryFile
from parquet_sink.addons.sources.offsets.connect_form import Places
from parquet_sink.addons.sources.offsets.file import FileStorage
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.addons.sources.task import Memory, Reached
from parquet_sink.errors import BrokerAway, BrokersGone, RunFilesLost
from parquet_sink.files.storage import prepare_connector
from parquet_sink.model.receipts import Failure
from parquet_sink.process.lease import LeaseFile, clock_ns
from parquet_sink.settings.connector import RestartSettings, with_cluster
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import DRAINED, PAUSE, SENT, STARTED, STOP
from parquet_sink.worker_config.offset_storage import OffsetStorageSettings
from tests.factories import Clock

PLACE = '{"part":"a"}'


class Blind:
    """A task that cannot look."""

    def start(self, settings: Mapping[str, str], reached: Reached) -> None: ...
    def poll(self) -> tuple[()]:
        return ()

    def stop(self) -> None: ...


class Watching(Blind):
    """One that sees what the test says."""

    seen: ClassVar[object] = 0

    def look(self) -> object:
        return self.seen


class Noting(Watching):
    """One that remembers what it saw."""

    def start(self, settings: Mapping[str, str], reached: Reached) -> None:
        self._known = dict(reached.memory)

    def noticed(self) -> Memory | None:
        return None if self._known == {"seen": self.seen} else {"seen": int(str(self.seen))}


class Scene:
    """A planner of one task over a real store and a real file of positions."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, task: type[Blind], lease: str | None = None
    ) -> None:
        monkeypatch.setattr(source_planner, "task_class", lambda path: task)
        monkeypatch.setattr(Watching, "seen", 0)
        prepare_connector(str(folder), "s")
        self.file = str(folder / "offsets")
        storage = OffsetStorageSettings(file=self.file)
        restart = RestartSettings(pause_ms=1_000, longest_ms=1_500, away_ms=5_000)
        made = SourceSettings("s", "m:T", ({},), "numbers", ("t",), storage, tmp_dir=str(folder), restart=restart)
        made = with_cluster(made, lease=lease)
        self.state = SqliteStore(folder / "state.db")
        self.clock = Clock(100.0)
        positions = SourcePositions(made, str(folder))
        self.planner = SourcePlanner(made, self.state, positions, self.clock, self.clock)
        self.planner.begin()

    def reach(self, outcome: SourceOutcome) -> None:
        """As the committer notes it."""
        self.state.set(SENT, SourceReached.of([outcome]).to_json())

    def turns(self) -> list[int]:
        """How much work two ticks give, of which the first is done when the second one comes."""
        first = self.planner.tick()
        if first:
            self.reach(SourceOutcome(0))
        return [len(first), len(self.planner.tick())]


@pytest.fixture
def watching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Of a task that can look."""
    return Scene(tmp_path, monkeypatch, Watching)


def test_work_is_planned_for_news_alone(watching: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task is asked at the start, then when it sees something else, or ended for time."""
    assert watching.state.get(STARTED)
    assert watching.turns() == [1, 0]
    monkeypatch.setattr(Watching, "seen", 1)
    assert watching.turns() == [1, 0]
    monkeypatch.setattr(Watching, "seen", 2)
    assert len(watching.planner.tick()) == 1
    watching.reach(SourceOutcome(0, polled=1, more=True))
    assert watching.turns() == [1, 0]


def test_work_of_which_nothing_is_reported_is_not_taken_for_done(watching: Scene) -> None:
    """A state file that lost the report ends the query, which sends again from what is stored; idle ticks do not."""
    assert watching.turns() == [1, 0]
    assert watching.planner.tick() == []
    watching.reach(SourceOutcome(0, {PLACE: {"at": 7}}, polled=1, more=True))
    assert len(watching.planner.tick()) == 1
    watching.reach(SourceOutcome(0, {PLACE: {"at": 9}}, polled=1))
    watching.state.set(SENT, None)
    with pytest.raises(RunFilesLost, match=r"connect\.ems\.tmp\.dir"):
        watching.planner.tick()
    assert FileStorage(watching.file).read("s") == {PLACE: {"at": 7}}


def test_places_are_stored_before_more_is_planned(watching: Scene) -> None:
    """The next work begins where the last outcome ended, with what was remembered there."""
    watching.planner.tick()
    watching.reach(SourceOutcome(0, {PLACE: {"at": 7}}, {"mark": "m"}, polled=1, more=True))
    assert watching.planner.tick() == [SourceWork(0, {PLACE: {"at": 7}}, {"mark": "m"})]
    assert FileStorage(watching.file).read("s") == {PLACE: {"at": 7}}
    assert watching.state.get(SENT) is None


def test_a_pause_and_a_stop_plan_nothing(watching: Scene) -> None:
    """While it is paused nothing begins; a stop stores what was reached, and says that nothing is in flight."""
    watching.state.set(PAUSE, True)
    assert watching.planner.tick() == []
    watching.reach(SourceOutcome(0, {PLACE: {"at": 7}}, polled=1))
    watching.state.set(STOP, True)
    assert watching.planner.tick() == []
    assert watching.state.get(DRAINED)
    assert FileStorage(watching.file).read("s") == {PLACE: {"at": 7}}


def test_brokers_that_are_away_are_waited_for(watching: Scene) -> None:
    """The same work comes again after a pause that grows, until it has lasted for as long as the settings say."""
    away = SourceOutcome(0, polled=1, failure=Failure("BrokerAway", "nobody answers."), away=True)
    watching.planner.tick()
    for pause_s in (1.0, 1.5, 1.5):
        watching.reach(away)
        assert watching.planner.tick() == []
        watching.clock.sleep(pause_s - 0.1)
        assert watching.planner.tick() == []
        watching.clock.sleep(0.2)
        assert len(watching.planner.tick()) == 1
    watching.clock.sleep(1.0)
    watching.reach(away)
    with pytest.raises(BrokersGone, match=r"connect\.ems\.away\.timeout\.ms"):
        watching.planner.tick()


def test_what_is_noticed_is_remembered_while_nothing_can_be_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is stored, while it is paused, and while brokers are away, a look is remembered at once."""
    scene = Scene(tmp_path, monkeypatch, Noting)
    memory = MemoryFile(str(tmp_path / "s"))
    assert memory.read({}) == {0: {"seen": 0}}
    scene.state.set(PAUSE, True)
    monkeypatch.setattr(Watching, "seen", 1)
    assert scene.planner.tick() == []
    assert memory.read({}) == {0: {"seen": 1}}
    scene.state.set(PAUSE, False)
    assert scene.planner.tick() == [SourceWork(0, {}, {"seen": 1})]
    scene.reach(SourceOutcome(0, polled=1, failure=Failure("BrokerAway", "nobody answers."), away=True))
    monkeypatch.setattr(Watching, "seen", 2)
    assert scene.planner.tick() == []
    assert memory.read({}) == {0: {"seen": 2}}


def test_what_is_noticed_while_positions_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the brokers that keep positions are away at the first start, files are seen all the same."""

    def away(self: object, connector: str) -> Places:
        raise BrokerAway("nobody answers.")

    with monkeypatch.context() as patch:
        patch.setattr(FileStorage, "read", away)
        with pytest.raises(BrokerAway):
            Scene(tmp_path, monkeypatch, Noting)
    monkeypatch.setattr(Watching, "seen", 1)
    monkeypatch.setattr(Noting, "noticed", lambda self: None)
    assert Scene(tmp_path, monkeypatch, Noting).planner.tick() == [SourceWork(0, {}, {"seen": 0})]


def test_a_task_that_cannot_look_is_asked_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked once a second; a drain ends when it gives nothing."""
    scene = Scene(tmp_path, monkeypatch, Blind)
    assert scene.turns() == [1, 0]
    scene.clock.sleep(1.0)
    assert len(scene.planner.tick()) == 1
    scene.planner.draining = True
    scene.reach(SourceOutcome(0, polled=1))
    assert len(scene.planner.tick()) == 1
    scene.reach(SourceOutcome(0))
    scene.clock.sleep(9.0)
    assert scene.planner.tick() == []


def test_without_a_lease_nothing_is_planned_or_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another worker may have stored what comes later; a stop ends it all the same."""
    lease = LeaseFile(str(tmp_path / "lease"))
    lease.write(clock_ns() + 60_000_000_000)
    scene = Scene(tmp_path, monkeypatch, Watching, lease.path)
    assert len(scene.planner.tick()) == 1
    lease.write(0)
    scene.reach(SourceOutcome(0, {PLACE: {"at": 7}}, polled=1, more=True))
    assert scene.planner.tick() == []
    assert FileStorage(scene.file).read("s") == {}
    lease.write(clock_ns() + 60_000_000_000)
    assert len(scene.planner.tick()) == 1
    assert FileStorage(scene.file).read("s") == {PLACE: {"at": 7}}
    lease.write(0)
    scene.state.set(STOP, True)
    assert scene.planner.tick() == []
    assert scene.state.get(DRAINED)
