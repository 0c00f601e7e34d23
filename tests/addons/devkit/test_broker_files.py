"""A broker's folder is its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_sink.addons.devkit.broker_files import held_alone
from parquet_sink.errors import SetupError


def test_a_folder_is_held_by_one_alone(tmp_path: Path) -> None:
    """A second one is told which folder is in use; afterwards it is free."""
    for _ in range(2):
        with (
            held_alone(tmp_path),
            pytest.raises(SetupError, match=f"{tmp_path} is in use by another broker"),
            held_alone(tmp_path),
        ):
            pass


def test_who_inherits_it_holds_it_until_its_end(tmp_path: Path) -> None:
    """The process that started the broker may let go, or end."""
    with held_alone(tmp_path) as held:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[held])
    with pytest.raises(SetupError, match="in use"), held_alone(tmp_path):
        pass
    child.communicate(b"\n")
    with held_alone(tmp_path):
        pass


def test_what_happens_meanwhile_is_told_as_it_is(tmp_path: Path) -> None:
    """No other error is taken for a folder in use, and the folder is free then."""
    before = os.listdir("/proc/self/fd")
    with pytest.raises(BlockingIOError, match="no processes left"), held_alone(tmp_path):
        raise BlockingIOError("no processes left")
    assert len(os.listdir("/proc/self/fd")) == len(before)
