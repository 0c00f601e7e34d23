"""What a sink takes at one moment, as Linux shows it: memory, file descriptors, threads, temporary files, state."""

import os
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from integration.bench.processes import group_of, memory_bytes, tree
from integration.soak.heap import live_bytes
from integration.soak.slopes import Point, Slope, Tolerance, slope
from parquet_sink.files.naming import STATE_FILE
from parquet_sink.spark.run_folder import PREFIX
from parquet_sink.state.sqlite import KEPT_EVENTS

MB: Final = 1_000_000
CONNECTORS: Final = 2
WARM_UP_SHARE: Final = 0.25
WARM_UP_S: Final = (60.0, 600.0)
LIVE_HEAPS: Final = 24
"""How often the live heap is asked for in a run: each time makes Java collect."""
LIVE_HEAP: Final = "live heap of Java, MB"
PARQUET: Final = (".parquet", ".part")
DATABASE: Final = ".db"
JOURNAL: Final = ".db-wal"
EVENTS: Final = "events in state"
EVENT_BYTES: Final = 100
"""What SQLite needs for one beside its text: digest, its index, what is free of a page."""
JOURNAL_BYTES: Final = 4_200_000
"""SQLite writes one from its beginning again after 1,000 pages; it keeps that size."""
_ROLES: Final = {"driver": "program", "JVM": "java", "source planners (admission)": "planners"}
_ROLES.update({"sink planners (receipts)": "planners"})


@dataclass(frozen=True)
class Quantity:
    """unit: what a value is divided by, for a reader. why: the reason of its tolerance."""

    name: str
    unit: float
    tolerance: Tolerance
    why: str


QUANTITIES: Final = (
    Quantity("memory, MB", MB, Tolerance(0.05, 64 * MB), "5 % an hour; 64 MB, mostly Java's"),
    Quantity("memory of the program, MB", MB, Tolerance(0.05, 8 * MB), "5 % an hour; 8 MB for the allocator's arenas"),
    Quantity("memory of Java, MB", MB, Tolerance(0.05, 64 * MB), "64 MB: what its heap takes before it collects"),
    Quantity(LIVE_HEAP, MB, Tolerance(0.05, 6 * MB), "5 % an hour; 6 MB for the micro-batches in flight"),
    Quantity("memory of planners, MB", MB, Tolerance(0.05, 24 * MB), "5 % an hour; one forked anew shares less: 12 MB"),
    Quantity("file descriptors", 1, Tolerance(0.05, 120), "5 % an hour; 120: Kafka clients of workers, below"),
    Quantity("threads", 1, Tolerance(0.05, 120), "5 % an hour; 120: workers keep Kafka clients"),
    Quantity("processes", 1, Tolerance(0.05, 2), "5 % an hour; one worker and its stand-in"),
    Quantity("temporary files", 1, Tolerance(0.05, 12), "5 % an hour; two files under way for each topic-partition"),
    Quantity("temporary files, MB", MB, Tolerance(0.05, 2 * MB), "5 % an hour; checkpoints of micro-batches"),
    Quantity("unsent Parquet, MB", MB, Tolerance(0.05, 4 * MB), "5 % an hour; one full file"),
    Quantity("state, MB", MB, Tolerance(0.05, 2 * MB), "5 % an hour; what is in a journal before its checkpoint"),
    Quantity(EVENTS, 1, Tolerance(0, CONNECTORS * KEPT_EVENTS), "bounded: a life begins with none, and keeps 10,000"),
    Quantity("journals of state, MB", MB, Tolerance(0.05, 4 * JOURNAL_BYTES), "one of 1,000 pages for each database"),
)


@dataclass(frozen=True)
class Sample:
    """At monotonic seconds; root: the process id of the program, which tells its lives apart.

    values: by quantity; one that was not looked at is not there.
    """

    at: float
    root: int
    values: dict[str, float]


