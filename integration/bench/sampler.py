"""Watches a tree of processes over time: its memory, and the CPU time of those that end."""

import os
import signal
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from integration.bench.processes import ENDED, Process, Usage, group_of, memory_bytes, read, tree, usage

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
SAMPLE_S: Final = 0.5
FULL_LOOK_S: Final = 2.0
NEW_HEIGHT: Final = 1.01


@dataclass(frozen=True)
class Sample:
    """Memory of a tree at one moment; `at` is epoch seconds."""

    at: float
    total_bytes: int


@dataclass
class Peak:
    """The most that one process had, in bytes. asked_at: its size when it was last asked what it does."""

    group: str
    most: int = 0
    asked_at: int = 0
    looks: int = 0


class Sampler:
    """Looks at a tree twice a second, in a thread, while the block runs.

    samples: in order of time. peaks: by process id. cost: share of a core that the looking took, known at the end.
    Proportional set sizes are dear to read (a walk through all pages), so they are read every FULL_LOOK_S, and when the
    resident set sizes, which are cheap, together reach a new height. memory=False leaves them out.
    """

    def __init__(self, root: int, *, memory: bool = True) -> None:
        self._root, self._memory = root, memory
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True, name="sampler")
        self._graves = Graves()
        self._height, self._full_look_at = 0, 0.0
        self.samples: list[Sample] = []
        self.peaks: dict[int, Peak] = {}
        self.cost = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join(10.0)

    def peak_bytes(self, since: float = 0.0) -> int:
        """The most that all processes together had at one moment, of the samples from `since` on."""
        return max((sample.total_bytes for sample in self.samples if sample.at >= since), default=0)

    def usage(self) -> dict[int, Usage]:
        """A snapshot like `usage`, with what ended processes took that no parent keeps."""
        with self._lock:
            self._graves.look(tree(self._root))
            return {**usage(self._root), 0: Usage(ENDED, self._graves.seconds, 0.0, {})}

    def _run(self) -> None:
        began = time.monotonic()
        while not self._ended.wait(SAMPLE_S):
            with self._lock:
                self._look()
        self.cost = time.thread_time() / (time.monotonic() - began)

    def _look(self) -> None:
        members, now = tree(self._root), time.monotonic()
        self._graves.look(members)
        if not self._memory:
            return
        resident = sum(_resident_bytes(process.pid) for process in members)
        if resident > NEW_HEIGHT * self._height or now - self._full_look_at >= FULL_LOOK_S:
            self._height, self._full_look_at = max(self._height, resident), now
            self._full_look(members)

    def _full_look(self, members: Iterable[Process]) -> None:
        sizes = {process.pid: memory_bytes(process.pid) for process in members}
        self.samples.append(Sample(time.time(), sum(sizes.values())))
        for pid, size in sizes.items():
            peak = self.peaks.setdefault(pid, Peak(group_of(pid, self._root)))
            peak.looks += 1
            if size > 1.2 * peak.asked_at:  # what it does may have become clear only now
                peak.group, peak.asked_at = group_of(pid, self._root), size
            peak.most = max(peak.most, size)


class Graves:
    """CPU time of processes that ended and whose parents do not wait for them, as Spark's worker daemon does not."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._alive: dict[int, float] = {}

    def look(self, members: Iterable[Process]) -> None:
        """Call it often: what a process takes after the last look before its end is lost."""
        members = list(members)
        careless = {process.pid for process in members if _ignores_children(process.pid)}
        alive = {process.pid: process.cpu_seconds for process in members if process.parent in careless}
        pids = {process.pid for process in members}
        self.seconds += sum(seconds for pid, seconds in self._alive.items() if pid not in pids)
        self._alive = alive


def _ignores_children(pid: int) -> bool:
    for line in read(f"/proc/{pid}/status").splitlines():
        if line.startswith("SigIgn:"):
            return bool(int(line.split()[1], 16) >> (signal.SIGCHLD - 1) & 1)
    return False


def _resident_bytes(pid: int) -> int:
    fields = read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * PAGE_BYTES if fields else 0
