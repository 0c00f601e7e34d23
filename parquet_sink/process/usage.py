"""CPU and memory that processes of this machine use, and how many cores there are."""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
CGROUP: Final = Path("/sys/fs/cgroup")
UNLIMITED: Final = 1 << 60
"""What is above this is how a control group says that there is no limit."""


def usable_cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores_are_busy() -> bool:
    """Whether more wants to run on this machine than it has cores, on average over the last minute."""
    return os.getloadavg()[0] > usable_cores()


@dataclass(frozen=True)
class Usage:
    """Of some processes.

    memory_bytes: what n of all processes share counts 1/n for each (PSS), so that the sum is what the machine has
    less. open_fds: file descriptors.
    """

    memory_bytes: int = 0
    open_fds: int = 0
    threads: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.memory_bytes + other.memory_bytes, self.open_fds + other.open_fds, self.threads + other.threads
        )


def usage_by_kind(root: int | None = None, proc: Path = PROC) -> dict[str, Usage]:
    """Of the process `root` and its descendants: `program`, `java`, `python` and `other`; {} where unknown.

    root: None for this process.
    """
    found: dict[str, Usage] = defaultdict(Usage)
    first = os.getpid() if root is None else root
    for pid in _tree(first, proc):
        size_bytes = _pss_bytes(pid, proc)
        if size_bytes:
            folder = proc / str(pid)
            usage = Usage(size_bytes, _entries(folder / "fd"), _entries(folder / "task"))
            found["program" if pid == first else _kind(pid, proc)] += usage
    return dict(found)


def memory_limit_bytes(proc: Path = PROC, cgroup: Path = CGROUP) -> int | None:
    """What the control group allows, in both of its versions, else the machine's memory; None where unknown."""
    total = next(
        (int(line.split()[1]) * 1024 for line in _lines(proc / "meminfo") if line.startswith("MemTotal")), None
    )
    limits = [
        int(text)
        for name in ("memory.max", "memory/memory.limit_in_bytes")
        if (text := _text(cgroup / name).strip()).isdigit() and int(text) < UNLIMITED
    ]
    return min([*limits, *([] if total is None else [total])], default=None)


def _tree(root: int, proc: Path) -> Iterator[int]:
    children: Mapping[int, list[int]] = _children(proc)
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children.get(pid, [])


def _children(proc: Path) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    try:
        pids = [int(name) for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return {}
    for pid in pids:
        fields = _text(proc / str(pid) / "stat").rpartition(")")[2].split()
        if len(fields) > 1:
            found[int(fields[1])].append(pid)
    return dict(found)


def _kind(pid: int, proc: Path) -> str:
    name = _text(proc / str(pid) / "comm").strip()
    return "java" if name == "java" else "python" if name.startswith("python") else "other"


def _pss_bytes(pid: int, proc: Path) -> int:
    """0 when the process is gone, or not ours to look at."""
    lines = _lines(proc / str(pid) / "smaps_rollup")
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def _entries(folder: Path) -> int:
    """0 when the process is gone, or not ours to look at."""
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0


def _lines(path: Path) -> list[str]:
    return _text(path).splitlines()


def _text(path: Path) -> str:
    """Empty when there is no such file, or its process is gone."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
