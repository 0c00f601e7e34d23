"""The private folder of a run."""

import stat
import subprocess
import sys
from pathlib import Path

from parquet_sink.runtime.scratch import PREFIX, scratch_folder

KILLED = """
import os, pathlib, signal, sys
from parquet_sink.runtime.scratch import scratch_folder
with scratch_folder(pathlib.Path(sys.argv[1])) as folder:
    (folder / "state.db").write_text("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_folder_is_private_and_goes_with_its_content(tmp_path: Path) -> None:
    """Nobody else can look into it, and nothing of it stays."""
    with scratch_folder(tmp_path) as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "below").mkdir()
        (folder / "below" / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_folders_of_living_runs_are_left_alone(tmp_path: Path) -> None:
    """Two runs on one machine do not disturb each other."""
    with scratch_folder(tmp_path) as first, scratch_folder(tmp_path) as second:
        assert first != second
        assert first.is_dir()


def test_the_folder_of_a_killed_run_is_removed_by_the_next(tmp_path: Path) -> None:
    """A run that is killed often does not fill the memory."""
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=30)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(PREFIX)
    with scratch_folder(tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder]


def test_what_is_not_a_folder_of_ours_stays(tmp_path: Path) -> None:
    """Other names, files and links are not touched, also when they begin like ours."""
    (tmp_path / "other").mkdir()
    (tmp_path / f"{PREFIX}file").write_text("x")
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "other")
    with scratch_folder(tmp_path):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["other", f"{PREFIX}file", f"{PREFIX}link"])
