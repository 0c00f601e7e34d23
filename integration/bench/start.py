"""The phases of a start: when each part of the program is there, and what each of its processes spends on it.

The program runs with log level DEBUG, at which it tells its own milestones; processes are looked at from outside.
Everything is in seconds since the program was started.
"""

import re
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event, Thread
from typing import Any, Final, Self

from integration.bench import figures, load
from integration.bench.parts import Stand, report
from integration.bench.processes import TICKS_PER_SECOND, group_of, read, tree
from integration.bench.running import SinkProcess, accepted, connector_file
from parquet_sink.process.logs import LEVEL_VARIABLE

LOOK_S: Final = 0.05
PARTITIONS: Final = 4
RECORDS: Final = 10_000
"""In each topic-partition, and in each file."""

MILESTONES: Final = {
    "Java answers": "start: Java answers",
    "context ready": "start: the Spark context is ready",
    "session ready": "start: the session is ready",
    "first tick": "start: the topic-partitions are known",
    "first ranges planned": "start: the first ranges are planned",
}
"""By what the program tells at DEBUG."""
APPEARANCES: Final = {
    "Java started": "JVM",
    "source process started": "source planners (admission)",
    "workers' parent started": "workers without work yet, and their daemon",
}
"""By the group of processes that is there for the first time."""
PARTS: Final = {
    "the program, until Java is a process": ("", "Java started"),
    "Java, until it can be talked to": ("Java started", "Java answers"),
    "Spark's context": ("Java answers", "context ready"),
    "Spark's session, and both data sources": ("context ready", "session ready"),
    "the query, until its source's process is there": ("session ready", "source process started"),
    "offsets": ("source process started", "first tick"),
    "the first ranges": ("first tick", "first ranges planned"),
    "Spark's plan of the first micro-batch": ("first ranges planned", "workers' parent started"),
    "read, decode, write, upload": ("workers' parent started", "first file accepted"),
}
"""What lies on the way to the first file: from one phase to another, one after the other; "" is the start."""
_LINE: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) DEBUG (.*)")


@dataclass
class Seen:
    """One process. started: epoch seconds; cpu_seconds: when it was last looked at."""

    group: str
    started: float
    ended: float
    cpu_seconds: float = 0.0


@dataclass
class Watch:
    """Looks at a tree of processes twenty times a second while the block runs. seen: by process id."""

    root: int
    seen: dict[int, Seen] = field(default_factory=dict)
    _ended: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._run, name="start-watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(10.0)

    def _run(self) -> None:
        while not self._ended.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        now = time.time()
        for process in tree(self.root):
            seen = self.seen.setdefault(process.pid, Seen("", _started(process.pid), now))
            seen.group = group_of(process.pid, self.root) if seen.group in {"", "other"} else seen.group
            seen.cpu_seconds, seen.ended = process.cpu_seconds, now


def run(stand: Stand) -> dict[str, Any]:
    """Starts the program `PASSES` times on a backlog; prints phases and processes of the last start, and medians."""
    starts = [_one(stand, number) for number in range(stand.sizes.passes)]
    phases = {name: [found[name] for found, _ in starts if name in found] for name in starts[-1][0]}
    ordered = sorted(phases, key=lambda name: statistics.median(phases[name]))
    report(f"\nphases of a start, {len(starts)} starts: median (least to most), s")
    report(figures.table(["phase", "s"], [[name, figures.spread(phases[name], 1)] for name in ordered]))
    found = [one for one, _ in starts]
    lasted = {name: [took for one in found if (took := part(one, *ends)) is not None] for name, ends in PARTS.items()}
    report("\nparts of a start, likewise")
    report(figures.table(["part", "s"], [[name, figures.spread(took, 2)] for name, took in lasted.items() if took]))
    report("\nprocesses of the last start, until the first file was accepted, s")
    report(figures.table(["process", "started", "ended", "CPU"], starts[-1][1]))
    spent = [float(rows[-1][-1]) for _, rows in starts]
    report(f"  CPU seconds of all: {figures.spread(spent, 1)}\n")
    phases_s = {name: round(statistics.median(phases[name]), 1) for name in ordered}
    parts_s = {name: round(statistics.median(took), 2) for name, took in lasted.items() if took}
    return {"start_phases_s": phases_s, "start_parts_s": parts_s, "start_cpu_s": round(statistics.median(spent), 1)}


def part(found: Mapping[str, float], begin: str, end: str) -> float | None:
    """Seconds from one phase to another; None where one was not seen."""
    if end not in found or (begin and begin not in found):
        return None
    return found[end] - found.get(begin, 0.0)


def _one(stand: Stand, number: int) -> tuple[dict[str, float], list[list[str]]]:
    name = f"bench-start-{number}"
    flush = {**stand.flush, "commit.records": RECORDS}
    with stand.part_folder(name) as folder, stand.topic(name, PARTITIONS):
        path = connector_file(folder, name, name, stand.target.endpoint(), flush, stand.keys)
        load.fill(stand.servers, name, PARTITIONS, RECORDS, stand.values)
        before = stand.rows()
        with SinkProcess([path], stand.servers, folder, {LEVEL_VARIABLE: "DEBUG"}) as sink, Watch(sink.pid) as watch:
            sink.wait("the first file", lambda: stand.rows() > before, 180.0)
            seen = {pid: Seen(**vars(one)) for pid, one in watch.seen.items()}
            sink.wait("all files", lambda: stand.rows() - before >= PARTITIONS * RECORDS, 180.0)
            files = accepted(stand.client, name)
        told = milestones(sink.log.read_text(errors="replace"))
        return phases(sink.started_at, told, seen, [file.at for file in files]), rows(sink.started_at, seen)


def milestones(text: str) -> dict[str, float]:
    """Epoch seconds at which a log first tells each of MILESTONES."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        if match := _LINE.match(line):
            at = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp()
            for phase, words in MILESTONES.items():
                if words in match[2]:
                    found.setdefault(phase, at)
    return found


def phases(
    began: float, told: Mapping[str, float], seen: Mapping[int, Seen], files: Sequence[float]
) -> dict[str, float]:
    """Seconds from `began` to each phase that was seen. files: when each was accepted."""
    found = dict(told)
    for phase, group in APPEARANCES.items():
        if starts := [one.started for one in seen.values() if one.group == group]:
            found[phase] = min(starts)
    found["first file accepted"], found["last file accepted"] = min(files), max(files)
    return {phase: at - began for phase, at in found.items()}


def rows(began: float, seen: Mapping[int, Seen]) -> list[list[str]]:
    """A line for each process that took CPU time, in order of their starts, and the sum. A living one has no end."""
    last = max(one.ended for one in seen.values())
    lines = [
        [
            one.group,
            f"{one.started - began:.1f}",
            "" if one.ended >= last - 2 * LOOK_S else f"{one.ended - began:.1f}",
            f"{one.cpu_seconds:.2f}",
        ]
        for one in sorted(seen.values(), key=lambda one: one.started)
        if one.cpu_seconds >= 0.05
    ]
    return [*lines, ["all", "", "", f"{sum(one.cpu_seconds for one in seen.values()):.2f}"]]


def _started(pid: int) -> float:
    """Epoch seconds at which a process began; now, when it is gone already."""
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    uptime = read("/proc/uptime").split()
    if len(fields) < 20 or not uptime:
        return time.time()
    return time.time() - float(uptime[0]) + int(fields[19]) / TICKS_PER_SECOND
