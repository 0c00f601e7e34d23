"""Work of some duration on a connector's files: commands of the command line, in processes beside the worker's own.

A job is one of our commands (`archive verify`, `replay`) with the settings of a connector that the worker has, in a
child process, so that it takes neither the worker's interpreter nor its memory. Settings with secrets go through a
pipe. The child ends when the worker does, as if Ctrl-C had been pressed.
"""

import json
import logging
import os
import secrets
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from parquet_sink.config.secret import dump_with_secrets
from parquet_sink.settings.connector import ConnectorSettings

CHILD: Final = "parquet_sink.cli.job"
"""Run as a module: it reads what `_order` made from standard input, and stops when that ends."""
MOST_AT_ONCE: Final = 2
MOST_KEPT: Final = 50
MOST_LINES: Final = 10_000
MOST_BYTES: Final = 16 << 20
"""Of the lines of one job that are kept, the last ones."""
STOP: Final = b"stop\n"
log = logging.getLogger(__name__)


class TooManyJobs(Exception):
    """As many as may run at once do so."""


@dataclass(frozen=True)
class JobLine:
    """One that the command wrote. error: on standard error."""

    text: str
    error: bool


@dataclass(frozen=True)
class JobProgress:
    """done, total: in units of the command; total 0 where it is not known. told: in words."""

    done: int
    total: int
    told: str


@dataclass(frozen=True)
class JobReport:
    """words: the command. exit_status: None while it runs. begun_ms, ended_ms: epoch milliseconds.

    lines: those from `first_line` on, counted from 0 over all that it wrote; earlier ones may be gone.
    """

    id: str
    connector: str
    words: tuple[str, ...]
    exit_status: int | None
    begun_ms: int
    ended_ms: int | None
    progress: JobProgress | None
    first_line: int
    lines: tuple[JobLine, ...]


class Job:
    """One that runs, or ran. Threads may share it."""

    def __init__(self, connector: str, words: Sequence[str], process: "subprocess.Popen[bytes]") -> None:
        self.id, self.connector, self._words = secrets.token_hex(6), connector, tuple(words)
        self._process, self._begun_ms = process, _now_ms()
        self._lock = threading.Lock()
        self._lines: deque[JobLine] = deque()
        self._gone = self._bytes = 0
        self._progress: JobProgress | None = None
        self._ended: tuple[int, int] | None = None

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._ended is None

    def follow(self) -> None:
        """Takes what the child says until it has ended."""
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        with self._process.stdout as said:
            for raw in said:
                with suppress(ValueError, KeyError, TypeError, RecursionError):
                    self._take(json.loads(raw))
        status = self._process.wait()
        with suppress(OSError):
            self._process.stdin.close()
        with self._lock:
            self._ended = status, _now_ms()
        log.info("connector %s: job %s (%s) ended with status %d", self.connector, self.id, self._words[0], status)

    def _take(self, said: Mapping[str, Any]) -> None:
        with self._lock:
            if "progress" in said:
                self._progress = JobProgress(*said["progress"])
                return
            line = JobLine(str(said["line"])[:MOST_BYTES], bool(said["error"]))
            self._lines.append(line)
            self._bytes += len(line.text)
            while len(self._lines) > MOST_LINES or (self._bytes > MOST_BYTES and len(self._lines) > 1):
                self._bytes -= len(self._lines.popleft().text)
                self._gone += 1

    def report(self, after: int = 0) -> JobReport:
        """How it stands. after: lines from this one on."""
        with self._lock:
            status, ended_ms = self._ended or (None, None)
            first = max(after, self._gone)
            lines = tuple(self._lines)[first - self._gone :]
            about = (self.id, self.connector, self._words, status, self._begun_ms, ended_ms, self._progress)
            return JobReport(*about, first, lines)

    def stop(self) -> None:
        """As Ctrl-C does: it ends in order, soon. Nothing happens to one that has ended."""
        with suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(STOP)
            self._process.stdin.flush()


class Jobs:
    """Of one worker; the last ones that ended are kept. Threads may share it. start: starts a child process."""

    def __init__(self, start: "Callable[[], subprocess.Popen[bytes]] | None" = None) -> None:
        self._start = start or _start
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}

    def begin(self, words: Sequence[str], settings: ConnectorSettings, others: Mapping[str, Any] | None = None) -> Job:
        """Starts a command with these settings. Raises TooManyJobs, OSError.

        others: what other workers know of the connector (`archive.verify.Others`).
        """
        with self._lock:
            if sum(one.runs for one in self._jobs.values()) >= MOST_AT_ONCE:
                raise TooManyJobs
            process = self._start()
            job = Job(settings.name, words, process)
            ended = [one.id for one in self._jobs.values() if not one.runs]
            for old in ended[: max(len(ended) - MOST_KEPT + 1, 0)]:
                del self._jobs[old]
            self._jobs[job.id] = job
        log.info("connector %s: job %s begins: %s", settings.name, job.id, " ".join(words))
        threading.Thread(target=job.follow, name=f"job-{job.id}", daemon=True).start()
        assert process.stdin is not None
        with suppress(OSError):  # it ended already, which its status tells
            process.stdin.write(_order(words, settings, others))
            process.stdin.flush()
        return job

    def of(self, connector: str) -> list[Job]:
        """Those of a connector, the first one first."""
        with self._lock:
            return [one for one in self._jobs.values() if one.connector == connector]


def _order(words: Sequence[str], settings: ConnectorSettings, others: Mapping[str, Any] | None) -> bytes:
    """One line of JSON, which `cli.job` reads."""
    order = {"words": list(words), "settings": dump_with_secrets(settings), "others": others}
    return json.dumps(order).encode() + b"\n"


def _start() -> "subprocess.Popen[bytes]":
    """The child, in a session of its own: signals for the worker's terminal are the worker's."""
    return subprocess.Popen(
        [sys.executable, "-m", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
