"""What a tree of processes costs, read from /proc: CPU time and memory. Linux only."""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
ENDED: Final = "processes that ended"


@dataclass(frozen=True)
class Process:
    """One line of /proc/<pid>/stat. cpu_seconds: its own; reaped_seconds: of children that ended."""

    pid: int
    parent: int
    session: int
    cpu_seconds: float
    reaped_seconds: float


def tree(root: int) -> list[Process]:
    """The process `root` with all its descendants, and whatever else lives in its session."""
    found = {process.pid: process for process in _all()}
    members = {root} & found.keys()
    grown = True
    while grown:
        more = {p.pid for p in found.values() if p.parent in members or p.session == root} - members
        members |= more
        grown = bool(more)
    return [found[pid] for pid in sorted(members)]


@dataclass(frozen=True)
class Usage:
    """CPU seconds of one process since its start. parts: of those, what some of its threads took."""

    group: str
    own: float
    reaped: float
    parts: Mapping[str, float]


def usage(root: int) -> dict[int, Usage]:
    """A snapshot of the tree, by process id."""
    found = {}
    for process in tree(root):
        group = group_of(process.pid, root)
        parts = _threads(process.pid, group)
        found[process.pid] = Usage(group, process.cpu_seconds, process.reaped_seconds, parts)
    return found


def between(before: Mapping[int, Usage], after: Mapping[int, Usage]) -> dict[str, float]:
    """CPU seconds from one snapshot to another, by what the processes do. Their sum is that of the whole tree.

    A process that ended in between is found in what its parent reaped, or under process id 0 (see `sampler`).
    """
    groups: dict[str, float] = defaultdict(float)
    for pid, now in after.items():
        then = before.get(pid, Usage(now.group, 0.0, 0.0, {}))
        groups[now.group] += now.own - then.own
        groups[ENDED] += now.reaped - then.reaped
        for part, seconds in now.parts.items():
            spent = max(seconds - then.parts.get(part, 0.0), 0.0)  # a thread that ended takes its time with it
            groups[part] += spent
            groups[now.group] -= spent
    groups[ENDED] -= sum(then.own + then.reaped for pid, then in before.items() if pid not in after)
    return {group: seconds for group, seconds in groups.items() if abs(seconds) >= 0.005}


def read_machine_cpu_s() -> float:
    """Return the CPU seconds that all processes of the machine have taken since it started."""
    user, nice, system, _idle, _iowait, interrupts, soft = map(int, read("/proc/stat").split()[1:8])
    return (user + nice + system + interrupts + soft) / TICKS_PER_SECOND


def group_of(pid: int, root: int) -> str:
    """What a process of the sink does, by its command line and by the libraries that it has loaded."""
    if pid == root:
        return "driver"
    command = read(f"/proc/{pid}/cmdline").replace("\0", " ")
    if "org.apache.spark" in command and not command.startswith("/bin/sh"):
        return "JVM"
    for sign, group in _BY_COMMAND.items():
        if sign in command:
            return group
    if "-m parquet_sink.spark.daemon" in command:
        return _worker(pid)
    return "other"


_BY_COMMAND: Final = {
    "forks.server": "fork server",
    "forks/client.py": "stand-ins for forked processes",
    "streaming_source_runner": "source planners (admission)",
    "streaming_sink_runner": "sink planners (receipts)",
    "pyspark.sql.worker": "planning helpers",
}


def _worker(pid: int) -> str:
    """Readers have loaded the Kafka client, writers the Parquet writer; a worker that did both is both."""
    maps = read(f"/proc/{pid}/maps")
    reads, writes = "confluent_kafka" in maps, "/_parquet." in maps
    if reads and writes:
        return "workers that read and write"
    return "reading workers" if reads else "writing workers" if writes else "workers without work yet, and their daemon"


def _threads(pid: int, group: str) -> dict[str, float]:
    """CPU seconds of threads that deserve a line of their own: Java's compiler, and the Kafka client's threads."""
    signs = {"C1 Compiler": "JVM: compiler", "C2 Compiler": "JVM: compiler", "VM Thread": "JVM: garbage collection"}
    if group != "JVM":
        if "read" not in group:
            return {}
        signs = {"rdk:": f"{group}: Kafka client"}
    seconds: dict[str, float] = defaultdict(float)
    for task in _entries(f"/proc/{pid}/task"):
        stat = _parse(read(f"/proc/{pid}/task/{task}/stat"))
        name = read(f"/proc/{pid}/task/{task}/comm")
        part = next((part for sign, part in signs.items() if name.startswith(sign)), None)
        if part and stat:
            seconds[part] += stat.cpu_seconds
    return dict(seconds)


def memory_by_group(root: int) -> dict[str, int]:
    """Bytes of the tree now, by what the processes do."""
    groups: dict[str, int] = defaultdict(int)
    for process in tree(root):
        groups[group_of(process.pid, root)] += memory_bytes(process.pid)
    return dict(groups)


def memory_bytes(pid: int) -> int:
    """Proportional set size: pages that n processes share count 1/n for each. 0 when the process is gone."""
    for line in read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _all() -> Iterable[Process]:
    for entry in _entries("/proc"):
        if entry.isdigit():
            process = _parse(read(f"/proc/{entry}/stat"))
            if process is not None:
                yield process


def _parse(stat: str) -> Process | None:
    """A process from its line; the command in parentheses may hold anything, blanks and parentheses too."""
    if not stat:
        return None
    pid = int(stat.split(" ", 1)[0])
    fields = stat.rpartition(")")[2].split()
    user, system, reaped_user, reaped_system = (int(field) / TICKS_PER_SECOND for field in fields[11:15])
    return Process(pid, int(fields[1]), int(fields[3]), user + system, reaped_user + reaped_system)


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def read(path: str) -> str:
    """The text of a file of /proc, empty when its process is gone."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
