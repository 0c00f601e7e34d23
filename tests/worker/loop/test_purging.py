"""What a connector left is removed before it is deleted, and nothing else."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from parquet_sink.files import naming
from parquet_sink.files.durable_state import DURABLE_STATE
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.net.settings import HttpSettings
from parquet_sink.notify.notice import probe_of
from parquet_sink.notify.settings import NotifySettings
from parquet_sink.notify.waiting import NoticeFolder
from parquet_sink.parked.names import name_of
from parquet_sink.worker.herder.errors import Elsewhere, NotPurged, UnknownConnector
from parquet_sink.worker.herder.values import State, TargetState
from parquet_sink.worker.loop.flow import ParquetFlow
from parquet_sink.worker.rest import purging
from parquet_sink.worker.rest.call import Reply
from tests.factories import settings as sink_settings
from tests.messages import assert_says, saying
from tests.worker.loop.doubles import Query
from tests.worker.loop.worker_doubles import Loop


@pytest.fixture
def deleting(loop: Loop, launched: list[Query], monkeypatch: pytest.MonkeyPatch) -> Loop:
    """A loop with a connector that runs; its rounds go on while a request waits for them."""
    loop.requests.create("one", {})
    loop.settle()
    clock = SimpleNamespace(monotonic=loop.clock, sleep=lambda seconds: loop.round())
    monkeypatch.setattr(purging, "time", clock)
    return loop


def purge(loop: Loop) -> list[str]:
    """What stays of connector one, of a worker that is alone."""

    def nobody(elsewhere: Elsewhere, method: str, path: str) -> Reply:
        raise AssertionError(path)

    found = purging.Purging(loop.requests, nobody).purge("one")
    assert found["warnings"] == []
    return found["left"]


def folder_of(loop: Loop) -> Path:
    """Of connector one."""
    return Path(naming.connector_folder(str(loop.folder / "tmp"), "one"))


def test_its_folder_goes_with_it(deleting: Loop) -> None:
    """Once it has ended all of its durable state goes, and empty folders; others' folders stay."""
    folder = folder_of(deleting)
    other = folder.parent / "other" / "file"
    other.parent.mkdir()
    other.touch()
    for item in DURABLE_STATE:
        (folder / item.name / "x" if item.is_folder else folder / item.name).parent.mkdir(parents=True, exist_ok=True)
        (folder / item.name / "x" if item.is_folder else folder / item.name).touch()
    for name in (".history.db-wal", ".source-memory.json.new", "orders/0/x", ".claims/orders-0", ".replayed/journal"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "orders" / "0" / "x").unlink()
    assert (folder / naming.STATE_FILE).exists()
    assert purge(deleting) == []
    deleting.settle()
    assert (folder.exists(), other.exists()) == (False, True)
    assert deleting.requests.names() == ()
    with pytest.raises(UnknownConnector):
        purge(deleting)


def test_what_is_not_its_own_stays_and_is_told(deleting: Loop) -> None:
    """Files that somebody put there, and Parquet files that were kept to look at."""
    folder = folder_of(deleting)
    kept = [folder / "notes.txt", folder / "orders" / "kept.parquet"]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert purge(deleting) == [str(path) for path in kept]
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == kept


def test_parked_records_are_nowhere_else(deleting: Loop) -> None:
    """Then nothing is deleted at all, and the cure is told."""
    parked = folder_of(deleting) / naming.PARKED_FOLDER / "orders" / "0" / name_of(1)
    parked.parent.mkdir(parents=True)
    parked.touch()
    with pytest.raises(NotPurged, match=saying("parked records", "parquet-sink parked replay", "Nothing was deleted")):
        purge(deleting)
    assert deleting.requests.status("one").state is State.RUNNING
    assert parked.exists()


def test_a_notice_that_waits_is_nowhere_else(tmp_path: Path) -> None:
    """The webhook has not heard of its file; without the webhook nobody waits for it."""
    folder = naming.notices_folder(str(tmp_path), "one")
    notify = NotifySettings("one", "T", folder, HttpSettings(), url="http://localhost:1")
    settings = replace(sink_settings(tmp_path), notify=notify)
    assert ParquetFlow(settings).nowhere_else() is None
    NoticeFolder(folder).put(probe_of("one", f"{7:032x}"))
    assert_says(ParquetFlow(settings).nowhere_else() or "", "1 notice", "webhook", "connect.ems.notify.url")
    assert ParquetFlow(replace(settings, notify=None)).nowhere_else() is None


def test_a_folder_that_another_uses_by_now_stays(deleting: Loop) -> None:
    """Its lock tells; the connector is stopped and not deleted, which is said."""
    folder = folder_of(deleting)
    deleting.requests.set_target("one", TargetState.STOPPED)
    deleting.settle()
    with (
        ConnectorLock(str(folder.parent), "one"),
        pytest.raises(NotPurged, match=saying("Connector one", "is stopped", "not deleted", "is not removed")),
    ):
        purge(deleting)
    assert folder.exists()
    assert deleting.requests.status("one").state is State.STOPPED


def test_what_does_not_end_is_not_removed(deleting: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flush that takes too long; the request may be sent again."""
    monkeypatch.setattr(purging, "STOP_S", 5.0)
    deleting.drains = False
    with pytest.raises(NotPurged, match=saying("Connector one", "is stopped", "not ended", "ask again")):
        purge(deleting)
    assert folder_of(deleting).exists()
    deleting.drains = True
    deleting.settle()
    assert purge(deleting) == []
