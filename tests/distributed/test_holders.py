"""Which workers may have files of a connector is known to all, also once one of them has stopped."""

from collections.abc import Callable
from pathlib import Path

import pytest

from parquet_sink.files import naming
from parquet_sink.worker.herder.errors import OtherWorker, UnknownWorker, WorkerAnswers
from parquet_sink.worker.herder.values import HoldingWorker
from tests.distributed.group_doubles import Group, Worker
from tests.worker.loop.conftest import clock, launched, make_loop
from tests.worker.loop.worker_doubles import Loop

__all__ = ["clock", "launched", "make_loop"]  # fixtures


@pytest.fixture
def group(make_loop: Callable[[], Loop]) -> Group:
    """Two workers, a and b, of which a leads; b has connector one."""
    made = Group(make_loop)
    for name in "ab":
        made.add(name)
    made.settle()
    for name in ("of-the-leader", "one"):
        made.leader.herder.create(name, {"name": name})
        made.settle()
    assert made.running()["one"] == ["b"]
    return made


def holders(worker: Worker) -> list[HoldingWorker]:
    """Return the workers that may have files of connector one, as a worker knows it."""
    return list(worker.herder.find_holders("one"))


def look(group: Group, worker_id: str) -> None:
    """Let a worker look which folders it has, and say so."""
    worker = group.workers[worker_id]
    worker.owned.caretaker.step(worker.config.state.connectors)
    group.settle()


def folder_of(worker: Worker) -> Path:
    """Return the connector's folder at a worker."""
    return Path(naming.connector_folder(str(worker.loop.folder / "tmp"), "one"))


def test_a_worker_that_stopped_is_known_to_have_had_it(group: Group) -> None:
    """It does not answer, and may be forgotten; while it is in the group it may not."""
    assert holders(group.workers["a"]) == [HoldingWorker("b", runs=True, answers=True)]
    with pytest.raises(WorkerAnswers):
        group.leader.herder.forget_worker("b")
    group.kill("b")
    group.settle()
    leader = group.leader
    assert holders(leader) == [HoldingWorker("a", True, True), HoldingWorker("b", False, False)]
    with pytest.raises(OtherWorker) as raised:
        leader.herder.settings("one", "b")
    assert (raised.value.url, "--forget b" in str(raised.value)) == (None, True)
    leader.herder.forget_worker("b")
    assert holders(leader) == [HoldingWorker("a", runs=True, answers=True)]
    with pytest.raises(UnknownWorker):
        leader.herder.forget_worker("b")


def test_a_worker_says_what_folders_it_finds(group: Group) -> None:
    """One of an earlier release said nothing; what is purged is there no more."""
    worker = group.workers["a"]
    look(group, "a")
    assert [holder.worker_id for holder in holders(worker)] == ["b"]
    folder_of(worker).mkdir(parents=True)
    look(group, "a")
    assert [holder.worker_id for holder in holders(worker)] == ["b", "a"]
    folder_of(worker).rmdir()
    look(group, "a")
    assert [holder.worker_id for holder in holders(worker)] == ["b"]


def test_settings_are_those_of_the_worker_that_is_named(group: Group) -> None:
    """The request goes on to it; there they have its folders, whoever runs the connector."""
    with pytest.raises(OtherWorker) as raised:
        group.workers["a"].herder.settings("one", "b")
    assert raised.value.url == "http://b"
    here = group.workers["a"].herder.settings("one", "a")
    assert here.tmp_dir == str(group.workers["a"].loop.folder / "tmp")
