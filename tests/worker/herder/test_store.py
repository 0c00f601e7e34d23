"""The file that remembers a worker's connectors: whole, private, one worker's at a time, and never misread."""

import json
import os
import stat
from pathlib import Path

import pytest

from parquet_sink.errors import SetupError
from parquet_sink.worker.herder import store
from parquet_sink.worker.herder.errors import StoreFailed
from parquet_sink.worker.herder.store import FILE, ConfigStore, FileConfigStore, StoredConnector
from parquet_sink.worker.herder.values import TargetState
from tests.messages import saying

ONE = StoredConnector({"name": "one", "pass": "päss\n${env:X}"}, TargetState.PAUSED, ("a", "b"))
ODD = 'o/d %d "x" ' + "y" * 300


def test_what_was_put_is_there_after_a_restart(tmp_path: Path) -> None:
    """Configurations, what each is to do, topics and the generation; odd names as they are."""
    store = FileConfigStore(tmp_path / "new" / "folder")
    store.put("one", ONE)
    store.put(ODD, StoredConnector({}))
    store.put("gone", ONE)
    store.delete("gone")
    store.delete("never there")
    store.close()
    again = FileConfigStore(tmp_path / "new" / "folder")
    assert again.connectors() == {"one": ONE, ODD: StoredConnector({})}
    assert again.generation == store.generation == 4
    again.close()


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    """It holds passwords that were given in the clear."""
    store = FileConfigStore(tmp_path / "folder")
    store.put("one", ONE)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "folder", tmp_path / "folder" / FILE)] == [
        0o700,
        0o600,
    ]
    store.close()


def test_two_workers_do_not_share_it(tmp_path: Path) -> None:
    """The second is told who has it, and can have it afterwards."""
    first = FileConfigStore(tmp_path)
    with pytest.raises(SetupError, match=saying(f"process {os.getpid()}", "config.storage.folder")):
        FileConfigStore(tmp_path)
    first.close()
    FileConfigStore(tmp_path).close()


BODY = {"format": store.FORMAT, "version": 1, "generation": 3, "connectors": {}}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON .*line 1, column 1"),
        ('{"format": "parquet-sink conn', "no JSON .*line 1"),
        ("[" * 100_000, "no JSON|its parts"),
        ("{}", 'its "format" is not'),
        ("[]", 'its "format" is not'),
        ("\xff\xfe", "no JSON|its parts|codec"),
        (json.dumps({**BODY, "version": 2}), "version 2, .*knows 1"),
        (json.dumps({"format": store.FORMAT}), "its parts"),
        (json.dumps({**BODY, "generation": "x"}), "its parts"),
        (json.dumps({**BODY, "connectors": ["secret"]}), "its parts"),
        (
            json.dumps({**BODY, "connectors": {"a": {"config": {"p": 1}, "target": "STARTED", "topics": []}}}),
            "its parts",
        ),
        (
            json.dumps({**BODY, "connectors": {"a": {"config": {}, "target": "secret", "topics": []}}}),
            "secret|its parts",
        ),
    ],
)
def test_a_file_that_is_torn_or_foreign_is_refused_and_kept(tmp_path: Path, text: str, why: str) -> None:
    """The error names file, cause and cure; nothing is overwritten, and the lock is given up."""
    (tmp_path / FILE).write_text(text, encoding="latin-1")
    with pytest.raises(SetupError, match=saying(FILE, "move it away") + f".*({why})"):
        FileConfigStore(tmp_path)
    assert (tmp_path / FILE).read_text(encoding="latin-1") == text
    (tmp_path / FILE).unlink()
    FileConfigStore(tmp_path).close()


def test_a_write_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what is stored, nor what the store says; the error names the file and the cure."""
    store = FileConfigStore(tmp_path)
    store.put("one", ONE)

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreFailed, match=saying(FILE, "written", "No space left on device")):
            store.put("two", ONE)
    assert (list(store.connectors()), store.generation) == (["one"], 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE, "worker.lock"]
    store.put("two", ONE)
    store.close()
    again = FileConfigStore(tmp_path)
    assert sorted(again.connectors()) == ["one", "two"]
    again.close()


def test_what_a_crash_left_of_a_write_is_passed_over(tmp_path: Path) -> None:
    """Half of a new file beside the old one is no obstacle, and not read."""
    (tmp_path / f".{FILE}.new").write_text("{")
    store = FileConfigStore(tmp_path)
    store.put("one", ONE)
    store.close()
    again = FileConfigStore(tmp_path)
    assert list(again.connectors()) == ["one"]
    again.close()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """With the key to set."""
    (tmp_path / "file").write_text("")
    with pytest.raises(
        SetupError, match=saying(str(tmp_path / "file"), "Not a directory", "set config.storage.folder")
    ):
        FileConfigStore(tmp_path / "file" / "folder")


def test_a_store_in_memory_is_alike() -> None:
    """Put, replaced, deleted, counted."""
    store = ConfigStore({"one": ONE})
    store.put("two", ONE)
    store.delete("one")
    store.delete("one")
    assert (dict(store.connectors()), store.generation) == ({"two": ONE}, 2)
