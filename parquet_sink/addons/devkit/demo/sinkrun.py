"""The sink as a user runs it: a process of its own, its words in a log file."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from parquet_sink.errors import DemoFailed
from parquet_sink.process.signals import ParentDeathGuard
from parquet_sink.spark.run_folder import sweep

STOP_S: Final = 60.0
"""A graceful stop finishes the flush in progress; in this demo that is a second or two."""
HURRIED_STOP_S: Final = 10.0
"""After an interruption: Spark may be in the middle of its start, which it finishes first."""
_FILE_LINE: Final = re.compile(r"(?>.*?accepted (topic-\S+\.parquet) \().* rotated by (\w++),")
_LAST_LINES: Final = 15


class SinkRun:
    """`parquet-sink run` with these files. In the end call `close()`.

    It gets a session of its own, because Ctrl-C is the demo's to handle, in order, and a temporary folder of its own,
    so that it goes with the demo's. It never outlives the demo, however that ends.
    """

    def __init__(self, worker: Path, connector: Path, bootstrap_servers: str, folder: Path) -> None:
        self.words = ("run", "--worker", str(worker), "--bootstrap-servers", bootstrap_servers, str(connector))
        self.log = folder / "sink.log"
        self.tmp = folder / "tmp"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: ParentDeathGuard | None = None

    @property
    def command(self) -> str:
        """What a user would type."""
        return shlex.join(("parquet-sink", *self.words))

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        self.tmp.mkdir()
        environment = {**os.environ, "TMPDIR": str(self.tmp), "PARQUET_SINK_LOG_LEVEL": "INFO"}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "parquet_sink", *self.words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        self._guard = ParentDeathGuard(self._process.pid)

    def check(self) -> None:
        """Raises DemoFailed, with the end of its log, when it ended by itself."""
        if self._process is not None and (status := self._process.poll()) is not None:
            raise DemoFailed(f"The sink ended by itself with exit status {status}.\n{self.last_words()}")

    def stop(self) -> int:
        """SIGTERM, and wait; the exit status. Raises DemoFailed when it does not end in time, and kills it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise DemoFailed(f"The sink did not end within {STOP_S:.0f} s of SIGTERM.\n{self.last_words()}") from None

    def kill(self) -> None:
        """SIGKILL for the program, which ends Spark's Java and its Python workers with it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._let_go()
            sweep()  # a killed run leaves its folder in memory for a moment

    def close(self) -> None:
        """End it if it still runs, gently for a moment."""
        status = self._process.poll() if self._process is not None else 0
        if status is not None or self._process is None:
            self._let_go()
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(HURRIED_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._let_go()

    def _let_go(self) -> None:
        if self._guard is not None:
            self._guard.release()

    def last_words(self) -> str:
        """The end of its log, for an error message."""
        return tail("the sink's log", self.log)

    def reasons(self) -> dict[str, str]:
        """Rotation reason by file name, from its log."""
        return rotation_reasons(self.log.read_text(errors="replace").splitlines())


def tail(name: str, log: Path) -> str:
    """The end of a log file, for an error message: the file itself goes with the demo."""
    lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:] if log.exists() else []
    return "\n".join([f"The end of {name}:", *(f"  {line}" for line in lines or ["(nothing)"])])


def rotation_reasons(lines: Sequence[str]) -> dict[str, str]:
    """Rotation reason by file name, from the sink's log lines."""
    found = (_FILE_LINE.match(line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def counted(reasons: Sequence[str]) -> str:
    """Reasons with how often each came, most frequent first: `records 9, interval 24`."""
    return ", ".join(f"{reason} {count}" for reason, count in Counter(reasons).most_common())
