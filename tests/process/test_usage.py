"""What a tree of processes takes, read from a folder that looks like /proc, and from the real one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_sink.process.usage import Usage, cores_are_busy, memory_limit_bytes, usage_by_kind


def process(proc: Path, pid: int, parent: int, name: str, pss_kb: int | None) -> None:
    """A process as Linux shows it; None: one that may not be looked at."""
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0 -1")
    (folder / "comm").write_text(f"{name}\n")
    for number in range(pid):
        (folder / "fd" / str(number)).mkdir(parents=True)
    for number in range(3):
        (folder / "task" / str(pid + number)).mkdir(parents=True)
    if pss_kb is not None:
        (folder / "smaps_rollup").write_text(
            f"00400000-7fff ---p [rollup]\nRss: 999 kB\nPss:  {pss_kb} kB\nPss_Dirty: 1 kB\n"
        )


def test_usage_is_that_of_the_tree_by_kind(tmp_path: Path) -> None:
    """What descends from the program counts, at any depth, and nothing else does."""
    process(tmp_path, 1, 0, "init", 7)
    process(tmp_path, 10, 1, "parquet-sink", 100)
    process(tmp_path, 11, 10, "java", 1_000)
    process(tmp_path, 12, 11, "python3.11", 30)
    process(tmp_path, 13, 12, "python", 40)
    process(tmp_path, 14, 10, "odd ) name (", 2)
    process(tmp_path, 15, 10, "java", None)
    process(tmp_path, 20, 1, "python", 5_000)
    (tmp_path / "self").mkdir()
    assert usage_by_kind(10, tmp_path) == {
        "program": Usage(100 * 1024, open_fds=10, threads=3),
        "java": Usage(1_000 * 1024, open_fds=11, threads=3),
        "python": Usage(70 * 1024, open_fds=12 + 13, threads=6),
        "other": Usage(2 * 1024, open_fds=14, threads=3),
    }


def test_without_proc_nothing_is_known(tmp_path: Path) -> None:
    """On another system than Linux there are no figures, and no error."""
    assert usage_by_kind(10, tmp_path / "none") == {}
    assert memory_limit_bytes(tmp_path / "none", tmp_path / "none") is None


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux has it")
def test_a_child_counts() -> None:
    """The real thing: what a child process takes is in the figures while it runs."""
    child = subprocess.Popen(
        [sys.executable, "-c", "held = bytearray(40_000_000); print('up', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    during = usage_by_kind()
    child.communicate("\n")
    assert during["python"].memory_bytes > 40_000_000
    assert during["python"].open_fds >= 3
    assert during["program"].memory_bytes > 1_000_000
    assert during["program"].threads >= 1
    assert usage_by_kind(child.pid) == {}


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, 4_096_000),
        ({"memory.max": "1000000\n"}, 1_000_000),
        ({"memory.max": "max\n"}, 4_096_000),
        ({"memory/memory.limit_in_bytes": "2000000\n"}, 2_000_000),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 4_096_000),
        ({"memory.max": "9000000\n"}, 4_096_000),
    ],
)
def test_the_limit_is_the_smallest(tmp_path: Path, files: dict[str, str], limit: int) -> None:
    """Of the machine and the control group, of either version; no limit is none."""
    (tmp_path / "meminfo").write_text("MemTotal:       4000 kB\nMemFree: 1 kB\n")
    for name, text in files.items():
        (tmp_path / "cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cgroup" / name).write_text(text)
    assert memory_limit_bytes(tmp_path, tmp_path / "cgroup") == limit


def test_cores_are_busy_when_more_wants_to_run_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """On average over the last minute."""
    monkeypatch.setattr("parquet_sink.process.usage.usable_cores", lambda: 2)
    for load, busy in ((1.9, False), (2.1, True)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert cores_are_busy() is busy
