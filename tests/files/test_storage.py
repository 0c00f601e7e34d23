"""The folder for temporary files, leftovers, and the lock."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from parquet_sink.errors import AnotherInstance, RunFilesLost, StorageFailed
from parquet_sink.files import naming, storage
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.files.storage import Purpose, storage_trouble
from tests.messages import assert_says, saying

OWN = naming.attempt_name("ab" * 16, 1)


def leave(tmp_path: Path, name: str, topic: str = "orders") -> Path:
    """A file of this name in the folder of a topic-partition."""
    folder = Path(naming.partition_folder(str(tmp_path), "sink", topic, 0))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("content")
    return folder / name


def test_prepare_makes_the_folder_and_leaves_nothing(tmp_path: Path) -> None:
    """An absent folder is made with its parents, and the probe is removed."""
    storage.prepare(str(tmp_path / "a" / "b"))
    assert list((tmp_path / "a" / "b").iterdir()) == []


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_prepare_refuses_a_file(tmp_path: Path, place: str) -> None:
    """A path that is a file, or lies below one, is told as such."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailed, match=saying("temporary files", str(tmp_path / place), "connect.ems.tmp.dir")):
        storage.prepare(str(tmp_path / place))


def test_prepare_tells_what_cannot_be_written() -> None:
    """A folder in which nothing can be made is told as such, for every user."""
    with pytest.raises(StorageFailed, match=saying("not write", "folder /proc", "bytes free", "connect.ems.tmp.dir")):
        storage.prepare("/proc")


def test_the_connectors_folder_is_private(tmp_path: Path) -> None:
    """What lies between Kafka and the target is readable by this user alone."""
    folder = storage.prepare_connector(str(tmp_path), "sink")
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def test_a_linked_folder_is_refused(tmp_path: Path) -> None:
    """A connector's folder that somebody made a symbolic link is not used."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "sink").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed, match=saying(str(tmp_path / "sink"), "symbolic link")):
        storage.prepare_connector(str(tmp_path), "sink")


def test_leftovers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    """Own unfinished files go; kept files, foreign files, lock and marker stay."""
    storage.prepare_connector(str(tmp_path), "sink")
    own = leave(tmp_path, OWN)
    others = [leave(tmp_path, n) for n in ("41.parquet", "notes.txt", OWN + "x", naming.LOCK_FILE)]
    assert storage.remove_leftovers(str(tmp_path), "sink") == 1
    assert not own.exists()
    assert all(path.exists() for path in others)
    assert Path(naming.connector_folder(str(tmp_path), "sink"), naming.MARKER_FILE).exists()


def test_without_the_marker_nothing_is_removed(tmp_path: Path) -> None:
    """A folder that this program did not make is not swept, whatever its files are called."""
    own = leave(tmp_path, OWN)
    assert storage.remove_leftovers(str(tmp_path), "sink") == 0
    assert own.exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    """Neither a linked file nor a file in a linked folder is removed."""
    storage.prepare_connector(str(tmp_path), "sink")
    outside = leave(tmp_path / "outside", OWN)
    topic = Path(naming.connector_folder(str(tmp_path), "sink"), "linked")
    topic.symlink_to(outside.parent.parent)
    link = leave(tmp_path, "placeholder").with_name(OWN)
    link.symlink_to(outside)
    assert storage.remove_leftovers(str(tmp_path), "sink") == 0
    assert outside.exists()
    assert link.is_symlink()


def test_other_connectors_are_left_alone(tmp_path: Path) -> None:
    """Sweeping one connector's folder leaves that of another with the same prefix."""
    for name in ("sink", "sink2"):
        storage.prepare_connector(str(tmp_path), name)
    other = Path(naming.partition_folder(str(tmp_path), "sink2", "t", 0))
    other.mkdir(parents=True)
    (other / OWN).write_text("")
    assert storage.remove_leftovers(str(tmp_path), "sink") == 0


def test_an_accepted_file_is_deleted_or_kept(tmp_path: Path) -> None:
    """After acceptance the file goes, or is kept under its last offset, where the next start leaves it."""
    storage.prepare_connector(str(tmp_path), "sink")
    gone, kept = leave(tmp_path, OWN), leave(tmp_path, naming.attempt_name("cd" * 16, 2))
    storage.after_acceptance(str(gone), "41.parquet", keep=False)
    storage.after_acceptance(str(kept), "42.parquet", keep=True)
    storage.remove_leftovers(str(tmp_path), "sink")
    assert [p.name for p in gone.parent.iterdir()] == ["42.parquet"]


