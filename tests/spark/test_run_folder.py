"""The private folder of a run."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_sink.spark import run_folder as run_folder_module
from parquet_sink.spark.run_folder import PREFIX, run_folder, sweep

KILLED = """
import os, pathlib, signal, sys
from parquet_sink.spark.run_folder import run_folder
with run_folder(pathlib.Path(sys.argv[1])) as folder:
    (folder.path / "state.db").write_text("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_folder_is_private_and_goes_with_its_content(tmp_path: Path) -> None:
    """Nobody else can look into it, and nothing of it stays."""
    with run_folder(tmp_path) as folder:
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        (folder.path / "below").mkdir()
        (folder.path / "below" / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_folders_of_living_runs_are_left_alone(tmp_path: Path) -> None:
    """Two runs on one machine do not disturb each other."""
    with run_folder(tmp_path) as first, run_folder(tmp_path) as second:
        assert first.path != second.path
        assert first.path.is_dir()


def test_the_folder_of_a_killed_run_is_removed_by_the_next(tmp_path: Path) -> None:
    """A run that is killed often does not fill the memory."""
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=30)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(PREFIX)
    with run_folder(tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder.path]


def test_what_is_not_a_folder_of_ours_stays(tmp_path: Path) -> None:
    """Other names, files and links are not touched, also when they begin like ours."""
    (tmp_path / "other").mkdir()
    (tmp_path / f"{PREFIX}file").write_text("x")
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "other")
    with run_folder(tmp_path):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["other", f"{PREFIX}file", f"{PREFIX}link"])


def test_a_folder_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    """With the folders that were in it, private, and still safe from the sweep of another run."""
    with run_folder(tmp_path) as folder:
        (folder.path / "spark" / "blockmgr").mkdir(parents=True)
        (folder.path / "spark" / "file").write_text("x")
        folder.remember()
        shutil.rmtree(folder.path)
        folder.repair()
        assert sorted(path.name for path in folder.path.rglob("*")) == ["blockmgr", "spark"]
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        sweep(tmp_path)
        assert folder.path.is_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("user", "memory"), [(0, True), (999, True), (1_000, False), (65_534, False)])
def test_the_folder_is_where_no_logout_removes_it(
    user: int, memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a logout systemd clears the shared memory of users, but for those of the system."""
    monkeypatch.setattr(os, "getuid", lambda: user)
    monkeypatch.setattr(run_folder_module, "MEMORY_FOLDER", tmp_path / "memory")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    for name in ("memory", "temporary"):
        (tmp_path / name).mkdir()
    with run_folder() as folder:
        assert (folder.path.parent.name == "memory") == memory


def test_what_killed_runs_left_is_swept_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory, and in the temporary folder."""
    monkeypatch.setattr(run_folder_module, "MEMORY_FOLDER", tmp_path / "memory")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    for name in ("memory", "temporary"):
        (tmp_path / name / f"{PREFIX}left").mkdir(parents=True)
    with run_folder():
        assert not list(tmp_path.glob(f"*/{PREFIX}left"))