class Measures:
    """Takes a sample whenever one is due. tmp: the folder of the connectors. system_tmp: TMPDIR of the sink.

    heap_every_s: how often the live heap is among it.
    """

    def __init__(self, tmp: Path, system_tmp: Path, every_s: float, heap_every_s: float) -> None:
        self._tmp, self._system_tmp, self._every_s, self._heap_every_s = tmp, system_tmp, every_s, heap_every_s
        self.samples: list[Sample] = []
        self._heap_at = float("-inf")

    def look(self, root: int) -> None:
        """Call it often."""
        now = time.monotonic()
        if not self.samples or now - self.samples[-1].at >= self._every_s:
            values = _values(root, self._tmp, self._system_tmp)
            if now - self._heap_at >= self._heap_every_s:
                self._heap_at = now
                values |= _live_heap(root)
            self.samples.append(Sample(now, root, values))

    def measured(self) -> list[Sample]:
        """The last life of the sink without its warm-up: a quarter of it, between one minute and ten."""
        life = [one for one in self.samples if one.root == self.samples[-1].root]
        if not life:
            return []
        least, most = WARM_UP_S
        warm = life[0].at + min(max(WARM_UP_SHARE * (life[-1].at - life[0].at), least), most)
        return [one for one in life if one.at >= warm]

    def slopes(self) -> dict[str, Slope | None]:
        """By quantity; None where the run was too short to tell."""
        samples = self.measured()
        return {each.name: slope(_points(samples, each.name), each.tolerance) for each in QUANTITIES}

    def write(self, path: Path) -> None:
        """All samples as CSV, for who wants to look."""
        names = [each.name for each in QUANTITIES]
        lines = [",".join(["seconds", "program", *(f'"{name}"' for name in names)])]
        began = self.samples[0].at if self.samples else 0.0
        for one in self.samples:
            told = [_told(one, each) for each in QUANTITIES]
            lines.append(",".join([f"{one.at - began:.1f}", str(one.root), *told]))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _points(samples: Iterable[Sample], name: str) -> list[Point]:
    return [(one.at, one.values[name]) for one in samples if name in one.values]


def _told(sample: Sample, quantity: Quantity) -> str:
    return f"{sample.values[quantity.name] / quantity.unit:.3f}" if quantity.name in sample.values else ""


def _live_heap(root: int) -> dict[str, float]:
    """Of Spark's Java below the program; empty where that cannot be told."""
    java = next((one.pid for one in tree(root) if group_of(one.pid, root) == "JVM"), None)
    found = None if java is None else live_bytes(java)
    return {} if found is None else {LIVE_HEAP: found}


def _values(root: int, tmp: Path, system_tmp: Path) -> dict[str, float]:
    memory: Counter[str] = Counter()
    members = tree(root)
    for process in members:
        memory[_ROLES.get(group_of(process.pid, root), "others")] += memory_bytes(process.pid)
    folders = (tmp, system_tmp, *_run_folders(root))
    files = [one for folder in folders for one in _files(folder)]
    databases = sum(size for name, size in files if name.endswith(DATABASE))
    kept = [_kept(path) for folder in folders for path in folder.rglob(STATE_FILE)]
    sizes = {
        "unsent Parquet, MB": sum(size for name, size in files if name.endswith(PARQUET)),
        "journals of state, MB": sum(size for name, size in files if name.endswith(JOURNAL)),
    }
    return {
        "memory, MB": memory.total(),
        "memory of the program, MB": memory["program"],
        "memory of Java, MB": memory["java"],
        "memory of planners, MB": memory["planners"],
        "file descriptors": sum(_entries(f"/proc/{process.pid}/fd") for process in members),
        "threads": sum(_entries(f"/proc/{process.pid}/task") for process in members),
        "processes": len(members),
        "temporary files": len(files),
        "temporary files, MB": sum(size for _, size in files) - databases - sum(sizes.values()),
        "state, MB": databases + sum(one.others_bytes - one.file_bytes for one in kept),
        EVENTS: sum(one.events for one in kept),
        **sizes,
    }


def _run_folders(root: int) -> set[Path]:
    """Where the program keeps what its processes share, and Spark its checkpoints: it holds that folder open."""
    found = set()
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{root}/fd"):
            with suppress(OSError):
                path = Path(os.readlink(entry.path))
                if path.name.startswith(PREFIX):
                    found.add(path)
    return found


def _files(folder: Path) -> list[tuple[str, int]]:
    """Name and size of every file below a folder; what goes meanwhile is gone."""
    found = []
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found.append((name, os.lstat(os.path.join(path, name)).st_size))
    return found


@dataclass(frozen=True)
class _Kept:
    """A state file: events in it, what is beside them, with what is in its journal yet, and the size of the file."""

    events: int
    others_bytes: int
    file_bytes: int


def _kept(path: Path) -> _Kept:
    """Nothing of a file that is gone or is no state: its size is then that of any other."""
    with suppress(sqlite3.Error, OSError), closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as state:
        asked = "select count(*), total(length(body)), page_count * page_size from event, pragma_page_count, "
        events, text, size = state.execute(f"{asked} pragma_page_size").fetchone()
        return _Kept(events, size - int(text) - events * EVENT_BYTES, path.stat().st_size)
    return _Kept(0, 0, 0)


def _entries(folder: str) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0
