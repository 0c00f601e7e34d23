"""Children that never outlive the process that started them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from parquet_sink.process.tether import Tether

PROGRAM = """
import os, pathlib, subprocess, sys, time
from parquet_sink.process.tether import Tether
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
tether = Tether(child.pid, pathlib.Path(sys.argv[1]))
print(child.pid, tether._process.pid, flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    """Whether a process runs, and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("disturbed", [False, True])
def test_a_killed_process_takes_its_child_along(tmp_path: Path, disturbed: bool) -> None:
    """After kill -9 the child is gone, and then its folder, also when all were signalled before."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    child, tether = map(int, program.stdout.readline().split())
    if disturbed:
        time.sleep(0.2)  # until the shell has set its trap
        os.kill(tether, signal.SIGTERM)
    program.kill()
    program.wait()
    program.stdout.close()
    deadline = time.monotonic() + 20
    while (alive(child) or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)
    assert not folder.exists()


def test_what_is_let_go_lives_on(tmp_path: Path) -> None:
    """A child that ended in order is forgotten, and its folder is its owner's to remove."""
    with subprocess.Popen(["sleep", "600"]) as child:
        tether = Tether(child.pid, tmp_path)
        tether.release()
        tether.release()
        assert child.poll() is None
        assert tmp_path.exists()
        child.kill()
