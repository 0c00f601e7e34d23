"""Processes as Linux shows them: those of one run, what each does, and killing them."""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parquet_sink.spark.java_command import MAIN


@dataclass(frozen=True)
class Process:
    """One process; `started` (clock ticks since boot) tells it from a later one with the same id."""

    pid: int
    parent: int
    started: int
    command: str


STAND_IN: Final = "/spark/forks/client.py"
"""In the command of what Java takes for a Python process, where that is a fork: killing it does no harm."""
MAINS: Final = ("org.apache.spark.deploy.SparkSubmit", MAIN)
"""What Java runs: by `spark-submit`, and without."""
MARK: Final = "PARQUET_SINK_TEST_MARK"
"""The variable that tells a run's processes: children inherit it, also when their parent is gone."""


def of_run(mark: str) -> list[Process]:
    """The living processes that have this mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[0] not in "ZX" and wanted in (entry / "environ").read_bytes().split(b"\0"):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                    if STAND_IN not in command:
                        found.append(Process(int(entry.name), int(fields[1]), int(fields[19]), command))
    return found


def jvm(processes: Iterable[Process]) -> list[Process]:
    """Spark's Java."""
    return [one for one in processes if any(f" {main}" in one.command for main in MAINS)]


def planners(processes: Iterable[Process]) -> list[Process]:
    """The long-lived Python processes of source and sink beside the driver: they admit, commit, note receipts."""
    everything = [one for one in processes if "python_streaming_s" in one.command]
    return [one for one in everything if not any(other.parent == one.pid for other in everything)]


def workers(processes: Iterable[Process]) -> list[Process]:
    """Python workers of Spark tasks: each reads or writes, as it comes."""
    everything = list(processes)
    daemons = {one.pid for one in everything if one.command.endswith("-m parquet_sink.spark.daemon pyspark.worker")}
    return [one for one in everything if one.parent in daemons]


def open_files(process: Process, ending: str) -> list[str]:
    """Paths that a process holds open and that end so."""
    found = []
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{process.pid}/fd"):
            with suppress(OSError):
                found.append(os.readlink(entry.path))
    return [path for path in found if path.endswith(ending)]


def listening(process: Process) -> int:
    """TCP sockets that it listens on, those included that it forgot to close."""
    tables = "".join(Path(f"/proc/{process.pid}/net/{name}").read_text() for name in ("tcp", "tcp6"))
    lines = [line.split() for line in tables.splitlines()]
    inodes = {f"socket:[{fields[9]}]" for fields in lines if fields[3] == "0A"}
    return sum(path in inodes for path in open_files(process, "]"))


def cpu_ticks(process: Process) -> int:
    """Processor time used so far, in clock ticks; 0 when it is gone."""
    with suppress(OSError):
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


def kill(process: Process) -> None:
    """SIGKILL; a process that is gone already is fine."""
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
