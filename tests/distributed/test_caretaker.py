"""What waits in a worker's folders is sent by that worker, whoever runs the connector now."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink.archive.target import local_file
from parquet_sink.archive.waiting import WaitingFolder
from parquet_sink.connectors.loading import Loaded
from parquet_sink.distributed import caretaker as caretaking
from parquet_sink.distributed.caretaker import Caretaker
from parquet_sink.errors import AnotherInstance
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.files.naming import notices_folder, waiting_folder
from parquet_sink.net.settings import HttpSettings
from parquet_sink.notify.notice import probe_of
from parquet_sink.notify.settings import NotifySettings
from parquet_sink.notify.waiting import NoticeFolder
from parquet_sink.settings.sink import SinkSettings
from tests.archive.files import archive_in, finished, stored
from tests.distributed.group_doubles import Group
from tests.factories import settings as sink_settings
from tests.notify.receiver import Receiver, receiver
from tests.worker.loop.conftest import clock, launched, make_loop
from tests.worker.loop.worker_doubles import Loop

__all__ = ["clock", "launched", "make_loop", "receiver"]  # fixtures
STORED: Mapping[str, Mapping[str, str]] = {"orders": {"name": "orders"}}
TIMEOUT_S = 20.0


@pytest.fixture
def sink(tmp_path: Path) -> SinkSettings:
    """A connector that does not wait for its archive, and ran on this worker before."""
    tmp = tmp_path / "tmp"
    archive = replace(archive_in(tmp_path, required=False), waiting=waiting_folder(str(tmp), "orders"))
    with ConnectorLock(str(tmp), "orders"):
        pass
    return replace(sink_settings(tmp), archive=archive)


@pytest.fixture
def caretaker(sink: SinkSettings) -> Iterator[Caretaker]:
    """Of a worker whose configurations of `orders` give these settings."""
    made = caretaker_of(sink)
    yield made
    made.close()


def caretaker_of(sink: SinkSettings) -> Caretaker:
    """Return one whose every configuration gives these settings."""
    return Caretaker(lambda config, name: Loaded(sink, (), (), "test", config))


def put_file(sink: SinkSettings, folder: Path) -> None:
    """Let an accepted file wait for the archive."""
    assert sink.archive is not None
    waiting = WaitingFolder(sink.archive.waiting, sink.archive.max_waiting_bytes)
    assert waiting.put(local_file(finished(folder / "files", b"1", 1))) is None


def step_until(caretaker: Caretaker, condition: Callable[[], bool]) -> None:
    """Look again and again until the condition holds."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        caretaker.step(STORED)
        time.sleep(0.01)


def is_free(sink: SinkSettings) -> bool:
    """Return whether a run could take the connector's lock."""
    try:
        with ConnectorLock(sink.tmp_dir, sink.name):
            return True
    except AnotherInstance:
        return False


def test_files_of_a_connector_that_moved_are_archived(caretaker: Caretaker, sink: SinkSettings, tmp_path: Path) -> None:
    """A file that waits in this worker's folder reaches the archive, and the lock is free afterwards."""
    put_file(sink, tmp_path)
    step_until(caretaker, lambda: stored(tmp_path / "archive") != {} and is_free(sink))
    assert list(stored(tmp_path / "archive").values()) == [b"1"]
    assert sink.archive is not None
    assert WaitingFolder(sink.archive.waiting).files() == []


def test_a_configuration_that_could_not_be_used_is_read_again(
    sink: SinkSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its archive may have been away for a while."""
    put_file(sink, tmp_path)
    wrong = Loaded(None, ("Invalid [connect.ems.archive.url]. No such folder.",), (), "test", {})
    answers = [wrong]
    caretaker = Caretaker(lambda config, name: answers.pop() if answers else Loaded(sink, (), (), "test", config))
    caretaker.step(STORED)
    caretaker.step(STORED)
    assert stored(tmp_path / "archive") == {}
    monkeypatch.setattr(caretaking, "AGAIN_S", 0.0)
    step_until(caretaker, lambda: stored(tmp_path / "archive") != {})
    caretaker.close()


def test_notices_of_a_connector_that_moved_are_posted(sink: SinkSettings, receiver: Receiver, tmp_path: Path) -> None:
    """A notice that waits in this worker's folder reaches the webhook."""
    waiting = notices_folder(sink.tmp_dir, "orders")
    notify = NotifySettings("orders", "T", waiting, HttpSettings(), url=receiver.url)
    folder = NoticeFolder(waiting)
    folder.put(probe_of("orders", f"{7:032x}"))
    caretaker = caretaker_of(replace(sink, notify=notify))
    step_until(caretaker, lambda: not folder.notices())
    caretaker.close()


def test_nothing_is_touched_while_this_worker_runs_it(caretaker: Caretaker, sink: SinkSettings, tmp_path: Path) -> None:
    """A connector that runs here keeps its files and its lock, until this worker runs it no longer."""
    put_file(sink, tmp_path)
    caretaker.make_way("orders")
    for _ in range(20):
        caretaker.step(STORED)
        time.sleep(0.01)
    assert stored(tmp_path / "archive") == {}
    assert is_free(sink)
    caretaker.take_over("orders")
    step_until(caretaker, lambda: stored(tmp_path / "archive") != {})


def test_a_run_gets_the_lock_at_once(caretaker: Caretaker, sink: SinkSettings, tmp_path: Path) -> None:
    """An archive that is away does not keep this worker from running the connector again, and its file waits on."""
    put_file(sink, tmp_path)
    (tmp_path / "archive").rmdir()
    caretaker.step(STORED)
    assert not is_free(sink)
    caretaker.make_way("orders")
    assert is_free(sink)


def test_a_connector_that_is_deleted_is_left(caretaker: Caretaker, sink: SinkSettings, tmp_path: Path) -> None:
    """The lock is free once the connector is stored no more."""
    put_file(sink, tmp_path)
    (tmp_path / "archive").rmdir()
    caretaker.step(STORED)
    caretaker.step({})
    assert is_free(sink)


def test_who_gets_and_gives_a_connector_tells_the_caretaker(
    make_loop: Callable[[], Loop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caretaker makes way before a run of this worker begins, and takes over once it has ended."""
    group, calls = Group(make_loop), list[tuple[str, str, str]]()
    monkeypatch.setattr(Caretaker, "make_way", lambda of, name: calls.append(("make_way", name, worker_of[id(of)])))
    monkeypatch.setattr(Caretaker, "take_over", lambda of, name: calls.append(("take_over", name, worker_of[id(of)])))
    first = group.add("a")
    worker_of = {id(first.owned.caretaker): "a"}
    group.settle()
    for name in ("one", "two"):
        first.herder.create(name, {"name": name})
        group.settle()
    worker_of[id(group.add("b").owned.caretaker)] = "b"
    group.settle()
    [moved] = [name for act, name, worker in calls if (act, worker) == ("make_way", "b")]
    assert calls == [
        ("make_way", "one", "a"),
        ("make_way", "two", "a"),
        ("take_over", moved, "a"),
        ("make_way", moved, "b"),
    ]
