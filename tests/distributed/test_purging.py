"""A connector is purged by any worker: each that answers removes what it has of it."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from parquet_sink.files import naming
from parquet_sink.parked.names import name_of
from parquet_sink.worker.herder.errors import Elsewhere, NotLeader, NotPurged
from parquet_sink.worker.herder.values import State
from parquet_sink.worker.rest import purging
from parquet_sink.worker.rest.call import Call, Reply, RestError
from parquet_sink.worker.rest.purging import Purging
from tests.distributed.group_doubles import Group, Worker
from tests.messages import assert_says, saying
from tests.worker.loop.conftest import clock, launched, make_loop
from tests.worker.loop.worker_doubles import Loop

__all__ = ["clock", "launched", "make_loop"]  # fixtures


@pytest.fixture
def group(make_loop: Callable[[], Loop], monkeypatch: pytest.MonkeyPatch) -> Group:
    """Three workers, a, b and c, of which a leads; connector one is at another, and each of them had files of it."""
    made = Group(make_loop)
    for name in "abc":
        made.add(name)
    made.settle()
    for name in ("of-the-leader", "one"):
        made.leader.herder.create(name, {"name": name})
        made.settle()
    assert made.running()["one"] != ["a"]
    for worker in made.workers.values():
        left(worker, ".history.db")
    loop = made.workers["a"].loop
    monkeypatch.setattr(purging, "time", SimpleNamespace(monotonic=loop.clock, sleep=lambda seconds: made.step()))
    return made


def folder_of(worker: Worker) -> Path:
    """Of the connector, at one worker."""
    return Path(naming.connector_folder(str(worker.loop.folder / "tmp"), "one"))


def left(worker: Worker, name: str) -> Path:
    """A file that it left there."""
    path = folder_of(worker) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def purge(group: Group, worker_id: str = "a") -> dict[str, list[str]]:
    """By one worker; it reaches those that are awake."""
    return _purging(group, group.workers[worker_id]).purge("one")


def _purging(group: Group, worker: Worker) -> Purging:
    def ask(elsewhere: Elsewhere, method: str, path: str) -> Reply:
        other = next(one for one in group.workers.values() if f"http://{one.worker_id}" == elsewhere.url)
        if other.frozen:
            raise RestError(409, "it does not answer")
        found = next(one for one in _purging(group, other).endpoints() if one.method == method)
        assert path == found.path.format(connector="one")
        try:
            return Reply(json.dumps(found.handler(Call({"connector": "one"})).content).encode())
        except RestError as error:
            return Reply(json.dumps({"message": error.message}).encode(), error.status)

    return Purging(worker.herder, ask)


def test_each_worker_removes_what_it_has(group: Group) -> None:
    """Also those that have the connector no more; then it is gone, and what is not its own is told by worker."""
    kept = left(group.workers["b"], "notes.txt")
    assert purge(group) == {"left": [f"b: {kept}"], "warnings": []}
    group.settle()
    assert [folder_of(one).exists() for one in group.workers.values()] == [False, True, False]
    assert list(kept.parent.iterdir()) == [kept]
    assert [one.herder.names() for one in group.workers.values()] == [("of-the-leader",)] * 3


def test_a_follower_refers_to_the_leader(group: Group) -> None:
    """Nothing is done by it."""
    with pytest.raises(NotLeader) as raised:
        purge(group, "b")
    assert raised.value.url == "http://a"
    assert all(folder_of(one).exists() for one in group.workers.values())


def test_a_worker_that_does_not_answer_is_named(group: Group) -> None:
    """With what is to be done there; the others remove what they have, and the connector is deleted."""
    silent = next(one for one in "bc" if [one] != group.running()["one"])
    group.workers[silent].frozen = True
    found = purge(group)
    assert found["left"] == []
    (warning,) = found["warnings"]
    assert_says(warning, f"Worker {silent}", "does not answer", "connector one", "connect.ems.tmp.dir")
    assert {one.worker_id for one in group.workers.values() if folder_of(one).exists()} == {silent}
    assert group.leader.herder.names() == ("of-the-leader",)


def test_a_worker_that_stopped_before_is_named(group: Group) -> None:
    """It had the connector, and is no member by now."""
    owner = group.running()["one"][0]
    group.kill(owner)
    group.settle()
    (warning,) = purge(group)["warnings"]
    assert_says(warning, f"Worker {owner}", "does not answer")


def test_a_frozen_worker_s_connector_is_taken_over_before_it_is_removed(group: Group) -> None:
    """It has ended at the worker that has it by then."""
    owner = group.running()["one"][0]
    group.workers[owner].frozen = True
    group.remove(owner)
    assert len(purge(group)["warnings"]) <= 1
    assert group.leader.herder.names() == ("of-the-leader",)
    assert {one.worker_id for one in group.workers.values() if folder_of(one).exists()} == {owner}


def test_parked_records_of_one_worker_are_nowhere_else(group: Group) -> None:
    """Then nothing is done by any, and which worker has them is told."""
    for worker in group.workers.values():
        parked = left(worker, f"{naming.PARKED_FOLDER}/orders/0/{name_of(1)}")
        with pytest.raises(
            NotPurged, match=saying("parked records", "parquet-sink parked replay", "Nothing was")
        ) as found:
            purge(group)
        assert worker.worker_id == "a" or f"Worker {worker.worker_id}:" in str(found.value)
        parked.unlink()
    assert group.leader.herder.status("one").state is State.RUNNING
    assert all((folder_of(one) / ".history.db").exists() for one in group.workers.values())


def test_what_one_refuses_in_the_end_keeps_the_connector(group: Group) -> None:
    """Records that its last flush parked: it is stopped, so they can be sent, and the request repeated."""
    owner = group.workers[group.running()["one"][0]]
    name = f"{naming.PARKED_FOLDER}/orders/0/{name_of(1)}"
    stop, parked = purging.Purging._stop, []

    def stopped(one: Purging, connector: str) -> None:
        stop(one, connector)
        parked.append(left(owner, name))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Purging, "_stop", stopped)
        with pytest.raises(NotPurged, match=saying("Connector one", "is stopped", "not deleted", "parked records")):
            purge(group)
    assert group.leader.herder.status("one").state is State.STOPPED
    parked[0].unlink()
    assert purge(group)["warnings"] == []
    assert not any(folder_of(one).exists() for one in group.workers.values())