@pytest.mark.parametrize(("keep", "what"), [(True, "renamed"), (False, "removed")])
def test_trouble_after_acceptance_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, keep: bool, what: str
) -> None:
    """A file that vanished after it was accepted is logged, not raised."""
    storage.after_acceptance(str(tmp_path / OWN), "1.parquet", keep=keep)
    assert_says(caplog.text, f"accepted file {tmp_path / OWN}", f"not be {what}", "No such file or directory")


def test_only_own_unsent_files_are_removed(tmp_path: Path) -> None:
    """An unsent file is removed by its own kind of name only."""
    own, foreign = leave(tmp_path, OWN), leave(tmp_path, "foreign.parquet")
    storage.remove_unsent(str(own))
    storage.remove_unsent(str(own))
    storage.remove_unsent(str(foreign))
    assert not own.exists()
    assert foreign.exists()


def test_empty_folders_are_removed_and_others_stay(tmp_path: Path) -> None:
    """With all empty ones below; a folder that has a file stays, and so do those above it."""
    for name in ("empty/0", "empty/1", "kept/0", "kept/1"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "kept" / "1" / "7.parquet").touch()
    for name in ("empty", "kept", "never"):
        storage.remove_empty(str(tmp_path / name))
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "kept",
        "kept/1",
        "kept/1/7.parquet",
    ]


def test_a_second_instance_is_named(tmp_path: Path) -> None:
    """While one holds the lock, another is told the process and its start; afterwards the lock is free."""
    with ConnectorLock(str(tmp_path), "sink", clock=lambda: 0.0):
        with pytest.raises(
            AnotherInstance, match=saying(f"process {os.getpid()}", "1970-01-01 00:00:00 UTC", "Stop that one")
        ):
            ConnectorLock(str(tmp_path), "sink").acquire()
        with ConnectorLock(str(tmp_path), "other"):
            pass
    with ConnectorLock(str(tmp_path), "sink"):
        pass


HOLDER = """
import sys
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.files.storage import Purpose, storage_trouble
ConnectorLock(sys.argv[1], "sink").acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_killed_process_frees_the_lock(tmp_path: Path) -> None:
    """The lock dies with its process, and its file names that process until then."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(AnotherInstance, match=f"process {process.pid}"):
            ConnectorLock(str(tmp_path), "sink").acquire()
        process.kill()
        process.wait()
    with ConnectorLock(str(tmp_path), "sink"):
        pass


WRITES = """
import sys, time
import pyarrow as pa
from parquet_sink.files.settings import FileSettings
from parquet_sink.files.accumulator import Accumulator, Place
from parquet_sink.files.rotation import Limits
from parquet_sink.rows.row_builder import Run
rows = pa.table({"a": list(range(10_000))})
settings = FileSettings(sys.argv[1], row_group_size_bytes=1_000)
made = Accumulator(Place("sink", "orders", 0, "0" * 32), Limits(10**9, 4_000), settings)
made.add(Run(rows, 10_000, 0, 9_999, False, rows["a"].combine_chunks()))
print("written", flush=True)
time.sleep(600)
"""


