"""The file of positions: whole after any crash, shared by connectors and processes."""

import fcntl
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from parquet_sink.addons.sources.offsets.file import FileStorage
from parquet_sink.errors import StorageFailed
from tests.messages import saying

PARTITION = '{"filename":"a.txt"}'


def test_what_is_written_is_read_by_another(tmp_path: Path) -> None:
    """A place is there for whoever opens the file next, and no other connector's."""
    path = str(tmp_path / "offsets")
    FileStorage(path).write("one", {PARTITION: {"position": 3}})
    FileStorage(path).write("two", {PARTITION: {"position": 4}})
    assert FileStorage(path).read("one") == {PARTITION: {"position": 3}}
    assert FileStorage(path).read("two") == {PARTITION: {"position": 4}}
    assert FileStorage(path).read("three") == {}


def test_the_file_is_the_documented_one(tmp_path: Path) -> None:
    """Its JSON is as docs/how-to/file-source.md shows it, for this user alone, with nothing left beside it."""
    path = tmp_path / "offsets"
    FileStorage(str(path)).write("one", {PARTITION: {"position": 3}})
    entry = {"partition": {"filename": "a.txt"}, "offset": {"position": 3}}
    assert json.loads(path.read_text()) == {"version": 1, "connectors": {"one": [entry]}}
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(one.name for one in tmp_path.iterdir()) == ["offsets", "offsets.lock"]


def test_none_removes_a_place(tmp_path: Path) -> None:
    """A place set to None is gone, and with its last one the connector."""
    path = tmp_path / "offsets"
    storage = FileStorage(str(path))
    storage.write("one", {PARTITION: {"position": 3}})
    storage.write("one", {PARTITION: None})
    assert json.loads(path.read_text())["connectors"] == {}


def test_changes_at_once_are_all_kept(tmp_path: Path) -> None:
    """Connectors that store at the same time lose nothing of each other."""
    path = str(tmp_path / "offsets")
    names = [f"connector-{number}" for number in range(24)]

    def store(name: str) -> None:
        FileStorage(path).write(name, {PARTITION: {"position": len(name)}})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(store, names))
    assert all(FileStorage(path).read(name) == {PARTITION: {"position": len(name)}} for name in names)


def test_a_lock_that_stays_is_told(tmp_path: Path) -> None:
    """A process that holds the lock for too long is named by the lock's file, and nothing is changed."""
    path = str(tmp_path / "offsets")
    storage = FileStorage(path, wait_s=0.1, pause=lambda seconds: None)
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(
        StorageFailed, match=saying("offsets.lock", "held by another process", "[offset.storage.file.filename]")
    ):
        storage.write("one", {PARTITION: {"position": 3}})
    os.close(descriptor)
    storage.write("one", {PARTITION: {"position": 3}})


def test_a_change_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails at the sync leaves places as they were, and no half of a file."""
    path = tmp_path / "offsets"
    FileStorage(str(path)).write("one", {PARTITION: {"position": 3}})
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFailed, match=saying("(offset.storage.file.filename)", "No space left", "Free space")):
        FileStorage(str(path)).write("one", {PARTITION: {"position": 4}})
    assert path.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["offsets", "offsets.lock"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xac\xed\x00\x05sr", "Java's own form"),
        (b"{", "holds no positions"),
        (b'{"version": 2}', "holds no positions"),
        (b'{"version": 1, "connectors": {"one": [{"partition": {"a": []}, "offset": {}}]}}', "holds no positions"),
    ],
)
def test_another_file_is_left_alone(tmp_path: Path, content: bytes, said: str) -> None:
    """A file of Kafka Connect, or a damaged one, is an error that names the key, and stays as it is."""
    path = tmp_path / "offsets"
    path.write_bytes(content)
    for act in (lambda one: one.read("one"), lambda one: one.write("one", {PARTITION: {"position": 1}})):
        with pytest.raises(
            StorageFailed, match=saying("[offset.storage.file.filename]", str(path), said, "ame another file")
        ):
            act(FileStorage(str(path)))
    assert path.read_bytes() == content


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Positions are not stored below a folder that nobody made."""
    with pytest.raises(StorageFailed, match=saying("offset.storage.file.filename", str(tmp_path / "no"))):
        FileStorage(str(tmp_path / "no" / "offsets")).write("one", {PARTITION: {"position": 1}})
    with pytest.raises(StorageFailed, match=saying(str(tmp_path / "no"), "is not there", "make it")):
        FileStorage(str(tmp_path / "no" / "offsets")).look("one")
    assert list(tmp_path.iterdir()) == []
