"""What a deleted connector left is removed, and nothing else."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from parquet_sink.files import naming
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.parked.names import name_of
from parquet_sink.worker.herder.errors import NotPurged, UnknownConnector
from parquet_sink.worker.loop import herder
from tests.messages import saying
from tests.worker.loop.doubles import Query
from tests.worker.loop.worker_doubles import Loop


@pytest.fixture
def deleting(loop: Loop, launched: list[Query], monkeypatch: pytest.MonkeyPatch) -> Loop:
    """A loop with a connector that runs; its rounds go on while a request waits for them."""
    loop.requests.create("one", {})
    loop.settle()
    clock = SimpleNamespace(monotonic=loop.clock, sleep=lambda seconds: loop.round())
    monkeypatch.setattr(herder, "time", clock)
    return loop


def folder_of(loop: Loop) -> Path:
    """Of connector one."""
    return Path(naming.connector_folder(str(loop.folder / "tmp"), "one"))


def test_its_folder_goes_with_it(deleting: Loop) -> None:
    """Once it has ended: lock, state, history, what replays left and empty folders; others' folders stay."""
    folder = folder_of(deleting)
    other = folder.parent / "other" / "file"
    other.parent.mkdir()
    other.touch()
    for name in (".history.db", ".history.db-wal", "orders/0/x", ".claims/orders-0", ".replayed/journal"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "orders" / "0" / "x").unlink()
    assert (folder / naming.STATE_FILE).exists()
    assert deleting.requests.purge("one") == ()
    assert (folder.exists(), other.exists()) == (False, True)
    assert deleting.requests.names() == ()
    with pytest.raises(UnknownConnector):
        deleting.requests.purge("one")


def test_what_is_not_its_own_stays_and_is_told(deleting: Loop) -> None:
    """Files that somebody put there, and Parquet files that were kept to look at."""
    folder = folder_of(deleting)
    kept = [folder / "notes.txt", folder / "orders" / "kept.parquet"]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert deleting.requests.purge("one") == tuple(str(path) for path in kept)
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == kept


def test_parked_records_are_nowhere_else(deleting: Loop) -> None:
    """Then nothing is deleted at all, and the cure is told."""
    parked = folder_of(deleting) / naming.PARKED_FOLDER / "orders" / "0" / name_of(1)
    parked.parent.mkdir(parents=True)
    parked.touch()
    with pytest.raises(NotPurged, match=saying("parked records", "parquet-sink parked replay", "Nothing was deleted")):
        deleting.requests.purge("one")
    assert deleting.requests.names() == ("one",)
    assert parked.exists()


def test_a_folder_that_another_uses_by_now_stays(deleting: Loop) -> None:
    """Its lock tells; the connector is deleted all the same, which is said."""
    folder = folder_of(deleting)
    deleting.requests.set_target("one", herder.TargetState.STOPPED)
    deleting.settle()
    with (
        ConnectorLock(str(folder.parent), "one"),
        pytest.raises(NotPurged, match=saying("Connector one", "is deleted", "is not removed")),
    ):
        deleting.requests.purge("one")
    assert folder.exists()
    assert deleting.requests.names() == ()