def test_what_a_killed_worker_left_is_swept(tmp_path: Path) -> None:
    """Finished files and the open one of a process that got SIGKILL go with the next attempt; nothing else does."""
    with subprocess.Popen([sys.executable, "-c", WRITES, str(tmp_path)], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "written\n"
        worker.kill()
    folder = naming.partition_folder(str(tmp_path), "sink", "orders", 0)
    assert len(os.listdir(folder)) == 3
    others = [leave(tmp_path, name) for name in ("41.parquet", "notes.txt", OWN + "x")]
    elsewhere = leave(tmp_path, OWN, "customers")
    assert storage.sweep(folder) == 3
    assert sorted(Path(folder).iterdir()) == sorted(others)
    assert elsewhere.exists()
    assert storage.sweep(folder) == 0


@pytest.mark.parametrize("linked", [0, 1, 2])
def test_sweeping_follows_no_link(tmp_path: Path, linked: int) -> None:
    """Neither the folder of a topic-partition nor one above it, nor a file in it, may be a link elsewhere."""
    outside = leave(tmp_path / "outside", OWN)
    given = Path(naming.partition_folder(str(tmp_path / "inside"), "sink", "orders", 0))
    link, true = (given, *given.parents)[linked], (outside.parent, *outside.parent.parents)[linked]
    link.parent.mkdir(parents=True)
    link.symlink_to(true)
    assert storage.sweep(str(given)) == 0
    assert outside.exists()
    beside = leave(tmp_path, "placeholder").with_name(OWN)
    beside.symlink_to(outside)
    assert storage.sweep(str(beside.parent)) == 0
    assert outside.exists()


def test_sweeping_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """Before the first file of a topic-partition there is nothing to sweep."""
    assert storage.sweep(naming.partition_folder(str(tmp_path), "sink", "orders", 0)) == 0


def test_a_file_that_cannot_be_removed_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What stays is named in the log, and what another removed meanwhile is not counted."""
    own = leave(tmp_path, OWN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage.os, "unlink", _refuse)
        assert storage.sweep(str(own.parent)) == 0
    assert_says(caplog.text, "left-over file", str(own), "not be removed", "Operation not permitted")
    caplog.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage.os, "unlink", _gone)
        assert storage.sweep(str(own.parent)) == 0
    assert caplog.text == ""


def _refuse(path: str) -> None:
    raise PermissionError(1, "Operation not permitted", path)


def _gone(path: str) -> None:
    raise FileNotFoundError(2, "No such file or directory", path)


def refuse(number: int) -> Callable[..., object]:
    """A system call that fails so."""

    def call(*arguments: object) -> object:
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize("kind", ["flock", "fcntl"])
@pytest.mark.parametrize(
    ("call", "cause"),
    [
        (lambda *arguments: None, "given a second time"),
        (refuse(errno.ENOLCK), "No locks available"),
        (refuse(errno.EOPNOTSUPP), "Operation not supported"),
        (refuse(errno.ENOSYS), "Function not implemented"),
    ],
)
def test_a_folder_without_locks_is_told_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, call: Callable[..., object], cause: str
) -> None:
    """Some network file systems refuse locks, or give each to everybody: key, value, cause and cure are named."""
    monkeypatch.setattr(fcntl, kind, call)
    with pytest.raises(StorageFailed) as told:
        ConnectorLock(str(tmp_path), "sink").acquire()
    assert_says(told.value, f"connect.ems.tmp.dir={tmp_path}", cause, "Set connect.ems.tmp.dir", "a local disk")
    assert not [path for path in (tmp_path / "sink").iterdir() if "probe" in path.name]


def test_a_kernel_that_does_not_know_such_a_lock_says_nothing_about_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks of open files are younger than those of processes, which SQLite takes."""
    monkeypatch.setattr(fcntl, "fcntl", refuse(errno.EINVAL))
    with ConnectorLock(str(tmp_path), "sink"):
        assert sorted(path.name for path in (tmp_path / "sink").iterdir()) == [".lock", ".parquet-sink"]


def test_a_lock_file_that_was_removed_or_replaced_is_lost(tmp_path: Path) -> None:
    """Another process could lock one of that name."""
    lock = ConnectorLock(str(tmp_path), "sink")
    assert not lock.lost()
    with lock:
        assert not lock.lost()
        lock.path.unlink()
        assert lock.lost()
        lock.path.touch()
        assert lock.lost()
    assert not lock.lost()


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ESTALE, errno.ENOSPC, errno.EACCES])
def test_files_of_ours_that_are_gone_are_made_anew(tmp_path: Path, number: int) -> None:
    """A folder that somebody removed is another matter than one that cannot be used: it can be made again."""
    with pytest.raises(StorageFailed) as told, storage_trouble(str(tmp_path), "read a finished file"):
        raise OSError(number, os.strerror(number))
    assert isinstance(told.value, RunFilesLost) == (number in (errno.ENOENT, errno.ESTALE))
    parked = Purpose("connect.ems.parked.dir", "connect.ems.parked.max.bytes", "")
    with pytest.raises(StorageFailed) as told, storage_trouble(str(tmp_path), "keep a record", parked):
        raise OSError(number, os.strerror(number))
    assert not isinstance(told.value, RunFilesLost)
